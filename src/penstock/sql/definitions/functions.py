"""Functions of views: those that fill columns, chunkers and udtfs."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as kinds

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.lance.columns.computed import show_type
from penstock.lance.columns.fields import parse_path, show_path
from penstock.lance.columns.schemas import find_type
from penstock.model.functions import Function
from penstock.model.functions import FunctionOutput as Made
from penstock.model.udtfs import Udtf
from penstock.model.views import SYSTEM_COLUMNS, CheckedSql
from penstock.sql.definitions.outputs import is_alike
from penstock.sql.definitions.parsed_query import ExpressionTexts, ParsedQuery, QueryOutput, quote
from penstock.sql.definitions.refusals import find_near, refuse
from penstock.sql.definitions.requests import ColumnFunction, Query
from penstock.sql.definitions.schemas import read_schema
from penstock.sql.results import Refusal
from penstock.sql.spark.query import write_path


class Inputs:
    """The columns that functions read: outputs of the query, or columns of its table."""

    def __init__(self, found: ParsedQuery) -> None:
        self._found = found
        self._table = found.tables[0][0]
        self.outputs = {output.name: output for output in found.outputs}
        # Columns that only functions read.
        self.hidden: dict[str, QueryOutput] = {}

    def get(self, name: str, what: str) -> QueryOutput:
        """The column of that name; outputs come first."""
        if name in self.outputs:
            return self.outputs[name]
        if name not in self.hidden:
            self.hidden[name] = self._find(name, what)
        return self.hidden[name]

    def _find(self, name: str, what: str) -> QueryOutput:
        if self._found.shape != "rows":
            near = find_near(name, list(self.outputs))
            told = ", ".join(near or list(self.outputs)[:50])
            raise InvalidRequest(
                f"{what} names {name}, which the query does not give",
                detail=f"{'near names' if near else 'it gives'}: {told}",
            )
        schema = self._table.schema
        path = (name,) if name in schema.names else parse_path(name)
        kind = find_type(schema, path)
        if kind is None:
            names = list(dict.fromkeys([*self.outputs, *schema.names]))
            near = find_near(name, names)
            hint = (
                f"near names: {', '.join(near)}" if near else f"there are {', '.join(names[:50])}"
            )
            raise InvalidRequest(f"{what} names {name}, which does not exist", detail=hint)
        text = ".".join(map(quote, path))
        texts: ExpressionTexts = {}
        if self._found.language == "spark":
            texts["spark"] = _write_path(path)
        if self._found.language == "lance" or not any("`" in part for part in path):
            texts["lance"] = text
        reads = path if self._found.language == "lance" else path[:1]
        return QueryOutput(name, kind, texts, show_path(path), (show_path(reads),))


def _write_path(path: Sequence[str]) -> CheckedSql:
    found = write_path(path)
    if isinstance(found, Refusal):
        raise refuse(found)
    return found


def make_column_functions(
    query: Query, inputs: Inputs, declared: pa.Schema | None
) -> tuple[Function, ...]:
    """The functions that fill outputs of a query, with the declared types."""
    return tuple(_make_column_function(each, inputs, declared) for each in query.functions)


def _make_column_function(
    sent: ColumnFunction, inputs: Inputs, declared: pa.Schema | None
) -> Function:
    if declared is None or sent.output not in declared.names:
        raise InvalidRequest(
            f"column {sent.output} is a function's, and output_schema does not say its type",
            detail=f"send output_schema with {sent.output} in it",
        )
    what = f"input_columns of column {sent.output}"
    names = [inputs.get(name, what).name for name in sent.inputs]
    made = Made(sent.output, "", show_type(declared.field(sent.output).type))
    return sent.code.bind(sent.name, sent.version, tuple(names), (made,))


@dataclass(frozen=True, slots=True)
class RowsFunction:
    """A chunker or udtf bound to the columns of its query."""

    function: Function
    # The columns that it makes.
    fields: tuple[tuple[str, pa.DataType], ...]
    inherited: tuple[str, ...] = ()
    partition_by: str | None = None
    indexed: str | None = None


def bind_rows_function(
    udtf: Udtf, inputs: Inputs, declared: pa.Schema | None, own: Sequence[str] | None
) -> RowsFunction:
    """Bind the function of a chunker or udtf view to these `own` columns."""
    is_udtf = udtf.kind == "udtf"
    fields = _list_made(udtf, declared)
    made = [name for name, _ in fields]
    named = udtf.input_columns if udtf.input_columns is not None else tuple(inputs.outputs)
    read = tuple(inputs.get(name, "input_columns of udtf_spec").name for name in named)
    if not read:
        raise InvalidRequest("the function has no inputs", detail="select some columns")
    inherited: list[str] = []
    for name in own or ():
        if name in made:
            continue
        if is_udtf or name not in inputs.outputs:
            raise SchemaMismatch(
                f"output_schema has column {name}, and neither the function nor the query gives it"
                if not is_udtf
                else f"output_schema has column {name}, and the function does not give it",
                detail="leave it out, or let the function make it",
            )
        inherited.append(name)
    partition, indexed = _bind_partition(udtf, inputs)
    return RowsFunction(
        Function(
            name=udtf.name,
            version=udtf.version,
            sha256=udtf.sha256,
            form="udtf_spec",
            kind=udtf.kind,
            inputs=read,
            outputs=tuple(Made(name, name, show_type(kind)) for name, kind in fields),
            on_error=udtf.on_error,
            needs=udtf.needs,
            concurrency=udtf.concurrency,
            on_null=udtf.on_null,
            may_be_null=udtf.may_be_null,
            python=udtf.python,
            registered=udtf.registered,
        ),
        fields,
        tuple(inherited),
        partition,
        indexed,
    )


def _list_made(udtf: Udtf, declared: pa.Schema | None) -> tuple[tuple[str, pa.DataType], ...]:
    """The columns that the function makes: by its own schema, else by the declared one."""
    if udtf.output_schema is not None:
        schema = read_schema(udtf.output_schema, "output_schema_bytes in udtf")
    elif declared is not None and udtf.kind == "udtf":
        schema = declared
    else:
        raise InvalidRequest(
            "udtf in udtf_spec has no output_schema_bytes",
            detail="put the base64 of the Arrow schema of what the function makes into it",
        )
    fields = [(field.name, field.type) for field in schema if field.name not in SYSTEM_COLUMNS]
    if not fields:
        raise InvalidRequest("the function makes no columns", detail="name some in its schema")
    kinds = dict(fields)
    for field in declared or ():
        kind = kinds.get(field.name)
        if kind is not None and not is_alike(kind, field.type):
            raise SchemaMismatch(
                f"column {field.name} of output_schema is {field.type}, and the function makes "
                f"{kind}",
                detail=f"declare it as {kind}",
            )
    return tuple(fields)


def _bind_partition(udtf: Udtf, inputs: Inputs) -> tuple[str | None, str | None]:
    if udtf.partition_by is not None:
        column = inputs.get(udtf.partition_by, "partition_by")
        if column.type is not None and kinds.is_nested(column.type):
            raise InvalidRequest(
                f"partition_by names {column.name}, which is {column.type}: rows are not divided "
                f"by such values",
                detail="name a column of numbers, text, dates or the like",
            )
        return column.name, None
    if udtf.partition_by_indexed_column is None:
        return None, None
    column = inputs.get(udtf.partition_by_indexed_column, "partition_by_indexed_column")
    if column.path is None or column.type is None or not kinds.is_fixed_size_list(column.type):
        raise InvalidRequest(
            f"partition_by_indexed_column names {column.name}, which is no vector",
            detail="name a column of vectors with an IVF index",
        )
    return None, column.name
