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
    threading.Thread(target=_read, args=(os.fdopen(requests, "rb"), frames), daemon=True).start()
    answers = os.fdopen(replies, "wb")
    host = _Host(answers, mmap.mmap(progress, struct.calcsize("<q")))
    host.load(*frames.get())
    while True:
        host.call(*frames.get())


def _read(pipe: BinaryIO, frames: Frames) -> None:
    """Take requests in; the end of the pipe is the end of the process, whatever runs."""
    while (frame := messages.receive(pipe)) is not None:
        frames.put(frame)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


class _Host:
    def __init__(self, answers: BinaryIO, progress: mmap.mmap) -> None:
        self._answers = answers
        self._progress = progress
        self._output = PrintedOutput()
        self._row = 0
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
                loaded = LoadedFunction(self._watched(loaded.call), loaded.kind)
            schema = pa.ipc.read_schema(pa.py_buffer(setup.schema))
            self._caller = DirectCaller(loaded, function, schema, self._output)
            ready = messages.Ready(loaded.kind, printed=tuple(self._output.take()))
        messages.send(self._answers, json.encode(ready))

    def call(self, head: bytes, body: bytes) -> None:
        assert self._caller is not None
        request = json.decode(head, type=messages.Request)
        batch = messages.decode_batch(body)
        self._row = 0
        self._tell_row()
        if self._timeout and self._kind not in ROW_BY_ROW:
            with _timer(self._timeout * batch.num_rows):
                outcome = self._caller.run(batch, go_on=request.go_on)
        else:
            outcome = self._caller.run(batch, go_on=request.go_on)
        reply = messages.Reply(outcome.failures, outcome.whole, tuple(self._output.take()))
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
