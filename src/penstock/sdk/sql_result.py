"""The rows that a statement gave, in whatever form is wanted."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.errors import InvalidRequest
from penstock.sdk.connection.optional_libraries import load
from penstock.sdk.pictures.markup import table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# How much a printed result shows.
ROWS, CELL = 10, 40


class SqlResult:
    """Rows in the order of the statement; `lake.sql` makes one."""

    def __init__(self, table: "pa.Table") -> None:
        self._table = table

    def schema(self) -> "pa.Schema":
        """Its columns."""
        return self._table.schema

    def to_arrow(self) -> "pa.Table":
        return self._table

    def to_batches(self) -> "Iterator[pa.RecordBatch]":
        """The rows in batches, as the server sent them."""
        yield from self._table.to_batches()

    def to_pandas(self) -> "pd.DataFrame":
        load("pandas", "to_pandas")
        found: pd.DataFrame = self._table.to_pandas()
        return found

    def to_polars(self) -> "pl.DataFrame":
        polars = load("polars", "to_polars")
        found: pl.DataFrame = polars.from_arrow(self._table)
        return found

    def to_list(self) -> list[dict[str, Any]]:
        """The rows as dicts, which takes a name for each column."""
        names = self._table.column_names
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InvalidRequest(
                f"two columns are called {twice}, and a dict has one of them",
                detail="name them apart with AS, or use to_arrow()",
            )
        found: list[dict[str, Any]] = self._table.to_pylist()
        return found

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_list())

    def __repr__(self) -> str:
        names, rows = self._show()
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (names, *rows)
        ]
        return "\n".join([*lines, self._count()])

    def _repr_html_(self) -> str:
        names, rows = self._show()
        return table("Result", rows, names, self._count())

    def _show(self) -> tuple[list[str], list[list[str]]]:
        """The names, and the first rows as text."""
        columns = [column.to_pylist() for column in self._table.slice(0, ROWS).columns]
        return list(self._table.column_names), [
            [_show(value) for value in row] for row in zip(*columns, strict=True)
        ]

    def _count(self) -> str:
        more = f", of which {ROWS} are shown" if len(self) > ROWS else ""
        return f"{len(self):,} row{'' if len(self) == 1 else 's'}{more}"


def _show(value: Any) -> str:
    text = "NULL" if value is None else str(value).replace("\n", "\\n")
    return text if len(text) <= CELL else text[: CELL - 1] + "…"
