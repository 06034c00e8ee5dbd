"""One attempt at a leased job: its heartbeats, its fence, and what it tells on the way."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from penstock.errors import LeaseLost, PenstockError, Unavailable
from penstock.jobs.engine.attempt import JobCanceled, Value
from penstock.model.functions import RowError
from penstock.runner.client import Ending, Lease, LogLine, Pulse, ServerClient

T = TypeVar("T")

log = logging.getLogger(__name__)

# While something moves it is told at least so often, however rare heartbeats are.
MOVING_SECONDS = 1.0
AWAY_SECONDS = 0.5
# So long an answer of the server's stands, if that is but a small part of the lease that it gave:
# nobody else can have the job before that one is over.
RECENT_SECONDS, RECENT_PART = 0.25, 0.05
# How many lines wait to be sent, the newest ones, and what one report carries of them.
MAX_LINES, MAX_LINE = 10_000, 8_000
MAX_REPORT_LINES, MAX_REPORT_CHARACTERS = 1_000, 500_000
# What one request to the ledger may carry.
MAX_ERRORS, MAX_CHARACTERS = 500, 2_000_000


class RunnerStopping(Exception):
    """The runner was asked to end; the job goes back."""


class LeasedAttempt:
    """What a recipe sees of its lease. Heartbeats come from a thread of its own."""

    def __init__(
        self, client: ServerClient, lease: Lease, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.lease = lease
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._progress: dict[str, Value] = {}
        self._is_news = False
        self._lines: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._ended = threading.Event()
        # When the last heartbeat was sent that was answered.
        self._answered_at = float("-inf")
        self._stop: Exception | None = None
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat {lease.id}")
        self._thread.daemon = True

    @property
    def job(self) -> str:
        return self.lease.id

    @property
    def number(self) -> int:
        return self.lease.attempt

    def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        if self._stop is not None:
            raise self._stop

    def fence(self) -> None:
        if not self._is_recent():
            self._insist(self._pulse)
        self.check()

    def publish(self, versions: Sequence[Mapping[str, Any]]) -> None:
        self.check()
        while True:
            try:
                return self._client.publish(versions)
            except Unavailable:
                # It may have gone in, or be about to: an attempt that was canceled now would sweep
                # files that a version refers to in a moment. One that lost its lease sweeps none.
                if isinstance(self._stop, LeaseLost):
                    raise self._stop from None
                self._ended.wait(AWAY_SECONDS)

    def errors(self, rows: Sequence[RowError], view: str = "") -> None:
        for batch in _divide(rows):
            self._insist(partial(self._client.errors, self.lease, batch, view))

    def error_rows(self) -> frozenset[int]:
        return self._insist(lambda: self._client.error_rows(self.lease))

    def _insist(self, ask: Callable[[], T]) -> T:
        """Ask the server until it answers; raises what makes the work stop."""
        while True:
            self.check()
            try:
                return ask()
            except Unavailable:
                self._ended.wait(AWAY_SECONDS)
            except LeaseLost as error:
                self._stop = error
                raise

    def is_held(self, give_up: Callable[[], bool]) -> bool:
        """Whether the job is still this attempt's, asked until the server answers."""
        while not self._is_recent():
            try:
                self._pulse()
            except LeaseLost:
                return False
            except Unavailable:
                if give_up():
                    return False
                time.sleep(AWAY_SECONDS)
            else:
                break
        return True

    def _is_recent(self) -> bool:
        seconds = min(RECENT_SECONDS, RECENT_PART * self.lease.lease_seconds)
        is_lost = isinstance(self._stop, LeaseLost)
        return not is_lost and self._clock() - self._answered_at < seconds

    def progress(self, **values: Value) -> None:
        with self._lock:
            self._is_news |= any(self._progress.get(k) != v for k, v in values.items())
            self._progress.update(values)

    def told(self, name: str) -> float:
        """A number that was told as progress; 0 when it was not."""
        value = self._progress.get(name, 0)
        return value if isinstance(value, int | float) else 0

    def log(self, text: str, level: str = "info") -> None:
        # What a function prints has a level of its own; it is for the job's log.
        known = logging.getLevelNamesMapping().get(level.upper(), logging.DEBUG)
        log.log(known, "job %s: %s", self.job, text)
        # A program may print what no JSON can hold.
        told = text[:MAX_LINE].encode(errors="replace").decode()
        with self._lock:
            self._lines.append(LogLine(int(time.time() * 1000), level, told))

    def give_back(self) -> None:
        """Have the work stop because the runner does."""
        self._stop = self._stop or RunnerStopping()

    def finish(self, ending: Ending, give_up: Callable[[], bool]) -> str:
        """Report the end until the server has heard it; '' when it never did."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        lines = self._take_lines()
        progress: Mapping[str, Value] = self._progress
        while True:
            try:
                while self._lines:
                    self._report(progress, lines)
                    lines = self._take_lines()
                return self._client.finish(self.lease, ending, progress, lines)
            except LeaseLost:
                log.warning("job %s: attempt %d was finished by others", self.job, self.number)
                return ""
            except Unavailable as error:
                if give_up():
                    return ""
                log.debug("job %s: %s", self.job, error.message)
                time.sleep(AWAY_SECONDS)
            except PenstockError as error:
                if not (progress or lines):
                    raise
                self._tell_refusal(error)
                progress, lines = {}, []

    def end(self) -> None:
        """Stop the heartbeats without a report."""
        self._ended.set()

    def _beat(self) -> None:
        last = self._clock()
        pause = min(MOVING_SECONDS, self.lease.heartbeat_seconds)
        while not self._ended.wait(pause):
            due = self._clock() - last >= self.lease.heartbeat_seconds
            if not (due or self._is_news or self._lines):
                continue
            try:
                self._pulse()
            except LeaseLost:
                return
            except Unavailable as error:
                # A server that restarts is back in a moment; the work goes on meanwhile.
                log.debug("job %s: no heartbeat: %s", self.job, error.message)
            except PenstockError as error:
                self._tell_refusal(error)
            last = self._clock()

    def _pulse(self) -> Pulse:
        """One heartbeat; notes what it brings back."""
        with self._lock:
            progress, self._is_news = dict(self._progress), False
        lines = self._take_lines()
        sent = self._clock()
        try:
            pulse = self._report(progress, lines)
        except LeaseLost as error:
            self._stop = error
            raise
        except Unavailable:
            with self._lock:
                waiting = [*lines, *self._lines]
                self._lines = deque(waiting, maxlen=MAX_LINES)
                self._is_news = True
            raise
        self._answered_at = sent
        if pulse.cancel and self._stop is None:
            self._stop = JobCanceled()
        return pulse

    def _report(self, progress: Mapping[str, Value], lines: Sequence[LogLine]) -> Pulse:
        """Keep the lease and tell news; when the server refuses the news, keep the lease alone."""
        try:
            return self._client.heartbeat(self.lease, progress, lines)
        except (LeaseLost, Unavailable):
            raise
        except PenstockError as error:
            self._tell_refusal(error)
            return self._client.heartbeat(self.lease, {}, [])

    def _tell_refusal(self, error: PenstockError) -> None:
        log.error("job %s: the server refuses a report: %s", self.job, error.message)

    def _take_lines(self) -> list[LogLine]:
        """As many of the lines that wait as one report may carry, the oldest first."""
        taken: list[LogLine] = []
        size = 0
        with self._lock:
            while self._lines and len(taken) < MAX_REPORT_LINES:
                size += len(self._lines[0].text)
                if taken and size > MAX_REPORT_CHARACTERS:
                    break
                taken.append(self._lines.popleft())
        return taken


def _divide(rows: Sequence[RowError]) -> Iterator[list[RowError]]:
    """Batches that a request can carry; one row is always small enough."""
    batch: list[RowError] = []
    size = 0
    for row in rows:
        length = len(row.inputs) + len(row.message) + len(row.traceback)
        if batch and (len(batch) == MAX_ERRORS or size + length > MAX_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += length
    if batch:
        yield batch
