"""Failed rows: retry them, leave them empty, or end the job."""

import random
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.jobs.engine.guard import Stopped
from penstock.jobs.functions.nulls import find_called, spread
from penstock.jobs.functions.outcomes import Caller, Failure, Outcome
from penstock.model.functions import Function, OnError

FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS = 1.0, 60.0
# How long a service may say "slow down" without one row succeeding.
PATIENCE_SECONDS = 600.0
# How often a wait checks whether the job was stopped.
LOOK_SECONDS = 0.5


class RowFailed(Exception):
    """A row of a batch failed, and with it the job."""

    def __init__(
        self,
        row: int,
        failure: Failure,
        note: str = "",
        tries: int = 1,
        others: dict[int, tuple[Failure, int]] | None = None,
    ) -> None:
        super().__init__(failure.text)
        self.row = row
        # Rows that failed as well.
        self.others = others or {}
        self.failure = failure
        self.note = note
        self.tries = tries
        # What other rows of the batch have: their places, and their values.
        self.partial: tuple[Any, pa.RecordBatch] | None = None


@dataclass(slots=True)
class BatchValues:
    """The values of a batch, null in the rows that failed, and what it took."""

    values: pa.RecordBatch
    # By row: why, and how many times it was tried.
    failures: dict[int, tuple[Failure, int]] = field(default_factory=dict)
    # Rows that the function was given, once for each time, and those that it was not: they are null
    # because an input is.
    calls: int = 0
    rows_null: int = 0
    # Time in the function: waits are left out, and calls that were refused.
    seconds: float = 0.0


def may_skip(on_error: OnError) -> bool:
    """Whether a row that failed for good may be left empty."""
    limits = on_error.max_failed_rows, on_error.max_failed_fraction
    return on_error.action == "skip" or (on_error.action == "retry" and limits != (None, None))


class Policy:
    """Applies `on_error` to what a caller returns; the threads of a task share one."""

    def __init__(
        self,
        function: Function,
        caller: Caller,
        kinds: pa.Schema,
        is_stopped: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._function, self._on_error = function, function.on_error
        self._caller = caller
        self._kinds = kinds
        self._is_stopped = is_stopped
        self._sleep = sleep
        self._lock = threading.Lock()
        self._limited_since: float | None = None
        self._failed = 0

    def compute(self, batch: pa.RecordBatch) -> BatchValues:
        """Compute a batch; raises RowFailed for the row that ends the job."""
        called = self.find_called(batch)
        if called is None:
            return self._compute(batch)
        rows = np.flatnonzero(called)
        try:
            done = self._compute(batch.take(pa.array(rows)))
        except (RowFailed, Stopped) as error:
            if isinstance(error, RowFailed):
                error.row = int(rows[error.row])
                error.others = {int(rows[row]): told for row, told in error.others.items()}
            if error.partial is not None:
                error.partial = rows[error.partial[0]], error.partial[1]
            raise
        done.values = spread(done.values, called)
        done.failures = {int(rows[row]): told for row, told in done.failures.items()}
        done.rows_null = batch.num_rows - len(rows)
        return done

    def find_called(self, batch: pa.RecordBatch) -> Any:
        """Which rows of a batch, which begins with the inputs, need a call; None for all."""
        return find_called(batch.columns, self._function)

    def _compute(self, batch: pa.RecordBatch) -> BatchValues:
        done = BatchValues(batch)
        done.values, failed = self._try(batch, done)
        tries = dict.fromkeys(failed, 1)
        try:
            self._try_again(batch, done, failed, tries)
            self._settle(failed, tries)
        except (RowFailed, Stopped) as error:
            error.partial = _without(failed, done.values)
            raise
        done.failures = {row: (failure, tries[row]) for row, failure in sorted(failed.items())}
        return done

    def _try_again(
        self,
        batch: pa.RecordBatch,
        done: BatchValues,
        failed: dict[int, Failure],
        tries: dict[int, int],
    ) -> None:
        """Try the rows that failed again, as often as `on_error` says."""
        for attempt in range(1, self._on_error.max_attempts):
            again = [row for row in sorted(failed) if self._is_tried_again(failed[row])]
            if not again:
                break
            self._pause(self._on_error.backoff_seconds * 2 ** (attempt - 1))
            try:
                values, still = self._try(batch.take(again), done)
            except RowFailed as error:
                error.row = again[error.row]
                error.tries = tries[error.row] + 1
                raise
            done.values = _put(done.values, again, values)
            for index, row in enumerate(again):
                tries[row] += 1
                if index in still:
                    failed[row] = still[index]
                else:
                    del failed[row]

    def _try(
        self, batch: pa.RecordBatch, done: BatchValues
    ) -> tuple[pa.RecordBatch, dict[int, Failure]]:
        """The values of a batch whose rows are tried once, and those that failed."""
        failed: dict[int, Failure] = {}
        if self._caller.calls_at_once:
            return self._try_at_once(batch, done, failed), failed
        parts: list[pa.RecordBatch] = []
        try:
            self._try_in_turn(batch, done, parts, failed)
        except (RowFailed, Stopped) as error:
            error.partial = _without(failed, _join(parts, self._kinds))
            raise
        return _join(parts, self._kinds), failed

    def _try_at_once(
        self, batch: pa.RecordBatch, done: BatchValues, failed: dict[int, Failure]
    ) -> pa.RecordBatch:
        """The same where rows are called at once: any of them may be left for another round."""
        values = make_nulls(batch.num_rows, self._kinds)
        rows, waits = np.arange(batch.num_rows), 0
        try:
            while len(rows):
                asked = rows
                outcome = self._run(batch.take(pa.array(rows)), done)
                if outcome.values is None or outcome.whole is not None:
                    outcome = _of_first(outcome, self._kinds)
                limits = {n: f for n, f in outcome.failures.items() if f.is_rate_limit}
                lost = {n: f for n, f in outcome.failures.items() if n not in limits}
                left = {*outcome.left, *limits, *range(outcome.rows, len(asked))}
                good = [n for n in range(outcome.rows) if n not in left and n not in lost]
                values = _put(values, asked[good].tolist(), outcome.take(good))
                failed |= {int(asked[n]): failure for n, failure in lost.items()}
                rows = asked[sorted(left)]
                if outcome.is_stopped:
                    raise Stopped
                if lost and self._on_error.action == "fail":
                    raise RowFailed(int(asked[min(lost)]), lost[min(lost)])
                if good:
                    waits = 0
                    with self._lock:
                        self._limited_since = None
                if limits:
                    first = max(limits, key=lambda n: limits[n].retry_after_seconds or 0)
                    self._wait(int(asked[first]), limits[first], waits)
                    waits += 1
        except (RowFailed, Stopped) as error:
            error.partial = _without({*rows.tolist(), *failed}, values)
            raise
        return values

    def _try_in_turn(
        self,
        batch: pa.RecordBatch,
        done: BatchValues,
        parts: list[pa.RecordBatch],
        failed: dict[int, Failure],
    ) -> None:
        """The same where rows have values in their order, up to one that was refused."""
        ranges = [(0, batch.num_rows)]
        waits = 0
        while ranges:
            start, end = ranges.pop()
            if start == end:
                continue
            outcome = self._run(batch.slice(start, end - start), done)
            whole = outcome.whole
            if whole is not None and whole.is_final:
                raise RowFailed(start, whole)
            if whole is not None and not whole.is_rate_limit and end - start > 1:
                middle = (start + end) // 2
                ranges += [(middle, end), (start, middle)]
                continue
            if whole is not None:
                outcome = Outcome(make_nulls(1, self._kinds), {0: whole})
            taken, limit = self._take(start, outcome, parts, failed)
            ranges.append((start + taken, end))
            if taken > len(outcome.failures):
                waits = 0
            if limit is not None:
                self._wait(start + taken, limit, waits)
                waits += 1

    def _take(
        self,
        start: int,
        outcome: Outcome,
        parts: list[pa.RecordBatch],
        failed: dict[int, Failure],
    ) -> tuple[int, Failure | None]:
        """Keep rows up to one that was refused for a while; returns how many, and that refusal."""
        values = outcome.values
        assert values is not None
        if values.num_rows > len(outcome.failures):
            with self._lock:
                self._limited_since = None
        for row in sorted(outcome.failures):
            failure = outcome.failures[row]
            if failure.is_rate_limit:
                parts.append(values.slice(0, row))
                return row, failure
            if self._on_error.action == "fail":
                parts.append(values.slice(0, row))
                raise RowFailed(start + row, failure)
            failed[start + row] = failure
        parts.append(values)
        return values.num_rows, None

    def _run(self, batch: pa.RecordBatch, done: BatchValues) -> Outcome:
        started = time.perf_counter()
        outcome = self._caller.run(batch, go_on=self._on_error.action != "fail")
        if outcome.whole is None or not outcome.whole.is_rate_limit:
            done.seconds += time.perf_counter() - started
        called = outcome.rows - len(outcome.left)
        done.calls += batch.num_rows if outcome.whole is not None else called
        return outcome

    def _is_tried_again(self, failure: Failure) -> bool:
        on_error = self._on_error
        if on_error.action != "retry":
            return False
        return not on_error.match or bool(set(on_error.match) & set(failure.names))

    def _settle(self, failed: dict[int, Failure], tries: dict[int, int]) -> None:
        """Let the rows be empty, or raise."""
        if not failed:
            return
        first = min(failed)
        if not may_skip(self._on_error):
            raise RowFailed(first, failed[first], tries=tries[first])
        with self._lock:
            self._failed += len(failed)
            total = self._failed
        most = self._on_error.max_failed_rows
        if most is not None and total > most:
            note = f"more than {most} rows failed"
            others = {row: (failed[row], tries[row]) for row in sorted(failed) if row != first}
            raise RowFailed(first, failed[first], note, tries[first], others)

    def _wait(self, row: int, failure: Failure, waits: int) -> None:
        """Wait as long as a service that refused a row wants."""
        now = time.monotonic()
        with self._lock:
            since = self._limited_since = self._limited_since or now
        seconds = min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2**waits) * random.uniform(0.75, 1.25)
        if failure.retry_after_seconds is not None:
            seconds = failure.retry_after_seconds
        if now + seconds - since > PATIENCE_SECONDS:
            minutes = f"{PATIENCE_SECONDS / 60:g} minutes"
            raise RowFailed(row, failure, f"given up after {minutes} without one success")
        self._pause(seconds)

    def _pause(self, seconds: float) -> None:
        while seconds > 0:
            if self._is_stopped():
                raise Stopped
            self._sleep(min(seconds, LOOK_SECONDS))
            seconds -= LOOK_SECONDS


def _of_first(outcome: Outcome, kinds: pa.Schema) -> Outcome:
    """A failure of a batch as one of its first row, so that the others are called without it."""
    assert outcome.whole is not None
    return Outcome(make_nulls(1, kinds), {0: outcome.whole})


def _without(rows: Collection[int], values: pa.RecordBatch) -> tuple[Any, pa.RecordBatch]:
    """The places and values of other rows than these."""
    places = np.array([n for n in range(values.num_rows) if n not in rows], np.int64)
    return places, values.take(pa.array(places))


def _join(parts: Sequence[pa.RecordBatch], kinds: pa.Schema) -> pa.RecordBatch:
    if not parts:
        return make_nulls(0, kinds)
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def _put(values: pa.RecordBatch, rows: list[int], new: pa.RecordBatch) -> pa.RecordBatch:
    """The values, with new ones in some rows."""
    where_from = np.arange(values.num_rows)
    where_from[rows] = values.num_rows + np.arange(len(rows))
    return pa.concat_batches([values, new]).take(pa.array(where_from))


def make_nulls(count: int, kinds: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(count, field.type) for field in kinds], schema=kinds)
