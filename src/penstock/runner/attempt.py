"""One attempt at a leased job: it sends heartbeats, progress and logs, and checks its lease."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, TypeVar

from msgspec import structs

from penstock.errors import LeaseLost, PenstockError, Unavailable
from penstock.jobs.engine.attempt import JobCanceled, JobPaused, Value
from penstock.jobs.specs import JobSpec, decode_spec
from penstock.model.functions import RowError
from penstock.model.jobs import LogLine
from penstock.runner.client import (
    AttemptEnd,
    AttemptReport,
    HeartbeatReply,
    Lease,
    ServerClient,
)
from penstock.runner.progress import JobProgress

T = TypeVar("T")

log = logging.getLogger(__name__)

# Progress is reported at least this often while there is any, however rare heartbeats are.
MOVING_SECONDS = 1.0
AWAY_SECONDS = 0.5
# How long a server's answer stays valid, if that is a small part of the lease: nobody else can get
# the job before the lease ends.
RECENT_SECONDS, RECENT_PART = 0.25, 0.05
# How many of the newest log lines wait to be sent, and how many one report carries.
MAX_LINES, MAX_LINE = 10_000, 8_000
MAX_REPORT_LINES, MAX_REPORT_CHARACTERS = 1_000, 500_000
# The size limit of one request to the ledger.
MAX_ERRORS, MAX_CHARACTERS = 500, 2_000_000


class RunnerStopping(Exception):
    """The runner stops, and gives the job back."""


class LeasedAttempt:
    """A recipe's view of its lease. A separate thread sends the heartbeats."""

    def __init__(
        self,
        client: ServerClient,
        lease: Lease,
        clock: Callable[[], float] = time.monotonic,
        hide: Callable[[str], str] = str,
    ) -> None:
        self.lease = lease
        # The start of the session that it works on; 0 before it has one.
        self.session = 0
        # Takes secrets out of texts; workers have done so, but not all texts are theirs.
        self._hide = hide
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._progress = JobProgress(clock)
        self._lines: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._ended = threading.Event()
        # When the last answered heartbeat was sent.
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

    @cached_property
    def spec(self) -> JobSpec:
        """What the job is asked for; raises when this release cannot read it."""
        return decode_spec(self.lease.kind, self.lease.spec)

    def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        if self._stop is not None:
            raise self._stop

    def fence(self) -> None:
        if not self._is_recent():
            self._insist(self._pulse)
        self.check()

    def find_obstacle(self) -> str:
        return self._insist(self._pulse).obstacle

    def publish(self, versions: Sequence[Mapping[str, Any]]) -> None:
        self.check()
        while True:
            try:
                return self._client.publish(versions)
            except Unavailable:
                # The commit may have gone in, or be about to: canceling now would sweep files that
                # a version may refer to in a moment. An attempt that lost its lease sweeps nothing.
                if isinstance(self._stop, LeaseLost):
                    raise self._stop from None
                self._ended.wait(AWAY_SECONDS)

    def send_result(self, parts: Sequence[Any]) -> None:
        self._insist(partial(self._client.send_result, self.lease, parts))

    def errors(self, rows: Sequence[RowError], view: str = "") -> None:
        shown = [
            structs.replace(
                row, message=self._hide(row.message), traceback=self._hide(row.traceback)
            )
            for row in rows
        ]
        for batch in _divide(shown):
            self._insist(partial(self._client.errors, self.lease, batch, view))

    def error_rows(self) -> frozenset[int]:
        return self._insist(lambda: self._client.error_rows(self.lease))

    def _insist(self, ask: Callable[[], T]) -> T:
        """Ask the server until it answers; raises what should stop the work."""
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
        """Whether this attempt still holds the job; asks until the server answers."""
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
        self._progress.tell(values)

    def phase(self, name: str) -> None:
        self._progress.begin(name)

    @contextmanager
    def waiting(self, name: str) -> Iterator[None]:
        """A phase within another, which goes on afterwards."""
        before = self._progress.phase
        self.phase(name)
        yield
        if before:
            self.phase(before)

    def told(self, name: str) -> float:
        """A number that was reported as progress; 0 when it was not."""
        return self._progress.find(name)

    def log(self, text: str, level: str = "info") -> None:
        text = self._hide(text)
        # Prints of a function have a level of their own, for the job's log.
        known = logging.getLevelNamesMapping().get(level.upper(), logging.DEBUG)
        log.log(known, "job %s: %s", self.job, text)
        # A program may print what JSON cannot represent.
        told = text[:MAX_LINE].encode(errors="replace").decode()
        with self._lock:
            self._lines.append(LogLine(int(time.time() * 1000), level, told))

    def give_back(self) -> None:
        """Stop the work, because the runner stops."""
        self._stop_for(RunnerStopping())

    def _stop_for(self, reason: Exception) -> None:
        """Stop the work, if nothing else does; a pause takes time, and everything else ends it."""
        if self._stop is None or isinstance(self._stop, JobPaused):
            self._stop = reason

    def finish(self, ending: AttemptEnd, give_up: Callable[[], bool]) -> str:
        """Report the end until the server answers; '' when it never did."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        progress, phases = self._progress.take_last()
        report = AttemptReport(progress, self._take_lines(), phases)
        while True:
            try:
                while self._lines:
                    self._report(report)
                    report = AttemptReport(progress, self._take_lines())
                return self._client.finish(self.lease, ending, report)
            except LeaseLost:
                log.warning("job %s: attempt %d was finished by others", self.job, self.number)
                return ""
            except Unavailable as error:
                if give_up():
                    return ""
                log.debug("job %s: %s", self.job, error.message)
                time.sleep(AWAY_SECONDS)
            except PenstockError as error:
                if report == AttemptReport():
                    raise
                self._tell_refusal(error)
                progress, report = {}, AttemptReport()

    def end(self) -> None:
        """Stop the heartbeats without a report."""
        self._ended.set()

    def _beat(self) -> None:
        last = self._clock()
        pause = min(MOVING_SECONDS, self.lease.heartbeat_seconds)
        while not self._ended.wait(pause):
            due = self._clock() - last >= self.lease.heartbeat_seconds
            if not (due or self._progress.is_news or self._lines):
                continue
            try:
                self._pulse()
            except LeaseLost:
                return
            except Unavailable as error:
                # A restarting server is back in a moment; the work goes on meanwhile.
                log.debug("job %s: no heartbeat: %s", self.job, error.message)
            except PenstockError as error:
                self._tell_refusal(error)
            last = self._clock()

    def _pulse(self) -> HeartbeatReply:
        """Send one heartbeat and handle its answer."""
        sent = self._clock()
        progress, phases = self._progress.take()
        report = AttemptReport(progress, self._take_lines(), phases)
        try:
            pulse = self._report(report)
        except LeaseLost as error:
            self._stop = error
            raise
        except Unavailable:
            with self._lock:
                waiting = [*report.logs, *self._lines]
                self._lines = deque(waiting, maxlen=MAX_LINES)
            self._progress.put_back(report.phases, sent)
            raise
        self._answered_at = sent
        if pulse.cancel:
            self._stop_for(JobCanceled())
        elif pulse.pause:
            self._stop_for(JobPaused())
        return pulse

    def _report(self, report: AttemptReport) -> HeartbeatReply:
        """Send a heartbeat with all that; without it if the server refuses that."""
        try:
            return self._client.heartbeat(self.lease, report)
        except (LeaseLost, Unavailable):
            raise
        except PenstockError as error:
            self._tell_refusal(error)
            return self._client.heartbeat(self.lease, AttemptReport())

    def _tell_refusal(self, error: PenstockError) -> None:
        log.error("job %s: the server refuses a report: %s", self.job, error.message)

    def _take_lines(self) -> list[LogLine]:
        """As many waiting lines as one report may carry, oldest first."""
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
    """Split rows into requests of limited size; a single row always fits."""
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
