"""Queries: which rows and columns of a table are read, and how they come; also what views are of.

A query is a value. Its methods give another one, and nothing is asked before `to_arrow`.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from penstock.errors import InvalidRequest
from penstock.model.identifiers import Identifier
from penstock.sdk.connection.names import show_id
from penstock.sdk.connection.optional_libraries import load
from penstock.sdk.connection.wire import Wire, path_of
from penstock.sdk.pictures.cells import rows_table
from penstock.sdk.rows.answers import ask_batches, ask_rows

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

DistanceType = Literal["l2", "cosine", "dot", "hamming"]
Columns = tuple[str, ...] | dict[str, str]
# How many rows a notebook shows.
SHOWN = 10


@dataclass(frozen=True)
class Query:
    """Some rows and columns of a table; its `select`, `where` and `search` make one."""

    wire: Wire = field(repr=False)
    table: Identifier
    # None is all of them; names, or SQL by alias.
    columns: Columns | None = None
    filter: str | None = None
    rows: int | None = None
    skip: int = 0
    version: int | None = None
    branch: str | None = None
    # What a search adds to the request.
    search: Mapping[str, Any] = field(default_factory=dict)
    # Columns that the rows are sorted by, each with whether it ascends and nulls come first.
    order: tuple[tuple[str, bool, bool], ...] = ()

    def select(self, *columns: str | Sequence[str], **expressions: str) -> "Query":
        """These columns, and SQL expressions under a name: `select("id", size="length(text)")`."""
        names = [n for each in columns for n in ([each] if isinstance(each, str) else each)]
        if not names and not expressions:
            raise InvalidRequest("select names no column", detail="name one, or leave it out")
        if not expressions:
            return replace(self, columns=tuple(names))
        plain = {name: quote(name) for name in names}
        return replace(self, columns={**plain, **expressions})

    def where(self, where: str) -> "Query":
        """Only rows for which this SQL holds; several filters all have to."""
        both = f"({self.filter}) AND ({where})" if self.filter else where
        return replace(self, filter=both)

    def order_by(
        self,
        *columns: str,
        ascending: bool | Sequence[bool] = True,
        nulls_first: bool | Sequence[bool] = False,
    ) -> "Query":
        """Sorted by these columns, the first one first.

        `ascending` and `nulls_first` are for all of them, or lists with a value for each.
        """
        if not columns:
            raise InvalidRequest("order_by names no column", detail="name one, or leave it out")
        each = [
            _for_each(what, given, len(columns))
            for what, given in (("ascending", ascending), ("nulls_first", nulls_first))
        ]
        return replace(self, order=tuple(zip(columns, *each, strict=True)))

    def limit(self, rows: int) -> "Query":
        """At most so many rows."""
        return replace(self, rows=rows)

    def offset(self, rows: int) -> "Query":
        """Without so many rows at the beginning."""
        return replace(self, skip=rows)

    def to_arrow(self) -> "pa.Table":
        """The rows as an Arrow table."""
        return ask_rows(self.wire, path_of("table", self.table, "query"), self.body())

    def to_batches(self, batch_size: int | None = None) -> "pa.RecordBatchReader":
        """The rows while they arrive, in batches of at most so many, of one version of the table.

        Memory stays bounded. A server drops a reader that takes nothing for a minute.
        """
        path = path_of("table", self.table, "query")
        return ask_batches(self.wire, path, self.body(), batch_size)

    def head(self, rows: int = 5) -> "pa.Table":
        """The first rows."""
        most = rows if self.rows is None else min(rows, self.rows)
        return self.limit(most).to_arrow()

    def sample(self, rows: int = 5, *, seed: int | None = None) -> "pa.Table":
        """So many rows at random; the same ones for the same seed, while the table has them."""
        body = {**self.body(), "sample": {"rows": rows, "seed": seed}}
        return ask_rows(self.wire, path_of("table", self.table, "query"), body)

    def to_pandas(self) -> "pd.DataFrame":
        load("pandas", "to_pandas")
        found: pd.DataFrame = self.to_arrow().to_pandas()
        return found

    def to_polars(self) -> "pl.DataFrame":
        polars = load("polars", "to_polars")
        found: pl.DataFrame = polars.from_arrow(self.to_arrow())
        return found

    def to_list(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        found: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return found

    def count(self) -> int:
        """How many rows there are, whatever the limit."""
        body = {"predicate": self.filter, "version": self.version, "branch": self.branch}
        return int(self.wire.read(path_of("table", self.table, "count_rows"), body))

    def explain(self, *, verbose: bool = False) -> str:
        """How Lance would carry it out."""
        body = {"query": self.body(), "branch": self.branch, "verbose": verbose}
        return str(self.wire.read(path_of("table", self.table, "explain_plan"), body))

    def schema(self) -> "pa.Schema":
        """The columns that it gives; nothing is read."""
        return replace(self, rows=0, skip=0, search={}, order=()).to_arrow().schema

    def _look(self, rows: int) -> dict[str, Any]:
        """The first rows to look at, with long values by their beginning."""
        most = rows if self.rows is None else min(rows, self.rows)
        path = path_of("table", self.table, "query")
        found: dict[str, Any] = self.wire.look(path, self.limit(most).body())
        return found

    def _repr_html_(self) -> str:
        return rows_table(f"Query of {show_id(self.table)}", self._look(SHOWN), {}, "")

    def body(self) -> dict[str, Any]:
        """The request's body."""
        columns = self.columns
        asked = {
            "columns": list(columns) if isinstance(columns, tuple) else columns,
            "filter": self.filter,
            "k": self.rows,
            "offset": self.skip or None,
            "version": self.version,
            "branch": self.branch,
            "order_by": [
                {"column_name": name, "ascending": ascending, "nulls_first": nulls_first}
                for name, ascending, nulls_first in self.order
            ]
            or None,
            **self.search,
        }
        return {name: value for name, value in asked.items() if value is not None}

    def to_sql(self) -> str:
        """The query in Lance's SQL, as the source of a view."""
        if self.search or self.skip or self.order or self.version is not None or self.branch:
            raise InvalidRequest(
                f"a view of {show_id(self.table)} cannot have a search, an order, an offset, a "
                "version or a branch",
                detail="select columns, filter and limit only",
            )
        columns = self.columns or {}
        if isinstance(columns, tuple):
            columns = {name: quote(name) for name in columns}
        shown = ", ".join(
            text if text == quote(name) else f"{text} AS {quote(name)}"
            for name, text in columns.items()
        )
        text = f"SELECT {shown or '*'} FROM {'.'.join(map(quote, self.table))}"
        text += f" WHERE {self.filter}" if self.filter else ""
        return text + (f" LIMIT {self.rows}" if self.rows is not None else "")


def _for_each(what: str, given: bool | Sequence[bool], count: int) -> list[bool]:
    """A value for each column that rows are sorted by."""
    found = [given] * count if isinstance(given, bool) else list(given)
    if len(found) != count:
        raise InvalidRequest(
            f"{what} has {len(found)} values for {count} columns",
            detail="give one for each column, or one for all",
        )
    return found


def search_body(
    vector: Sequence[float] | None,
    text: str | None,
    *,
    vector_column: str | None,
    text_columns: Sequence[str] | None,
    distance_type: DistanceType | None,
    nprobes: int | None,
    refine_factor: int | None,
    prefilter: bool,
) -> dict[str, Any]:
    """What a search by vector, by text or by both adds to a request."""
    if vector is None and text is None:
        raise InvalidRequest("the search has neither a vector nor a text", detail="give one")
    found: dict[str, Any] = {"prefilter": prefilter}
    if vector is not None:
        found |= {
            "vector": {"single_vector": [float(number) for number in vector]},
            "vector_column": vector_column,
            "distance_type": distance_type,
            "nprobes": nprobes,
            "refine_factor": refine_factor,
        }
    if text is not None:
        columns = None if text_columns is None else list(text_columns)
        found["full_text_query"] = {"string_query": {"query": text, "columns": columns}}
    return found


def quote(name: str) -> str:
    """A name in Lance's SQL, where both kinds of quotes hold names."""
    return f"`{name}`" if "`" not in name else '"' + name.replace('"', '""') + '"'


def to_literal(value: Any) -> str:
    """A Python value in Lance's SQL."""
    if hasattr(value, "item"):
        # A number of NumPy's.
        value = value.item()
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if value == value and abs(value) != float("inf"):
            return repr(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime():
            return f"timestamp '{value.isoformat(sep=' ')}'"
        case datetime.date():
            return f"date '{value.isoformat()}'"
    raise InvalidRequest(
        f"{value!r} has no form in SQL here",
        detail="write it as SQL: values_sql={'column': …}",
    )
