"""Plans: what a backfill or a refresh would do, to read and to compute with."""

from collections.abc import Callable, Mapping
from typing import Any

from penstock.sdk.pictures.bars import Part, bar
from penstock.sdk.pictures.markup import BAD, BUSY, GOOD, IDLE, WARN, Markup, join, table
from penstock.sdk.show import show_states

COUNTS = {
    "rows_to_insert": "to insert",
    "rows_to_update": "to update",
    "rows_to_delete": "to delete",
}
COLOURS = {"rows_to_insert": GOOD, "rows_to_update": BUSY, "rows_to_delete": BAD}
STATES = {"fresh": GOOD, "stale": WARN, "unfilled": IDLE, "failed": BAD}
# What stands below a line of a plan in a notebook.
PICTURES: dict[str, Callable[[list[Part], list[Part]], Markup | None]] = {
    "rows": lambda changes, _: bar(changes, "rows to change"),
    "now": lambda _, states: bar(states, "rows by state"),
}


class Plan(Mapping[str, Any]):
    """A plan as the server tells it; printed, it is a few lines to read."""

    def __init__(self, what: str, told: Mapping[str, Any]) -> None:
        self.what = what
        self._told = told

    @property
    def mode(self) -> str:
        """`full`, `incremental` or `none`."""
        return str(self._told["mode"])

    @property
    def reason(self) -> str:
        return str(self._told["reason"])

    @property
    def function_calls(self) -> int | None:
        """How many rows, or partitions, the function would be given; None when not known before."""
        found = self._told["function_calls"]
        return None if found is None else int(found)

    @property
    def unknown(self) -> dict[str, str]:
        """Why a count is None: the reasons by the names of counts that only a run can tell."""
        return dict(self._told.get("unknown") or {})

    @property
    def rows_by_state(self) -> dict[str, int] | None:
        """All rows of a column before its backfill, as `fresh`, `stale`, `unfilled` or `failed`.

        None for a view, and when not all rows were looked at, because all are forced.
        """
        found: dict[str, int] | None = self._told.get("rows_by_state")
        return found

    @property
    def estimated_seconds(self) -> float | None:
        """By the rate at which the function ran the last time; None before the first time."""
        found = self._told.get("estimated_seconds")
        return None if found is None else float(found)

    def __getitem__(self, key: str) -> Any:
        return self._told[key]

    def __iter__(self) -> Any:
        return iter(self._told)

    def __len__(self) -> int:
        return len(self._told)

    def __str__(self) -> str:
        return "\n".join([self.what, *(f"  {name:<10} {text}" for name, text in self._lines())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        changes = [(word, self._told[key] or 0, COLOURS[key]) for key, word in COUNTS.items()]
        states = [(word, n, STATES[word]) for word, n in (self.rows_by_state or {}).items()]
        lines = [
            (name, join([text, PICTURES[name](changes, states)]) if name in PICTURES else text)
            for name, text in self._lines()
        ]
        return table(self.what, lines)

    def _lines(self) -> list[tuple[str, str]]:
        told = self._told
        found = [("mode", f"{self.mode}: {self.reason}")]
        found.append(("rows", self._show_rows()))
        if told.get("rows_by_state"):
            found.append(("now", show_states(told["rows_by_state"])))
        calls = self.function_calls
        shown = self._show_unknown("function_calls") if calls is None else f"{calls:,}"
        if why := told.get("calls_by_reason"):
            parts = [f"{n:,} {reason.replace('_', ' ')}" for reason, n in why.items() if n]
            shown += f" ({', '.join(parts)})" if parts else ""
        found.append(("calls", shown))
        if "columns_computed" in told:
            found += self._show_alteration()
        if told.get("rows_left"):
            found.append(("left", f"{told['rows_left']:,} rows for a later one"))
        if told.get("obstacle"):
            found.append(("follows", f"as a whole: {told['obstacle']}"))
        for name, pair in (told.get("source_versions") or {}).items():
            found.append(
                (
                    "source",
                    f"{name.replace('$', '.')}: version {pair['from'] or '-'} -> {pair['to']}",
                )
            )
        for name, plan in (told.get("upstream") or {}).items():
            found.append(("before", f"{name.replace('$', '.')}: {plan['mode']}, {plan['reason']}"))
        if self.estimated_seconds is not None:
            # What Spark takes for the query itself is not known before.
            found.append(("time", f"functions about {self.estimated_seconds:,.1f} s on one core"))
        return found

    def _show_alteration(self) -> list[tuple[str, str]]:
        """What an alteration does to rows and columns that are there."""
        told, staying = self._told, self._told.get("rows_staying")
        named = {word: told[f"columns_{word}"] for word in ("computed", "dropped", "kept")}
        parts = [f"{', '.join(names)} {word}" for word, names in named.items() if names]
        found = [("columns", "; ".join(parts))]
        if staying is not None:
            found.insert(0, ("stay", f"{staying:,} rows"))
        elif "rows_staying" in self.unknown:
            found.insert(0, ("stay", self._show_unknown("rows_staying")))
        return found

    def _show_rows(self) -> str:
        """The counts, then those that are unknown, once for each reason."""
        parts = [f"{self._told[key]:,} {word}" for key, word in COUNTS.items() if self._told[key]]
        unknown: dict[str, list[str]] = {}
        for key, word in COUNTS.items():
            if self._told[key] is None:
                unknown.setdefault(self._show_unknown(key), []).append(word)
        parts += [f"{' and '.join(words)}: {why}" for why, words in unknown.items()]
        return ", ".join(parts) or "none to change"

    def _show_unknown(self, key: str) -> str:
        return f"unknown, because {self.unknown.get(key, 'only running it tells')}"
