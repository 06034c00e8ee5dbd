"""What names mean in a SELECT whose subqueries are merged: each is a column of a table, or made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqlglot import exp

from penstock.sql.parsing.splice import quote
from penstock.sql.resolving.joins import Obstacle

# Outputs that are made of outputs grow with each layer.
MAX_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class Value:
    """What an output of a subquery is, in the text of the merged query."""

    text: str
    # Just a column of a table.
    is_column: bool = False
    # A column or a field of one, which needs no brackets.
    is_path: bool = False
    has_columns: bool = True
    has_query: bool = False
    # Why it can't be used, for people.
    obstacle: str = ""


class Found(NamedTuple):
    """What a name means; `parts` of it are used up, the others are fields of a struct."""

    value: Value
    parts: int
    # Whether it is of a SELECT further out.
    is_outer: bool


@dataclass(frozen=True, slots=True)
class Source:
    """A table or a merged subquery in FROM: its columns in order, by their names in lower case."""

    alias: str
    values: Mapping[str, tuple[str, Value]]
    # Whether only its own ON sees it.
    is_hidden: bool = False


@dataclass(slots=True)
class Scope:
    """The sources of a SELECT, and the SELECT around it."""

    outer: "Scope | None"
    sources: list[Source] = field(default_factory=list)
    # All columns of its tables, in lower case, whether a subquery gives them or not.
    columns: set[str] = field(default_factory=set)

    def find(self, column: exp.Column) -> Found | None:
        """What a name means; None when it is no column. Raises Obstacle when that is not sure."""
        names = [part.name.lower() for part in column.parts]
        scope: Scope | None = self
        while scope is not None:
            visible, is_outer = scope.list_visible(), scope is not self
            named = [each for each in visible if each.alias.lower() == names[0]]
            if named and len(names) > 1:
                # As in Spark, a table's name comes before a struct's.
                found = [(each, names[1], 2) for each in named if names[1] in each.values]
            else:
                found = [(each, names[0], 1) for each in visible if names[0] in each.values]
            if len(found) == 1:
                source, key, parts = found[0]
                return Found(source.values[key][1], parts, is_outer)
            if found or (named and len(names) > 1):
                raise Obstacle(f"{column.sql()} may mean several columns")
            scope = scope.outer
        return None

    def list_visible(self) -> list[Source]:
        return [each for each in self.sources if not each.is_hidden]

    def expand(self, star: exp.Expr) -> Iterator[tuple[str, Value]]:
        """The columns that a star stands for today."""
        inner = star.this if isinstance(star, exp.Column) else star
        table = star.table.lower() if isinstance(star, exp.Column) else ""
        if any(value for key, value in inner.args.items() if key != "except_"):
            raise Obstacle("a * in a subquery renames or replaces columns; list the columns")
        left_out = {each.name.lower() for each in inner.args.get("except_") or []}
        sources = [each for each in self.list_visible() if table in ("", each.alias.lower())]
        if not sources:
            raise Obstacle("a * can't be expanded; list the columns")
        for source in sources:
            yield from (found for key, found in source.values.items() if key not in left_out)

    def hide(self) -> None:
        """Hide the last source."""
        self.sources[-1] = replace(self.sources[-1], is_hidden=True)

    def lose_made(self) -> None:
        """Rows of the last source may be missing: columns are NULL then; what is made is not."""
        last = self.sources[-1]
        values = {
            key: (name, value if value.is_column else replace(value, obstacle=_lost(name)))
            for key, (name, value) in last.values.items()
        }
        self.sources[-1] = replace(last, values=values)


def make_column(alias: str, name: str) -> Value:
    return Value(f"{quote(alias)}.{quote(name)}", is_column=True, is_path=True)


def write_value(name: str, found: Found, in_group: bool) -> str:
    """The text in place of a name; raises Obstacle where it would mean something else."""
    value = found.value
    if value.obstacle:
        raise Obstacle(value.obstacle)
    if value.has_query or len(value.text) > MAX_CHARACTERS:
        raise Obstacle(f"{name} of a subquery is a subquery itself, or too long")
    if found.is_outer and not value.is_column:
        raise Obstacle(f"{name} of a subquery is an expression that another subquery reads")
    # GROUP BY 1 is the first output.
    if in_group and not value.has_columns:
        raise Obstacle(f"{name} of a subquery is a constant that rows are grouped by")
    return value.text if value.is_path else f"({value.text})"


def _lost(name: str) -> str:
    return f"{name} is made below a LEFT JOIN, which may have no row for it; make it outside"
