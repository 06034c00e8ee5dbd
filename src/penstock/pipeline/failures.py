"""Rows that a function fails on while a backfill runs: told to the ledger, and counted."""

from collections.abc import Sequence

from penstock.errors import FunctionFailed
from penstock.model.functions import Function, RowError
from penstock.pipeline.attempt import Attempt


class Failures:
    """The failed rows of one attempt, and how many its function may have."""

    def __init__(self, function: Function | None, attempt: Attempt) -> None:
        self._function = function
        self._attempt = attempt
        # By fragment and offset: a task that Spark runs again tells of the same rows again.
        self._known: dict[int, set[int]] = {}
        # Rows without a value in files that are used, some of them made by earlier attempts.
        self._in_files: dict[int, int] = {}
        self._first: RowError | None = None
        self._first_earlier: RowError | None = None
        self._total = 0

    @property
    def rows(self) -> int:
        fragments = self._known.keys() | self._in_files.keys()
        return sum(max(len(self._known.get(f, ())), self._in_files.get(f, 0)) for f in fragments)

    def expect(self, total: int) -> None:
        """Say how many rows the job computes in all."""
        self._total = total

    def add(self, errors: Sequence[RowError]) -> None:
        """Rows that failed in this attempt."""
        news = [row for row in errors if row.offset not in self._known.get(row.fragment, ())]
        if news:
            self._first = self._first or min(news, key=_place)
            for row in news:
                self._known.setdefault(row.fragment, set()).add(row.offset)
            self._attempt.errors(news)

    def add_earlier(self, errors: Sequence[RowError]) -> None:
        """Rows that failed in attempts before this one, which may go well now."""
        if errors:
            self._first_earlier = min(errors, key=_place)
            self._attempt.errors(errors)

    def use_file(self, fragment: int, failed: int) -> None:
        """Say how many rows of a fragment have no value in the file that it gets."""
        self._in_files[fragment] = failed

    def check(self) -> None:
        """Raise FunctionFailed when there are more than the function may have."""
        function, first = self._function, self._first or self._first_earlier
        if function is None or first is None or not self.rows:
            return
        on_error = function.on_error
        what = f"function {function.name} (version {function.version}) failed"
        where = f"row id {first.row_id} (fragment {first.fragment}, offset {first.offset})"
        cause = f"{first.exception}: {first.message}"
        limits = [
            (f"max_failed_rows = {on_error.max_failed_rows}", on_error.max_failed_rows),
            (
                f"max_failed_fraction = {on_error.max_failed_fraction} of {self._total} rows",
                None
                if on_error.max_failed_fraction is None
                else on_error.max_failed_fraction * self._total,
            ),
        ]
        for shown, limit in limits:
            if limit is not None and self.rows > limit:
                raise FunctionFailed(
                    f"{what} on {self.rows} rows, more than {shown}; the first is {where}: {cause}",
                    detail=first.traceback,
                )
        has_limit = any(limit is not None for _, limit in limits)
        if on_error.action == "fail" or (on_error.action == "retry" and not has_limit):
            raise FunctionFailed(f"{what} at {where}: {cause}", detail=first.traceback)


def _place(row: RowError) -> tuple[int, int]:
    return row.fragment, row.offset
