"""The process that runs a function apart from its worker, so that only it dies.

`isolate` starts it as a module. It ends with the worker, when their pipe closes.
"""

import contextlib
import mmap
import os
import queue
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, BinaryIO

import pyarrow as pa
from msgspec import json

from penstock.errors import FunctionFailed
from penstock.jobs.functions.calls import DirectCaller
from penstock.jobs.functions.isolation import messages
from penstock.jobs.functions.isolation.memory import be_first_to_die, end_with_parent, limit_memory
from penstock.jobs.functions.load import ROW_BY_ROW, LoadedFunction, load
from penstock.jobs.functions.output import PrintedOutput, captured
from penstock.model.functions import Function

Frames = queue.SimpleQueue[tuple[bytes, bytes]]


def main(requests: int, replies: int, progress: int, ends_with_parent: int) -> None:
    """Serve calls until the worker is gone."""
    be_first_to_die()
    if ends_with_parent:
        end_with_parent()
    for passed in (requests, replies, progress):
        # Programs that the function starts are not to hold them.
        os.set_inheritable(passed, False)
    frames: Frames = queue.SimpleQueue()
    stop = threading.Event()
    arguments = os.fdopen(requests, "rb"), frames, stop
    threading.Thread(target=_read, args=arguments, daemon=True).start()
    answers = os.fdopen(replies, "wb")
    host = _Host(answers, mmap.mmap(progress, struct.calcsize("<q")), stop)
    host.load(*frames.get())
    while True:
        host.call(*frames.get())


def _read(pipe: BinaryIO, frames: Frames, stop: threading.Event) -> None:
    """Take requests in; the end of the pipe is the end of the process, whatever runs."""
    while (frame := messages.receive(pipe)) is not None:
        if frame[0] == messages.STOP:
            stop.set()
        else:
            frames.put(frame)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


class _Host:
    def __init__(self, answers: BinaryIO, progress: mmap.mmap, stop: threading.Event) -> None:
        self._answers = answers
        self._stop = stop
        self._progress = progress
        self._output = PrintedOutput()
        self._row = 0
        self._is_by_one = False
        self._timeout: float | None = None
        self._caller: DirectCaller | None = None
        self._kind = ""

    def load(self, head: bytes, content: bytes) -> None:
        setup = json.decode(head, type=messages.Setup)
        function = setup.function
        if function.needs.memory:
            limit_memory(function.needs.memory)
        self._timeout = function.timeout_seconds
        try:
            with captured(self._output):
                loaded = load(content, function)
        except FunctionFailed as error:
            ready = messages.Ready(error=error.message, detail=error.detail)
        except MemoryError:
            ready = messages.Ready(error=_too_large(function), detail="raise its memory")
        else:
            self._kind = loaded.kind
            if loaded.kind in ROW_BY_ROW:
                watched = self._watched if loaded.loop is None else self._watched_at_once
                loaded = LoadedFunction(watched(loaded.call), loaded.kind, loaded.loop)
            schema = pa.ipc.read_schema(pa.py_buffer(setup.schema))
            self._caller = DirectCaller(loaded, function, schema, self._output, self._stop.is_set)
            ready = messages.Ready(
                loaded.kind, loaded.loop is not None, printed=tuple(self._output.take())
            )
        messages.send(self._answers, json.encode(ready))

    def call(self, head: bytes, body: bytes) -> None:
        assert self._caller is not None
        request = json.decode(head, type=messages.Request)
        batch = messages.decode_batch(body)
        self._row, self._is_by_one = 0, request.one_by_one
        self._tell_row()
        if self._timeout and self._kind not in ROW_BY_ROW:
            with _timer(self._timeout * batch.num_rows):
                outcome = self._caller.run(batch, go_on=request.go_on)
        else:
            go_on, one_by_one = request.go_on, request.one_by_one
            outcome = self._caller.run(batch, go_on=go_on, one_by_one=one_by_one)
        printed = tuple(self._output.take())
        reply = messages.Reply(
            *(outcome.failures, outcome.whole, printed, outcome.left, outcome.is_stopped)
        )
        values = b"" if outcome.values is None else messages.encode_batch(outcome.values)
        messages.send(self._answers, json.encode(reply), values)

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, whose worker can see which row it is at; with its time limited."""
        timeout = self._timeout

        def counted(*values: Any) -> Any:
            self._tell_row()
            self._row += 1
            return call(*values)

        def timed(*values: Any) -> Any:
            self._tell_row()
            self._row += 1
            with _timer(timeout or 0):
                return call(*values)

        return timed if timeout else counted

    def _watched_at_once(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same for calls that overlap: there is progress when one of them ends."""

        async def watched(*values: Any) -> Any:
            if self._is_by_one:
                self._tell_row()
                self._row += 1
                return await call(*values)
            try:
                return await call(*values)
            finally:
                self._row += 1
                self._tell_row()

        return watched

    def _tell_row(self) -> None:
        struct.pack_into("<q", self._progress, 0, self._row)


@contextlib.contextmanager
def _timer(seconds: float) -> Iterator[None]:
    """Inside, TimeoutError comes after so long."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"took longer than {seconds:g} s")

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _too_large(function: Function) -> str:
    return (
        f"function {function.name} (version {function.version}) cannot be loaded: it needs more "
        f"than the {function.needs.memory} bytes of memory that it asks for"
    )


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:5]))
