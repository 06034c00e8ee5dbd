"""The columns of a table: those that SQL and functions fill, and their backfills."""

from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

import msgspec

from penstock.errors import InvalidFunction, InvalidRequest
from penstock.sdk.connection.wire import path_of
from penstock.sdk.functions.declared import Udf
from penstock.sdk.functions.packing import redeclaration, virtual_column
from penstock.sdk.functions.registered import RegisteredFunction, read_function, use
from penstock.sdk.functions.signatures import check_inputs, list_parameters
from penstock.sdk.functions.types import read_type
from penstock.sdk.jobs.job import Job, follow_job
from penstock.sdk.jobs.options import BackfillOptions, read_options
from penstock.sdk.jobs.plans import Plan
from penstock.sdk.jobs.previews import Preview
from penstock.sdk.jobs.row_errors import RowError, list_errors
from penstock.sdk.rows.reading import open_rows
from penstock.sdk.rows.sending import to_body
from penstock.sdk.rows.types import Schema, read_schema
from penstock.sdk.tables.handle import Handle

# Type checkers take a decorated class for the class that it was. A text is a registered function's
# name, as in `ml.embed` or `ml.embed@2`.
Fills = Udf[..., Any] | type[Any] | RegisteredFunction | str

# What says more of a column, by what gives it its values.
USED_WITH = {
    "function": ("data_type", "inputs", "auto_backfill"),
    "computed": ("auto_backfill",),
    "sql": (),
    "data_type": ("data_type",),
}


class Columns(Handle):
    """What a table does with columns."""

    def add_column(
        self,
        name: str,
        function: Fills | None = None,
        *,
        computed: str | None = None,
        sql: str | None = None,
        data_type: Any = None,
        inputs: Sequence[str] | None = None,
        auto_backfill: bool = False,
    ) -> Self:
        """Add a column, by one of four: a function, `computed`, `sql`, or `data_type` alone.

        function: fills it, by `backfill`; a decorated one, or a registered one by its handle or
            name. `inputs` and `data_type` are the function's own unless they are given.
        computed: SQL that fills it, by `backfill`; it is computed again where its inputs change.
        sql: SQL that gives its values now, once.
        data_type: its type; it has no values then, and is written like any other column.
        auto_backfill: have a function or `computed` fill it by itself, now and after changes.
        """
        ways = {"function": function, "computed": computed, "sql": sql}
        more = {"data_type": data_type, "inputs": inputs, "auto_backfill": auto_backfill or None}
        _check_way(name, ways, more)
        if computed is not None:
            return self._add({"name": name, "computed": computed, "auto_backfill": auto_backfill})
        if sql is not None:
            return self._add({"name": name, "expression": sql})
        if function is None:
            return self._add_plain({name: read_type(data_type, "data_type")})
        return self._add_filled(name, function, inputs, data_type, auto_backfill)

    def add_columns(
        self,
        columns: Fills | Schema,
        *,
        inputs: Sequence[str] | None = None,
        auto_backfill: bool = False,
    ) -> Self:
        """Add several columns: those of a function with several outputs, or some without values.

        columns: a function, decorated or registered; it fills the columns that it names, or the
            fields of the TypedDict or dataclass that it returns. Or types by name, such as
            `{"note": str, "score": "float32"}`, or an Arrow schema.
        """
        if isinstance(columns, str | RegisteredFunction):
            found = read_function(self._wire, columns)
            made = [each["name"] for each in found.describe()["outputs"] or ()]
            if made in ([], [""]):
                raise InvalidFunction(
                    f"{found.name} has one output", detail="use add_column, and name the column"
                )
            used = use(found, inputs) | {"auto_backfill": auto_backfill}
            return self._add({"name": made[0], "function": used})
        if isinstance(columns, Mapping) or hasattr(columns, "field"):
            if inputs is not None or auto_backfill:
                raise InvalidRequest(
                    "columns without a function have no inputs, and nothing fills them",
                    detail="leave inputs and auto_backfill out",
                )
            return self._add_plain(columns)
        function = _check_udf(columns)
        if function.fields is None:
            raise InvalidFunction(
                f"{function.name} has one output",
                detail="use add_column, and name the column; or annotate it with a TypedDict or a "
                "dataclass, whose fields become columns",
            )
        outputs, names = function.fields, _inputs(function, inputs)
        column = virtual_column(function, outputs, names, auto_backfill)
        return self._add({"name": next(iter(outputs)), "virtual_column": column})

    def alter_column(
        self,
        column: str,
        function: Fills | None = None,
        *,
        inputs: Sequence[str] | None = None,
        data_type: Any = None,
        nullable: bool | None = None,
        cascade: bool = False,
        force: bool = False,
    ) -> Self:
        """Give a column another function, or version of it, another type, or other nullability.

        With another function, the next backfill computes it again. What reads a column refuses
        another type of it; `cascade` and `force` are as for `rename_column`.
        """
        change: dict[str, Any] = {"path": self._path_of(column)}
        if data_type is not None:
            change["data_type"] = read_type(data_type, "data_type")
        if nullable is not None:
            change["nullable"] = nullable
        if isinstance(function, str | RegisteredFunction):
            change["function"] = use(read_function(self._wire, function), inputs)
        elif function is not None:
            function = _check_udf(function)
            names = function.inputs if inputs is None else _inputs(function, inputs)
            change["virtual_column"] = redeclaration(function, names)
        if len(change) == 1:
            raise InvalidRequest(
                f"nothing of column {column!r} is to be altered",
                detail="give a function, data_type or nullable",
            )
        body = {"alterations": [change], "branch": self._branch}
        self._change("alter_columns", body, cascade=cascade, force=force)
        return self

    def rename_column(
        self, column: str, name: str, *, cascade: bool = False, force: bool = False
    ) -> Self:
        """Give a column another name; what reads it refuses this.

        With `cascade`, views and computed columns follow; `force` lets them break.
        """
        path = self._path_of(column)
        body = {"alterations": [{"path": path, "rename": name}], "branch": self._branch}
        self._change("alter_columns", body, cascade=cascade, force=force)
        return self

    def drop_columns(self, *columns: str, cascade: bool = False, force: bool = False) -> Self:
        """Drop columns; what reads them refuses this.

        `cascade` drops it along with them, `force` lets it break.
        """
        if any(not isinstance(each, str) for each in columns):
            raise InvalidRequest(
                "a column is not given by its name", detail='write drop_columns("a", "b")'
            )
        body = {"columns": list(columns), "branch": self._branch}
        self._change("drop_columns", body, cascade=cascade, force=force)
        return self

    def computed_columns(self) -> dict[str, dict[str, Any]]:
        """What fills each computed column, and how many rows of it are in which state.

        `rows_by_state` counts all rows as `fresh`, `stale`, `unfilled` or `failed`, and
        `stale_by_reason` tells why the stale ones are; they are looked at for that.
        """
        return self._list_computed(count_rows=True)

    def _list_computed(self, *, count_rows: bool) -> dict[str, dict[str, Any]]:
        told = self._read("describe", {"branch": self._branch, "count_rows": count_rows})
        text = told["properties"].get("penstock.columns", "{}")
        found: dict[str, dict[str, Any]] = msgspec.json.decode(text)
        return found

    def preview(
        self, column: str, rows: int = 10, *, where: str | None = None, timeout: float = 60
    ) -> Preview:
        """What a column would be for a few rows; nothing is written."""
        body = {
            "column": column,
            "rows": rows,
            "where": where,
            "branch": self._branch,
            "timeout_seconds": timeout,
        }
        told = self._wire.read(path_of("table", self.id, "preview_column"), body, timeout + 30)
        if "values" not in told:
            raise TimeoutError(f"the preview is not there after {timeout:g} seconds")
        return Preview(column, told)

    def backfill(
        self,
        column: str,
        *,
        wait: bool = True,
        progress: bool | None = None,
        **options: Unpack[BackfillOptions],
    ) -> Job:
        """Fill a column where it needs it; waits for the job unless `wait=False`."""
        told = self._change("backfill_column", self._backfill(column, options))
        return follow_job(self._wire, told["job_id"], wait=wait, progress=progress)

    def explain_backfill(self, column: str, **options: Unpack[BackfillOptions]) -> Plan:
        """What a backfill would do, without doing it."""
        told = self._read("explain_backfill", self._backfill(column, options))
        return Plan(f"backfill of {self.name}.{column}", told)

    def errors(self, column: str | None = None, *, limit: int | None = None) -> list[RowError]:
        """Rows that functions failed on in any job, the newest first: all, or so many."""
        return list_errors(self._wire, self.id, column=column, branch=self._branch, limit=limit)

    def _path_of(self, column: str) -> str:
        """A column's path; the name of one that other software wrote may hold back-quotes."""
        # The whole schema cannot be selected then.
        if "`" not in column:
            return column
        body = {"load_detailed_metadata": True, "branch": self._branch}
        fields = self._read("describe", body)["schema"]["fields"]
        if all(each["name"] != column for each in fields):
            return column
        return "`" + column.replace("`", "``") + "`"

    def _add_filled(
        self,
        name: str,
        function: Fills,
        inputs: Sequence[str] | None,
        data_type: Any,
        auto_backfill: bool,
    ) -> Self:
        if isinstance(function, str | RegisteredFunction):
            kinds = None if data_type is None else {name: read_type(data_type, "data_type")}
            used = use(read_function(self._wire, function), inputs, kinds)
            return self._add({"name": name, "function": used | {"auto_backfill": auto_backfill}})
        function = _check_udf(function)
        if function.outputs is not None:
            raise InvalidFunction(
                f"{function.name} fills {', '.join(function.outputs)}",
                detail="use add_columns, which adds all of them",
            )
        kind = function.data_type if data_type is None else read_type(data_type, "data_type")
        if kind is None:
            raise InvalidFunction(
                f"the type of what {function.name} returns is not known",
                detail="annotate it, say data_type= to the decorator, or here",
            )
        column = virtual_column(
            function, {name: kind}, _inputs(function, inputs), auto_backfill, alone=True
        )
        return self._add({"name": name, "virtual_column": column})

    def _add_plain(self, columns: Schema) -> Self:
        body = to_body(open_rows(None, read_schema(columns, "columns")))
        self._upload("add_columns", body)
        return self

    def _add(self, column: dict[str, Any]) -> Self:
        self._change("add_columns", {"new_columns": [column], "branch": self._branch})
        return self

    def _backfill(self, column: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"column": column, "branch": self._branch, **read_options(options, BackfillOptions)}


def _check_way(name: str, ways: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    """Refuse a column of two ways to get values or of none, and what has no use with its way."""
    given = [each for each, value in ways.items() if value is not None]
    if not given and more["data_type"] is not None:
        given = ["data_type"]
    if len(given) != 1:
        raise InvalidRequest(
            f"column {name!r} has {' and '.join(given) or 'neither values nor a type'}",
            detail="give one of function, computed, sql, or data_type alone",
        )
    for each, value in more.items():
        if value is not None and each not in USED_WITH[given[0]]:
            raise InvalidRequest(
                f"{each} of column {name!r} has no use with {given[0]}", detail=f"leave {each} out"
            )


def _inputs(function: "Udf[..., Any]", given: Sequence[str] | None) -> Sequence[str]:
    if given is None:
        found = function.inputs
    else:
        parameters = list_parameters(function.call, function.name)
        found = check_inputs(function.name, given, parameters, function.kind)
    if found is None:
        raise InvalidFunction(
            f"the columns that {function.name} reads are not known",
            detail="say inputs=[…] to the decorator, or here",
        )
    return found


def _check_udf(function: object) -> "Udf[..., Any]":
    if not isinstance(function, Udf):
        raise InvalidFunction(
            f"{getattr(function, '__name__', function)!r} is no udf",
            detail="decorate it with @penstock.udf",
        )
    return function
