"""A local server for a folder: found by the note it leaves there, or started.

A server started here ends with the process that started it: it reads a pipe that this process
holds, and stops when the pipe closes, however the process ended.
"""

import atexit
import contextlib
import fcntl
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import Unavailable
from penstock.extras import list_missing
from penstock.sdk.connection.optional_libraries import check_extras
from penstock.sdk.connection.server_choice import DEFAULT, ServerChoice, choose_server, find_folder
from penstock.sdk.connection.server_note import ServerNote, answers, find

log = logging.getLogger("penstock")

LOCK, LOG = "server.start.lock", "server.log"
START_SECONDS, STOP_SECONDS = 60.0, 20.0


def choose_or_start(
    url: str | None = None,
    data: str | Path | None = None,
    *,
    runner: bool = True,
    keep: bool = False,
) -> ServerChoice:
    """The server to talk to; where there is none, one is started for the folder."""
    if (chosen := choose_server(url, data)) is not None:
        return chosen
    folder = find_folder(data)
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        # Another process may have started one a moment ago.
        if (chosen := choose_server(url, data)) is not None:
            return chosen
        started = _start(folder, runner, keep)
    end = f"goes on as process {started.pid}" if keep else "ends with this process"
    other = f"; the one at {DEFAULT} is left alone" if answers(DEFAULT) else ""
    log.warning("started a server for %s at %s, which %s%s", folder, started.url, end, other)
    return ServerChoice(started.url, f"it was started for {folder}")


def _start(folder: Path, runner: bool, keep: bool) -> ServerNote:
    if list_missing("server"):
        extras = ("server", "runner") if runner else ("server",)
        check_extras(
            "a server on this machine", *extras, otherwise="give the address of one elsewhere"
        )
    elif runner:
        check_extras("a server that runs jobs", "runner", otherwise="say runner=False")
    command = [sys.executable, "-m"]
    command += ["penstock"] if keep else ["penstock.sdk.connection.child"]
    command += ["serve", "--host", "127.0.0.1", "--port", "0", "--data", str(folder)]
    command += [] if runner else ["--no-runner"]
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if keep else subprocess.PIPE,
            stdout=log,
            stderr=log,
            # Ctrl-C is for this process; the server stops when its pipe closes.
            start_new_session=True,
        )
    if not keep:
        atexit.register(_stop, process)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = find(folder)
        if found is not None:
            return found
        if process.poll() is not None:
            break
        time.sleep(0.05)
    _stop(process)
    raise Unavailable(
        f"the server for {folder} did not start: {_last_line(folder / LOG)}",
        detail=f"{folder / LOG} tells more",
    )


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop a server that was started here, gracefully if possible."""
    if process.stdin is not None:
        process.stdin.close()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """A lock, so that two processes that look at the same moment start one server."""
    with (folder / LOCK).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
