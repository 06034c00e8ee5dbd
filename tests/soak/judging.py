"""The judge of a history: holds what jobs did against the model, value by value, call by call."""

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.harness.jobs.function_tables import FunctionTable
from tests.harness.views.local_views import LocalView
from tests.soak.jobs import CHECKPOINT, TASKS, Ended
from tests.soak.model import Line, Model, Row, Rows, holds, keys_that_stay, line, needs, value_of
from tests.soak.views import kind_of, row_ids


@dataclass
class Begun:
    """What was there when a job began."""

    version: int
    rows: dict[tuple[Any, ...], int] = field(default_factory=dict)


@dataclass
class Owed:
    """Calls of jobs that were canceled, which the next job need not make again."""

    made: Counter[Line] = field(default_factory=Counter)
    allowed: Counter[Line] = field(default_factory=Counter)
    cuts: int = 0


class Judge:
    """Knows which version each view has, and what was begun."""

    def __init__(self, model: Model, views: Mapping[str, LocalView], table: FunctionTable) -> None:
        self.model = model
        self.views = views
        self.table = table
        self.versions: dict[str, int | None] = dict.fromkeys(views)
        self.owed = {name: Owed() for name in (*views, "source")}

    def begin(self, name: str) -> Begun:
        version = max(self.model.past)
        return Begun(version, row_ids(self.views[name]) if name in self.views else {})

    def needed_now(self, name: str) -> int:
        """About how many calls a job that begins now will make."""
        return (self.model.stale() if name == "source" else self.needed(name)).total()

    def needed(self, name: str, version: int | None = None) -> Counter[Line]:
        had = self.versions[name]
        before = None if had is None else self.model.at(had)
        return needs(
            kind_of(name), before, self.model.now if version is None else self.model.at(version)
        )

    def end(self, name: str, begun: Begun, ended: Ended, disturbed: str) -> int:
        """Judge a job; returns how many calls were made again after it was cut off.

        It was disturbed by writers of its own, of another job that ran at once, or by none ("").
        """
        if name == "source":
            return self._end_fill(begun, ended, disturbed)
        since = [v for v in self.model.past if v >= begun.version]
        if ended.result is None:
            cap = _most(self.needed(name, version) for version in since)
            return self._owe(name, ended, cap)
        version = ended.result.source_versions["n$source"]
        assert version >= begun.version, f"{name} follows {version}, behind {begun.version}"
        repeated = self._count(name, ended, self.needed(name, version), exact=True)
        self._check_view(name, version, begun)
        self.versions[name] = version
        return repeated

    # Calls -----------------------------------------------------------------------------------

    def _owe(self, name: str, ended: Ended, cap: Counter[Line]) -> int:
        owed = self.owed[name]
        owed.made += ended.calls
        owed.allowed |= cap
        owed.cuts += ended.cuts
        return 0

    def _count(self, name: str, ended: Ended, needed: Counter[Line], exact: bool) -> int:
        owed, self.owed[name] = self.owed[name], Owed()
        made, cuts = owed.made + ended.calls, owed.cuts + ended.cuts
        missing = needed - made
        assert not exact or not missing, f"{name} did not call {_show(missing)}"
        more = made - (needed | owed.allowed)
        in_flight = cuts * TASKS * (1 if kind_of(name) == "parts" else CHECKPOINT)
        assert more.total() <= in_flight, (
            f"{name} made {more.total()} calls that nothing needed ({in_flight} were in flight): "
            f"{_show(more)}"
        )
        return more.total()

    # Values ----------------------------------------------------------------------------------

    def _check_view(self, name: str, version: int, begun: Begun) -> None:
        found = row_ids(self.views[name])
        expected = holds(kind_of(name), self.model.at(version))
        assert sorted(found, key=repr) == expected, (
            f"{name} at version {version} lacks {_show(set(expected) - set(found))} and has "
            f"{_show(set(found) - set(expected))}"
        )
        had = self.versions[name]
        if had is None:
            return
        stay = keys_that_stay(kind_of(name), self.model.at(had), self.model.at(version))
        moved = {row for row in stay if found[row] != begun.rows[row]}
        assert not moved, f"{name} wrote {len(moved)} rows again that stayed: {_show(moved)}"

    def _end_fill(self, begun: Begun, ended: Ended, disturbed: str) -> int:
        since = sorted(v for v in self.model.past if v >= begun.version)
        if not disturbed and ended.result is not None:
            repeated = self._count("source", ended, self.model.stale(), exact=True)
            for row in self.model.now.values():
                row.filled = row.text
            self.model.note(self.table.open().version)
            self._check_column()
            return repeated
        cap = self._stale_runs(since)
        self._learn(since)
        if ended.result is None:
            return self._owe("source", ended, cap)
        left, shown = self.model.stale().total(), ended.result.rows_left
        # Others may have written after its end.
        assert shown == left or disturbed == "other", f"rows_left {shown}, but {left} are stale"
        # Where a restore took a value away meanwhile, the row is the next job's.
        stale = ([r for r in self.model.at(v).values() if not r.is_fresh] for v in since)
        calm = set.intersection(*({_key(row) for row in rows} for rows in stale))
        calm -= self._taken_away(ended.result.committed_versions)
        lost = [r.id for r in self.model.now.values() if not r.is_fresh and _key(r) in calm]
        assert not lost, f"rows that nobody touched were not filled: {_show(lost)}"
        return self._count("source", ended, cap, exact=False)

    def _taken_away(self, committed: Sequence[int]) -> set[tuple[Any, ...]]:
        """The rows that a job filled in a version of its own before a restore."""
        found: set[tuple[Any, ...]] = set()
        for version in (v for v in committed if any(v < each for each in self.model.restored)):
            rows = copy.deepcopy(self.model.at(version))
            self._read(rows, self.table.open().checkout_version(version))
            found |= {_key(row) for row in rows.values() if row.is_fresh}
        return found

    def _stale_runs(self, versions: list[int]) -> Counter[Line]:
        """The calls that writers made necessary meanwhile, beside those of the beginning."""
        found: Counter[Line] = Counter()
        before: set[Line] = set()
        for version in versions:
            rows = self.model.at(version).values()
            now = {line(row.id, row.text) for row in rows if not row.is_fresh}
            found.update(now - before)
            before = now
        return found

    def _learn(self, versions: list[int]) -> None:
        """What a disturbed job filled is in the table; every value must be one of its row."""
        newest = self.table.open()
        for version in {*versions, newest.version}:
            rows = self.model.past.get(version, self.model.now)
            self._read(rows, newest.checkout_version(version))
        self._read(self.model.now, newest)
        self.model.note(newest.version)

    def _read(self, rows: Rows, dataset: Any) -> None:
        values = dataset.to_table(columns=["id", "value"]).to_pylist()
        for found in values:
            row, value = rows[found["id"]], found["value"]
            start = value_of(row.id, "")
            assert value is None or value.startswith(start), f"row {row.id} has {value!r}"
            row.filled = None if value is None else value.removeprefix(start)

    def _check_column(self) -> None:
        found = self.table.values()
        wrong = {
            id for id, row in self.model.now.items() if found.get(id) != value_of(id, row.text)
        }
        assert not wrong, f"{len(wrong)} values are wrong: {_show(wrong)}"
        assert len(found) == len(self.model.now)

    def check_left(self, steps: list[str]) -> None:
        """At the end nothing is left of jobs."""
        assert not self.table.loose_files(), f"loose files: {self.table.loose_files()}"
        for name, view in self.views.items():
            assert not view.loose_files(), f"loose files of {name}: {view.loose_files()}"


def _key(row: Row) -> tuple[Any, ...]:
    return row.id, row.text, row.x, row.kind, row.other


def _most(counts: Any) -> Counter[Line]:
    found: Counter[Line] = Counter()
    for each in counts:
        found |= each
    return found


def _show(what: Any) -> str:
    return ", ".join(map(str, sorted(what, key=repr)[:5])) + (" ..." if len(what) > 5 else "")
