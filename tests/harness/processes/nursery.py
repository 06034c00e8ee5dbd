"""A process that has imported what servers need and forks them, so that they start in a moment.

Each runs the same command line as `python -m penstock` does, and ends as that ends. Commands that
ask a server are forked as well.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

from penstock import crash
from penstock.cli.main import main
from tests.harness.processes.waiting import PATIENCE_SECONDS
from tests.harness.root import ROOT

MESSAGE_BYTES = 1 << 20


class Forked:
    """A process that was forked: as much of `subprocess.Popen` as tests use."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line.makefile("r")
        line.close()
        self._ended = threading.Event()
        self._code = 0
        self.pid = int(self._line.readline())
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        self._code = int(self._line.readline())
        self._ended.set()

    def poll(self) -> int | None:
        return self._code if self._ended.is_set() else None

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("penstock", timeout or 0)
        return self._code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[Forked, IO[str]]:
    """Start `penstock` with these arguments; gives what it prints, too."""
    output, printed = os.pipe()
    forked = _fork(arguments, environ, os.getcwd(), printed, printed)
    os.close(printed)
    return forked, os.fdopen(output)


def run(
    arguments: Sequence[str],
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    timeout: float = PATIENCE_SECONDS,
) -> "subprocess.CompletedProcess[str]":
    """Run `penstock` with these arguments to its end, in a folder; its input is empty."""
    given = {**os.environ, "PYTHONUNBUFFERED": "1"} if environ is None else environ
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        where = str(folder or os.getcwd())
        forked = _fork(arguments, given, where, output.fileno(), errors.fileno())
        try:
            code = forked.wait(timeout)
        finally:
            forked.kill()
        for each in (output, errors):
            each.seek(0)
        return subprocess.CompletedProcess(list(arguments), code, output.read(), errors.read())


def _fork(
    arguments: Sequence[str], environ: Mapping[str, str], folder: str, output: int, errors: int
) -> Forked:
    ours, theirs = socket.socketpair()
    request = json.dumps([list(arguments), dict(environ), folder]).encode()
    socket.send_fds(_nursery(), [request], [output, errors, theirs.fileno()])
    theirs.close()
    return Forked(ours)


@cache
def _nursery() -> socket.socket:
    """The nursery of this process; it ends when this process does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    number = theirs.fileno()
    command = [sys.executable, "-m", "tests.harness.processes.nursery", str(number)]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    subprocess.Popen(command, pass_fds=[number], cwd=ROOT, env=environ, stdin=subprocess.DEVNULL)
    theirs.close()
    return ours


def become_child(control: socket.socket) -> None:
    """Fork for each request; returns in the process that is to run the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, handles, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 3)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            break
        for handle in handles:
            os.close(handle)
    # From here on this is what waits for the command, and tells how it ended.
    control.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output, errors, line = handles
    if pid := os.fork():
        os.close(output)
        os.close(errors)
        os.write(line, b"%d\n" % pid)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        # Whoever asked may be gone.
        with contextlib.suppress(OSError):
            os.write(line, b"%d\n" % code)
        os._exit(0)
    os.close(line)
    for standard, handle in ((1, output), (2, errors)):
        os.dup2(handle, standard)
        os.close(handle)
    arguments, environ, folder = json.loads(request)
    sys.argv[1:] = arguments
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)


# What a server loads when it starts, or with the first requests that need it; and what asks one.
MODULES = (
    *("uvloop", "httpx", "lance", "pyarrow.compute", "sqlglot.dialects.spark"),
    *("penstock.cli.operate.serve", "penstock.server.serve", "penstock.catalog.versions.arbiter"),
    *("penstock.sql.definitions.queries", "penstock.sql.definitions.define"),
    *("penstock.sql.spark.query", "penstock.sql.translating.translate", "penstock.sdk.lake"),
)

if __name__ == "__main__":
    for module in MODULES:
        import_module(module)
    # Its threads come with its first work, which is after the fork.
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    gc.freeze()
    become_child(socket.socket(fileno=int(sys.argv[1])))
    # Read when it was imported.
    crash._AT = os.environ.get(crash.VARIABLE, "")
    try:
        main()
    except SystemExit as ended:
        if sys.argv[1:2] == ["serve"] or isinstance(ended.code, str):
            raise
        # Taking apart all that was imported takes longer than a command does.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code or 0)
