"""Call a function in a separate process: a row that kills it, or never ends, is a failed row."""

import contextlib
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import pyarrow as pa
from msgspec import json

from penstock.errors import FunctionFailed
from penstock.jobs.engine.guard import Stopped
from penstock.jobs.functions.errors import make_nulls
from penstock.jobs.functions.isolation import messages
from penstock.jobs.functions.isolation.pipes import ReadingEnd, WritingEnd, is_readable, make_pipe
from penstock.jobs.functions.load import ROW_BY_ROW, unusable
from penstock.jobs.functions.outcomes import Failure, Outcome
from penstock.jobs.functions.output import PrintedOutput
from penstock.model.functions import Function

HOST = "penstock.jobs.functions.isolation.host"
# So much longer than its timeout a row may take until its process is killed: the process itself
# interrupts what Python can interrupt.
GRACE_SECONDS = 2.0
END_SECONDS = 2.0
# How long calls that are canceled may take to end.
STOP_SECONDS = 1.0


class Died(Exception):
    """The process is gone; the row is the one it was at, if that is known."""

    def __init__(self, why: str, row: int | None, *, is_timeout: bool = False) -> None:
        super().__init__(why)
        self.row = row
        self.is_timeout = is_timeout

    def to_failure(self) -> Failure:
        name = "TimeoutError" if self.is_timeout else "WorkerDied"
        return Failure(exception=name, message=str(self), names=(name,))


class IsolatedCaller:
    """Runs batches in processes that are kept for the next ones; one for each thread that asks."""

    def __init__(
        self,
        content: bytes,
        function: Function,
        kinds: pa.Schema,
        output: PrintedOutput | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._content = content
        self._function = function
        self._kinds = kinds
        self._output = output
        self._is_stopped = is_stopped
        self.calls_at_once = False
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()

    def start(self) -> tuple[str, bool]:
        """Load the function; returns its kind, and whether it is async."""
        child = self._take()
        self._give_back(child)
        self.calls_at_once = child.calls_at_once
        return child.kind, child.is_async

    def run(self, batch: pa.RecordBatch, *, go_on: bool, one_by_one: bool = False) -> Outcome:
        child = self._take()
        request = messages.Request(go_on, one_by_one)
        try:
            outcome = child.ask(batch, request, self._function.timeout_seconds, self._is_stopped)
        except Died as death:
            self._end(child)
            if self.calls_at_once and not one_by_one:
                # Any of the calls may have done it.
                return self.run(batch, go_on=go_on, one_by_one=True)
            return self._divide(batch, death, go_on, one_by_one)
        except BaseException:
            self._end(child)
            raise
        self._give_back(child)
        return outcome

    def close(self) -> None:
        with self._lock:
            ending, self._all, self._idle = list(self._all), set(), []
        for child in ending:
            child.end()

    def _divide(self, batch: pa.RecordBatch, death: Died, go_on: bool, one_by_one: bool) -> Outcome:
        """Find out with the rows before the one that it died at, and then with that one alone."""
        if batch.num_rows == 1 or (death.is_timeout and death.row == 0):
            return Outcome(make_nulls(1, self._kinds), {0: death.to_failure()})
        if death.row is None:
            return Outcome(None, whole=death.to_failure())
        rows = batch.slice(0, max(1, death.row))
        return self.run(rows, go_on=go_on, one_by_one=one_by_one)

    def _take(self) -> "_Child":
        with self._lock:
            if self._idle:
                return self._idle.pop()
        child = _Child(self._content, self._function, self._kinds, self._output, self._is_stopped)
        with self._lock:
            self._all.add(child)
        return child

    def _give_back(self, child: "_Child") -> None:
        with self._lock:
            self._idle.append(child)

    def _end(self, child: "_Child") -> None:
        with self._lock:
            self._all.discard(child)
        child.end()


class _Child:
    """One such process."""

    def __init__(
        self,
        content: bytes,
        function: Function,
        kinds: pa.Schema,
        output: PrintedOutput | None,
        is_stopped: Callable[[], bool],
    ) -> None:
        self._output = output
        self.calls_at_once = False
        requests, self._requests = make_pipe()
        self._replies, replies = make_pipe()
        with requests, replies, tempfile.TemporaryFile() as shared:
            shared.truncate(struct.calcsize("<q"))
            self._progress = mmap.mmap(shared.fileno(), struct.calcsize("<q"))
            self._process = _start(requests.fileno(), replies.fileno(), shared.fileno())
        setup = messages.Setup(function, kinds.serialize().to_pybytes())
        try:
            self._send(json.encode(setup), content)
            head, _ = self._receive(None, is_stopped, by_row=False)
        except Died as death:
            self.end()
            raise unusable(function, str(death), "see the log of its worker") from death
        except BaseException:
            self.end()
            raise
        ready = json.decode(head, type=messages.Ready)
        self._print(ready.printed)
        if ready.error:
            self.end()
            raise FunctionFailed(ready.error, detail=ready.detail)
        self.kind, self.is_async = ready.kind, ready.is_async
        self.calls_at_once = ready.is_async and ready.kind in ROW_BY_ROW

    def ask(
        self,
        batch: pa.RecordBatch,
        request: messages.Request,
        timeout: float | None,
        is_stopped: Callable[[], bool],
    ) -> Outcome:
        by_row = self.kind in ROW_BY_ROW
        seconds = None
        if timeout:
            seconds = (timeout if by_row else timeout * batch.num_rows) + GRACE_SECONDS
        self._set_row(0)
        self._send(json.encode(request), messages.encode_batch(batch))
        head, body = self._receive(seconds, is_stopped, by_row=by_row)
        reply = json.decode(head, type=messages.Reply)
        self._print(reply.printed)
        values = messages.decode_batch(body) if body else None
        return Outcome(values, reply.failures, reply.whole, reply.left, reply.is_stopped)

    def end(self) -> None:
        """End the process, which may hang, and what it started."""
        for pipe in (self._requests, self._replies):
            pipe.close()
        self._kill()
        self._process.wait(END_SECONDS)
        self._progress.close()

    def _send(self, head: bytes, body: bytes | pa.Buffer) -> None:
        def look() -> None:
            if self._has_ended():
                raise self._death()

        try:
            messages.send(WritingEnd(self._requests, look), head, body)
        except BrokenPipeError as error:
            raise self._death() from error

    def _receive(
        self, seconds: float | None, is_stopped: Callable[[], bool], *, by_row: bool
    ) -> tuple[bytes, bytes]:
        """The next reply; `seconds` is how long there may be no progress."""
        row, since = self._row(), time.monotonic()
        stopped: float | None = None

        def look() -> None:
            nonlocal row, since, stopped
            now = time.monotonic()
            if stopped is None and is_stopped():
                stopped = now
                if self.calls_at_once:
                    # It tells of the calls that have ended.
                    self._send(messages.STOP, b"")
            if stopped is not None and (not self.calls_at_once or now - stopped > STOP_SECONDS):
                raise Stopped
            if by_row and self._row() != row:
                row, since = self._row(), now
            if seconds is not None and now - since > seconds:
                self._kill()
                text = f"took longer than {seconds - GRACE_SECONDS:g} s and was killed"
                raise Died(text, row if by_row else None, is_timeout=True)
            # Its last words may still be in the pipe.
            if self._has_ended() and not is_readable(self._replies):
                raise self._death(by_row=by_row)

        frame = messages.receive(ReadingEnd(self._replies, look))
        if frame is None:
            raise self._death(by_row=by_row)
        return frame

    def _has_ended(self) -> bool:
        """Whether the process is gone; its number stays taken, and so its group's."""
        if self._process.returncode is not None:
            return True
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, options) is not None

    def _kill(self) -> None:
        """Kill the process and all that it started; it may be gone, and they not."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _death(self, *, by_row: bool = False) -> Died:
        row = self._row() if by_row else None
        latest = time.monotonic() + END_SECONDS
        while not self._has_ended():
            if time.monotonic() > latest:
                return Died("the function's process closed its pipe", row)
            time.sleep(0.01)
        self._kill()
        status = self._process.wait()
        if status >= 0:
            return Died(f"the function's process exited with status {status}", row)
        name = signal.Signals(-status).name
        why = ", perhaps for the memory that it took" if name == "SIGKILL" else ""
        return Died(f"the function's process was killed by {name}{why}", row)

    def _print(self, lines: tuple[str, ...]) -> None:
        for line in lines:
            if self._output is not None:
                self._output.add(line)

    def _row(self) -> int:
        found: int = struct.unpack_from("<q", self._progress, 0)[0]
        return found

    def _set_row(self, row: int) -> None:
        struct.pack_into("<q", self._progress, 0, row)


def _start(*passed: int) -> "subprocess.Popen[bytes]":
    # Linux takes the end of the thread that starts a process for the end of its parent.
    is_main = threading.current_thread() is threading.main_thread()
    return subprocess.Popen(
        [sys.executable, "-m", HOST, *map(str, passed), str(int(is_main))],
        pass_fds=passed,
        stdin=subprocess.DEVNULL,
        # What libraries print past Python's own streams.
        stdout=2,
        # Killed as a group, with what the function starts.
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
