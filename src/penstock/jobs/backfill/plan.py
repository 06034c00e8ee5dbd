"""The plan of a backfill: which fragments of a table get a new file of the column, and why.

A file that a backfill wrote tells by its name what it was computed from: the expression, the files
of the inputs, and the `where`. So a fragment is fresh exactly when the name of its file is the one
that this backfill would give; nothing else has to be remembered, and an attempt that comes after a
killed one finds what was committed already. A column that a function fills is planned row by row
(`jobs.backfill.plan_rows`), with the same names.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct, json, structs

from penstock.jobs.engine.fragment_work import PREFIX, FragmentWork, is_file_of
from penstock.model.fragments import FragmentState

Mode = Literal["full", "incremental"]

# A Spark task costs about 60 ms of core time, so there are only as many as there are slots until
# each would compute more rows than this.
ROWS_PER_TASK = 4_000_000


class RowCounts(Struct, frozen=True, kw_only=True):
    """How many rows of a column are in each state; together they are all rows."""

    fresh: int = 0
    stale: int = 0
    unfilled: int = 0
    failed: int = 0
    # The stale ones; None where only whole fragments are looked at.
    stale_by_reason: dict[str, int] | None = None

    @property
    def not_fresh(self) -> int:
        return self.stale + self.unfilled + self.failed

    @property
    def by_state(self) -> dict[str, int]:
        return {
            "fresh": self.fresh,
            "stale": self.stale,
            "unfilled": self.unfilled,
            "failed": self.failed,
        }


class Watermark(Struct, frozen=True):
    """What a successful backfill of the column left: every row of a version, but some, is fresh.

    The version is that of a branch, and its transaction tells it from another of the same number.
    For a function there also is which version of it filled the rows, the names that its columns
    had then, and the file that lists the rows that are not filled.
    """

    version: int
    function: str | None = None
    unfilled: str | None = None
    unfilled_rows: int = 0
    branch: str = ""
    transaction: str = ""
    inputs: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    # How many rows of the version are in each state.
    counts: RowCounts | None = None


class Snapshot(Struct, frozen=True):
    """One version of a table, as a backfill sees it."""

    version: int
    column: str
    fragments: tuple[FragmentState, ...]
    watermark: Watermark | None = None


class BackfillOptions(Struct, frozen=True, kw_only=True):
    """The part of a backfill's spec that decides its plan."""

    expression: str | None = None
    # What the function is known by, when it is one, and what binds its columns to it.
    function: str | None = None
    binding: str = ""
    where: str | None = None
    num_frags: int | None = None
    task_size: int | None = None
    concurrency: int | None = None
    commit_granularity: int | None = None
    force: bool = False
    # The job that computes again what it forces; a later attempt of it need not.
    job: str = ""


class UpToDate(Struct, frozen=True):
    """There is nothing to compute."""

    reason: str
    mode: Mode = "incremental"
    rows: int = 0
    function_calls: int = 0
    fragments: int = 0
    rows_left: int = 0
    calls_by_reason: dict[str, int] | None = None
    # As it is before; None when not every row was looked at.
    counts: RowCounts | None = None

    def to_json(self) -> dict[str, Any]:
        return _to_json(self)


class Fill(Struct, frozen=True):
    """Compute the column in these fragments."""

    mode: Mode
    reason: str
    work: tuple[FragmentWork, ...]
    rows_left: int = 0
    calls_by_reason: dict[str, int] | None = None
    counts: RowCounts | None = None

    @property
    def rows(self) -> int:
        return sum(work.rows for work in self.work)

    @property
    def function_calls(self) -> int:
        return self.rows

    @property
    def fragments(self) -> int:
        return len(self.work)

    def to_json(self) -> dict[str, Any]:
        return _to_json(self)


def plan_backfill(snapshot: Snapshot, options: BackfillOptions) -> UpToDate | Fill:
    """Decide what a backfill computes."""
    keys = {fragment.id: fragment_key(fragment, options) for fragment in snapshot.fragments}
    stale = [f for f in snapshot.fragments if not _is_fresh(f, keys[f.id], options)]
    # Without a match the file would stay as it is.
    needed = [f for f in stale if f.matching_rows]
    taken = needed[: options.num_frags]
    counts = count_fragments(snapshot, options)
    if not taken:
        return UpToDate(_why_nothing(snapshot, stale), counts=counts)
    complete = len(taken) == len(snapshot.fragments)
    return Fill(
        "full" if complete else "incremental",
        _why(snapshot, options, needed, len(taken)),
        tuple(
            FragmentWork(
                f.id,
                keys[f.id],
                f.physical_rows,
                f.rows,
                f.matching_rows,
                f.input_files,
                f.target_files,
            )
            for f in taken
        ),
        counts=counts,
    )


def count_fragments(snapshot: Snapshot, options: BackfillOptions) -> RowCounts:
    """How many rows are in each state, where a row is what its whole fragment is."""
    whole = structs.replace(options, where=None, force=False)
    fresh = unfilled = 0
    for fragment in snapshot.fragments:
        if not fragment.target_files:
            unfilled += fragment.rows
        elif _is_fresh(fragment, fragment_key(fragment, whole), whole):
            fresh += fragment.rows
    total = sum(fragment.rows for fragment in snapshot.fragments)
    return RowCounts(fresh=fresh, stale=total - fresh - unfilled, unfilled=unfilled)


def plan_tasks(
    work: Sequence[FragmentWork], options: BackfillOptions, slots: int
) -> tuple[tuple[int, ...], ...]:
    """Divide fragments among Spark tasks: each task has the ids that it goes through in order."""
    rows = sum(each.rows for each in work)
    if options.task_size:
        count = -(-rows // options.task_size)
    else:
        count = max(slots, -(-rows // ROWS_PER_TASK))
    # One task is one place to work at, so their number bounds how many work at once.
    if options.concurrency:
        count = min(count, options.concurrency)
    count = max(1, min(count, len(work)))
    tasks: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for each in sorted(work, key=lambda each: -each.rows):
        least = loads.index(min(loads))
        tasks[least].append(each.id)
        loads[least] += each.rows
    return tuple(tuple(sorted(task)) for task in tasks)


def fragment_key(fragment: FragmentState, options: BackfillOptions) -> str:
    """What the column's file of this fragment is made from, as 32 characters."""
    made_from: list[Any] = [options.expression, fragment.physical_rows, fragment.input_files]
    if options.function is not None:
        # Which rows are filled is told beside the key. A column that was dropped may have had the
        # same name and, of another function, the same version.
        made_from[0] = [options.function, options.binding]
    elif options.where is not None:
        made_from += [options.where, fragment.other_files]
    return hashlib.sha256(json.encode(made_from)).hexdigest()[:32]


def show_counts(counts: RowCounts | None) -> dict[str, Any]:
    """Counts as plans, results and descriptions tell them; null where they are not known."""
    return {
        "rows_by_state": None if counts is None else counts.by_state,
        "stale_by_reason": None if counts is None else counts.stale_by_reason,
    }


def _is_fresh(fragment: FragmentState, key: str, options: BackfillOptions) -> bool:
    if len(fragment.target_files) != 1:
        return False
    name = fragment.target_files[0]
    if options.force and not is_file_of(name, options.job):
        return False
    # What was filled in whole needs nothing, whichever of its rows are asked for now.
    whole = fragment_key(fragment, structs.replace(options, where=None))
    return name.startswith((f"{PREFIX}-{key}-", f"{PREFIX}-{whole}-"))


def _why(
    snapshot: Snapshot, options: BackfillOptions, needed: Sequence[FragmentState], taken: int
) -> str:
    never = sum(not fragment.target_files for fragment in needed)
    total = len(snapshot.fragments)
    if options.force:
        why = f"all {len(needed)} of {total} fragments were asked for by force"
    elif never == total:
        why = f"the column was never filled in any of {total} fragments"
    else:
        changed = len(needed) - never
        since = f" since version {snapshot.watermark.version}" if snapshot.watermark else ""
        why = (
            f"of {total} fragments {never} were never filled and {changed} have other inputs, "
            f"another expression or foreign values{since}"
        )
    return why if taken == len(needed) else f"{why}; the first {taken} are taken"


def _why_nothing(snapshot: Snapshot, stale: Sequence[FragmentState]) -> str:
    if not snapshot.fragments:
        return "the table has no rows"
    if stale:
        return "no row that needs work matches where"
    return f"every fragment of version {snapshot.version} was computed from its present inputs"


def _to_json(plan: UpToDate | Fill) -> dict[str, Any]:
    shown = {
        "mode": plan.mode,
        "reason": plan.reason,
        "rows_to_insert": 0,
        "rows_to_update": plan.rows,
        "rows_to_delete": 0,
        "function_calls": plan.function_calls,
        "fragments": plan.fragments,
        "estimated_seconds": None,
        **show_counts(plan.counts),
    }
    if plan.calls_by_reason is not None:
        shown |= {"calls_by_reason": plan.calls_by_reason, "rows_left": plan.rows_left}
    return shown
