"""What depends on a table or a column: views and computed columns, as a tree to read."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.sdk.connection.names import show_id
from penstock.sdk.pictures.markup import table


@dataclass(frozen=True)
class Dependent:
    """A view or computed column, what it reads, and what depends on it in turn."""

    # `materialized_view`, `iceberg_view` or `computed_column`.
    kind: str
    # As in `shop.dear`; a computed column's has its table's before it.
    name: str
    # What it reads of what it depends on; empty when that is not known.
    columns: list[str]
    # Which changes of what it depends on it would not survive: `drop`, `rename`, `retype`.
    breaks_on: list[str]
    # The ids of jobs that work on it, or wait to.
    jobs: list[str]
    dependents: list["Dependent"]

    def _lines(self, depth: int) -> Iterator[str]:
        reads = f" reads {', '.join(self.columns)}" if self.columns else ""
        breaks = f"; breaks on {', '.join(self.breaks_on)}" if self.breaks_on else ""
        working = f"; jobs {', '.join(self.jobs)}" if self.jobs else ""
        yield f"{'  ' * depth}{self.name} ({self.kind.replace('_', ' ')}){reads}{breaks}{working}"
        for each in self.dependents:
            yield from each._lines(depth + 1)

    def _walk(self) -> Iterator["Dependent"]:
        yield self
        for each in self.dependents:
            yield from each._walk()


@dataclass(frozen=True)
class Dependents:
    """All that depends on a table or column; printed, it is a tree. True when there is anything."""

    name: str
    dependents: list[Dependent]
    # How many there are that you may not read.
    hidden: int
    # The ids of jobs that work on the table itself, or wait to.
    jobs: list[str]
    # All of it as the server told it.
    told: dict[str, Any]

    def __bool__(self) -> bool:
        return bool(self.dependents or self.hidden)

    def __iter__(self) -> Iterator[Dependent]:
        """All of them, each before those that depend on it."""
        for each in self.dependents:
            yield from each._walk()

    def __str__(self) -> str:
        lines = [self.name, *(line for each in self.dependents for line in each._lines(1))]
        if self.hidden:
            lines.append(f"  {self.hidden} that you may not read")
        return "\n".join(lines if self else [f"nothing depends on {self.name}"])

    def _repr_html_(self) -> str:
        rows = [
            (each.name, each.kind, ", ".join(each.columns), ", ".join(each.breaks_on))
            for each in self
        ]
        note = f"{self.hidden} that you may not read" if self.hidden else ""
        head = ("name", "kind", "reads", "breaks on")
        return table(f"What depends on {self.name}", rows, head, note)


def read_dependents(name: str, told: dict[str, Any]) -> Dependents:
    """The dependents of something, from the server's answer."""
    found = [_read(each) for each in told["dependents"]]
    return Dependents(name, found, told.get("hidden", 0), told.get("jobs", []), told)


def _read(told: dict[str, Any]) -> Dependent:
    column = told.get("column")
    return Dependent(
        kind=told["kind"],
        name=show_id(tuple(told["id"])) + ("" if column is None else f".{column}"),
        columns=told.get("columns", []),
        breaks_on=told.get("breaks_on", []),
        jobs=told.get("jobs", []),
        dependents=[_read(each) for each in told.get("dependents", [])],
    )
