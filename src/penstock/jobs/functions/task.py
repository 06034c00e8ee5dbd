"""Shared state of one task's fragments: the function, its batch size, reports to the driver."""

import threading
import time
import uuid
from dataclasses import dataclass

import pyarrow as pa

from penstock.jobs.engine.checkpoints import StopKind, find_stop, may_have_died
from penstock.jobs.engine.guard import Stopped
from penstock.jobs.engine.worker_notes import Beat, write_beat, write_output
from penstock.jobs.functions.batches import DEFAULT_ROWS, MAX_ROWS, MIN_ROWS, BatchSize
from penstock.jobs.functions.calls import DirectCaller
from penstock.jobs.functions.errors import Policy
from penstock.jobs.functions.event_loop import count_at_once
from penstock.jobs.functions.isolation.isolate import IsolatedCaller
from penstock.jobs.functions.load import load, unusable
from penstock.jobs.functions.outcomes import Caller
from penstock.jobs.functions.output import PrintedOutput, captured
from penstock.jobs.functions.redaction import restore
from penstock.jobs.kept.parts import KeptParts
from penstock.jobs.kept.store import Store, name_view_store
from penstock.lance.columns.function_code import path_of
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.model.functions import Function

BEAT_SECONDS = 1.0
LOOK_SECONDS = 0.25
# So many batches of rows that are called at once are begun before those before them have ended, so
# that one slow call does not leave the others idle.
BATCHES_AHEAD = 2


@dataclass(frozen=True, slots=True)
class FunctionOptions:
    """How a function is run; None is the default of its kind."""

    threads: int = 1
    batch_rows: int | None = None
    min_rows: int | None = None
    max_rows: int | None = None
    flush_seconds: float = 5.0
    # Whether a batch is begun only when the one before it has ended.
    in_turn: bool = False
    # Whether to compute everything, whatever exists already.
    is_full: bool = False


def choose_size(
    kind: str, batch_size: int | None, knobs: FunctionOptions, at_once: int = 1
) -> BatchSize:
    """The initial batch size; a requested size is never exceeded.

    A batch is no smaller than the number of its rows that are called at once.
    """
    rows = knobs.batch_rows or batch_size or max(DEFAULT_ROWS[kind], at_once)
    most = knobs.max_rows or knobs.batch_rows or MAX_ROWS
    most = min(most, batch_size or most)
    return BatchSize(rows, min(knobs.min_rows or max(MIN_ROWS, at_once), most), most)


class FunctionTask:
    """A function at work in one try of a task."""

    def __init__(
        self,
        place: Place,
        job: str,
        attempt: int,
        function: Function,
        kinds: pa.Schema,
        knobs: FunctionOptions,
        *,
        isolated: bool = False,
        kept: str = "",
    ) -> None:
        self.place, self.job, self.attempt = place, job, attempt
        self.function, self.kinds, self.knobs = function, kinds, knobs
        # Where values are kept: with a column, or with a view.
        kept = kept or name_view_store(function, kinds, is_full=knobs.is_full)
        self.store = Store(place, kept, job)
        self._parts: KeptParts | None = None
        self.output = PrintedOutput()
        self._name = uuid.uuid4().hex[:12]
        self._last_beat = time.monotonic()
        self._last_look = 0.0
        self._stop: StopKind | None = None
        self._looking = threading.Lock()
        # So that the row that killed the process before is found, row by row.
        isolated = isolated or may_have_died(place, job, attempt)
        self._caller, kind, is_async = self._make_caller(isolated)
        self.policy = Policy(function, self._caller, kinds, self.is_stopped)
        at_once = count_at_once(function, kind) if is_async else 1
        of_rows = at_once if self._caller.calls_at_once else 1
        self.size = choose_size(kind, function.batch_size, knobs, of_rows)
        # How many batches are worked on at once.
        self.threads = knobs.threads
        if is_async and not knobs.in_turn:
            more = -(-at_once // self.size.most) + BATCHES_AHEAD if of_rows > 1 else at_once
            self.threads = max(knobs.threads, more)

    @property
    def parts(self) -> KeptParts:
        """What was kept when the task first looked."""
        self._parts = self._parts or KeptParts(self.store, self.kinds)
        return self._parts

    def beat(self, fragment: int, rows: int) -> None:
        """After a batch: report progress; raises when the job is to stop now."""
        if self.is_stopped():
            raise Stopped
        now = time.monotonic()
        if now - self._last_beat >= BEAT_SECONDS:
            self._last_beat = now
            write_beat(self.place, self.job, self._name, Beat(self.attempt, fragment, rows))
            self.tell_output()

    def tell_output(self) -> None:
        """Report what was printed since the last time."""
        if lines := self.output.take():
            write_output(self.place, self.job, lines)

    def begin_batch(self) -> None:
        """Before a batch: raises when the job is to stop, now or after the batches under way."""
        if self._find_stop() is not None:
            raise Stopped

    def is_stopped(self) -> bool:
        """Whether the job is to stop now, in the middle of a batch."""
        return self._find_stop() is StopKind.NOW

    def _find_stop(self) -> StopKind | None:
        """How the job is to stop; looked for a few times a second at most."""
        with self._looking:
            now = time.monotonic()
            if self._stop is not StopKind.NOW and now - self._last_look >= LOOK_SECONDS:
                self._last_look = now
                self._stop = find_stop(self.place, self.job, self.attempt)
            return self._stop

    def close(self) -> None:
        self.tell_output()
        self._caller.close()

    def _make_caller(self, isolated: bool) -> tuple[Caller, str, bool]:
        """What calls the function, its kind, and whether it is async."""
        content = read_function(self.place, self.function)
        # The process may have served another function before.
        restore()
        function = self.function
        if isolated or function.timeout_seconds or function.needs.memory:
            apart = IsolatedCaller(content, function, self.kinds, self.output, self.is_stopped)
            return apart, *apart.start()
        with captured(self.output):
            loaded = load(content, function)
        direct = DirectCaller(loaded, function, self.kinds, self.output, self.is_stopped)
        return direct, loaded.kind, loaded.loop is not None


def read_function(place: Place, function: Function) -> bytes:
    """The stored bytes of a function."""
    try:
        return files.read(place, path_of(function.sha256))
    except FileNotFoundError as error:
        raise unusable(
            function,
            f"{path_of(function.sha256)} is not in the table's folder",
            "alter the column with the function again",
        ) from error
