"""The texts of a flat SELECT's pieces, over nothing but the columns of its one table."""

from collections.abc import Mapping

from sqlglot import exp

from penstock.sql.parsing.flat_select import FlatSelect, SelectPiece
from penstock.sql.parsing.guard import Refused
from penstock.sql.parsing.splice import Edit, get_span

MAX_CHARACTERS = 100_000


class SparkTexts:
    """Texts in Spark's SQL: without the table's alias, with other outputs written out."""

    def __init__(self, flat: FlatSelect, columns: Mapping[str, object]) -> None:
        self._flat = flat
        self._columns = columns
        self._named = {each.name.lower(): each for each in flat.outputs if each.name}
        table = flat.tree.args["from_"].this
        self._table = (table.alias or table.name).lower()

    def write(self, piece: SelectPiece) -> str:
        text = self._flat.write(piece, self._edit)
        if len(text) > MAX_CHARACTERS:
            raise Refused("the statement's aliases refer to each other too often")
        return text

    def _edit(self, column: exp.Column) -> list[Edit]:
        parts = column.parts
        first = parts[0].name.lower()
        if len(parts) > 1 and first == self._table and parts[1].name.lower() in self._columns:
            return [Edit(get_span(parts[0])[0], get_span(parts[1])[0], "")]
        if first in self._columns or first not in self._named:
            return []
        # The name of an earlier output.
        start, end = get_span(parts[0])
        return [Edit(start, end, f"({self.write(self._named[first])})")]
