"""Failed rows of a running job: reported to the ledger, and counted against the limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.errors import FunctionFailed
from penstock.jobs.engine.attempt import Attempt
from penstock.model.functions import Function, RowError

# Offsets by fragment.
Places = Mapping[int, set[int]]


@dataclass(slots=True, eq=False)
class _FunctionFailures:
    """The rows that one function failed on."""

    function: Function
    # A task that Spark runs again reports the same rows again.
    known: dict[int, set[int]] = field(default_factory=dict)
    first: RowError | None = None
    first_earlier: RowError | None = None

    def is_new(self, row: RowError) -> bool:
        return row.offset not in self.known.get(row.fragment, ())

    def add(self, row: RowError) -> None:
        self.known.setdefault(row.fragment, set()).add(row.offset)


class Failures:
    """The failed rows of one attempt, and how many each of its functions may have."""

    def __init__(self, functions: Sequence[Function], attempt: Attempt) -> None:
        self._failed = [_FunctionFailures(function) for function in functions]
        self._by_column = {
            each.function.outputs[0].column: each for each in self._failed if each.function.outputs
        }
        self._attempt = attempt
        # Rows without a value in files that are used, some of them by earlier attempts.
        self._in_files: dict[int, int] = {}
        self._total = 0

    @property
    def rows(self) -> int:
        """The number of failed rows; a row counts once, however many functions failed on it."""
        return self._count([each.known for each in self._failed])

    def expect(self, total: int) -> None:
        """Set how many rows the job computes in all."""
        self._total = total

    def add(self, errors: Sequence[RowError]) -> None:
        """Add rows that failed in this attempt."""
        news = [row for row in errors if (of := self._of(row)) is None or of.is_new(row)]
        for row in sorted(news, key=_place):
            if (of := self._of(row)) is not None:
                of.first = of.first or row
                of.add(row)
        if news:
            self._attempt.errors(news)

    def add_earlier(self, errors: Sequence[RowError]) -> None:
        """Add rows that failed in earlier attempts, which may succeed now."""
        for row in sorted(errors, key=_place, reverse=True):
            if (of := self._of(row)) is not None:
                of.first_earlier = row
        if errors:
            self._attempt.errors(errors)

    def use_file(self, fragment: int, failed: int) -> None:
        """Set how many rows of a fragment have no value in its new file."""
        self._in_files[fragment] = failed

    def check(self) -> None:
        """Raise FunctionFailed when a function failed on more rows than allowed."""
        for each in self._failed:
            first, rows = each.first or each.first_earlier, self._count([each.known])
            if first is not None and rows:
                _judge(each.function, first, rows, self._total)

    def _of(self, row: RowError) -> _FunctionFailures | None:
        """Whose failure it is; without a column, it is the only function's."""
        return self._by_column.get(row.column) or next(iter(self._failed), None)

    def _count(self, known: Sequence[Places]) -> int:
        fragments = self._in_files.keys() | {fragment for each in known for fragment in each}
        return sum(
            max(len(set().union(*(each.get(f, ()) for each in known))), self._in_files.get(f, 0))
            for f in fragments
        )


def _judge(function: Function, first: RowError, rows: int, total: int) -> None:
    """Raise FunctionFailed unless so many rows may fail."""
    on_error = function.on_error
    what = f"function {function.name} (version {function.version}) failed"
    where = f"row id {first.row_id} (fragment {first.fragment}, offset {first.offset})"
    if function.kind == "udtf":
        # Its input is a partition, so the message says so.
        where = first.inputs
    cause = f"{first.exception}: {first.message}"
    limits = [
        (f"max_failed_rows = {on_error.max_failed_rows}", on_error.max_failed_rows),
        (
            f"max_failed_fraction = {on_error.max_failed_fraction} of {total} rows",
            None if on_error.max_failed_fraction is None else on_error.max_failed_fraction * total,
        ),
    ]
    for shown, limit in limits:
        if limit is not None and rows > limit:
            raise FunctionFailed(
                f"{what} on {rows} rows, more than {shown}; the first is {where}: {cause}",
                detail=first.traceback,
            )
    has_limit = any(limit is not None for _, limit in limits)
    if on_error.action == "fail" or (on_error.action == "retry" and not has_limit):
        raise FunctionFailed(f"{what} at {where}: {cause}", detail=first.traceback)


def _place(row: RowError) -> tuple[int, int]:
    return row.fragment, row.offset
