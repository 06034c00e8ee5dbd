"""Real server processes for tests, each on a free port of the loopback."""

import contextlib
import os
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx

from tests.harness.processes.nursery import Forked, fork
from tests.harness.processes.waiting import PATIENCE_SECONDS, until

START_SECONDS = 90


@dataclass
class Server:
    """A running `penstock serve`."""

    url: str
    data: Path
    process: subprocess.Popen[str] | Forked
    lines: "queue.Queue[str]"
    client: httpx.Client

    @property
    def lake(self) -> Path:
        return self.data / "lake"

    def post(self, path: str, body: Any = None, **params: Any) -> httpx.Response:
        return self.client.post(path, json=body, params=params or None)

    def get(self, path: str, **params: Any) -> httpx.Response:
        return self.client.get(path, params=params or None)

    def send(
        self, path: str, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """POST exactly these bytes, with these headers."""
        return self.client.post(path, content=content, headers=headers)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)

    def stop(self) -> int:
        """Ask it to stop, and wait; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def output(self) -> str:
        """What it has printed since the last look."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self.lines.get_nowait())
        return "".join(found)

    def wait_for_output(self, text: str) -> str:
        """Wait until it has printed this; returns what it has printed since the last look."""
        seen = ""

        def look() -> bool:
            nonlocal seen
            seen += self.output()
            return text in seen

        until(look, f"it never printed {text!r}")
        return seen

    def rest_of_output(self) -> str:
        """What it has printed since the last look; waits for its end."""
        return "".join(iter(lambda: self.lines.get(timeout=PATIENCE_SECONDS), ""))

    def requests_in_flight(self) -> int:
        """How many requests it works on, without the one that asks."""
        found = re.search(r"^penstock_requests_in_flight (\d+)", self.get("/metrics").text, re.M)
        assert found, "there is no such metric"
        return int(found[1]) - 1

    def wait_for_requests(self, count: int) -> None:
        """Wait until it works on so many requests, or more."""
        until(lambda: self.requests_in_flight() >= count, f"there never were {count} requests")

    def wait_until_idle(self) -> None:
        until(lambda: self.requests_in_flight() == 0, "the server is still busy")


def start(
    data: Path,
    *arguments: str,
    database: str = "",
    environ: Mapping[str, str] | None = None,
    runner: bool = False,
) -> Server:
    """Start a server and wait until it says where it listens; a runner only when it is wanted."""
    command = ["serve", "--port", "0", "--data", str(data)]
    if not runner:
        command.append("--no-runner")
    if database:
        command += ["--database", database]
    command += arguments
    process: subprocess.Popen[str] | Forked
    # What Python itself or another library reads, it reads when it starts.
    if runner or not all(name.startswith("PENSTOCK") for name in environ or ()):
        process, lines = spawn([sys.executable, "-m", "penstock", *command], environ)
    else:
        process, output = fork(command, _environ(environ))
        lines = _pump(output)
    seen = []
    try:
        while True:
            seen.append(lines.get(timeout=START_SECONDS))
            if match := re.search(r"serves (https?://\S+)", seen[-1]):
                # No certificates to load: making a client must not cost more than its requests.
                client = httpx.Client(base_url=match[1], timeout=60, verify=False, trust_env=False)
                return Server(match[1], data, process, lines, client)
            if seen[-1] == "":
                break
    except queue.Empty:
        process.kill()
    raise AssertionError("the server did not start:\n" + "".join(seen))


@contextlib.contextmanager
def running(
    data: Path,
    *arguments: str,
    database: str = "",
    environ: Mapping[str, str] | None = None,
    runner: bool = False,
) -> Iterator[Server]:
    """A server for the length of a block, which is killed at its end if it has no runner.

    To stop takes longer than to start, and `tests/server/test_lifecycle.py` holds how it is done.
    """
    server = start(data, *arguments, database=database, environ=environ, runner=runner)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            if runner:
                server.stop()
            else:
                server.kill()


def free_port() -> int:
    """A port for a server that is not there yet; never one that the kernel gives to connections."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port


def spawn(
    command: Sequence[str], environ: Mapping[str, str] | None = None
) -> tuple["subprocess.Popen[str]", "queue.Queue[str]"]:
    """Start a process; its lines come as they are printed, and an empty one at the end."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=_environ(environ),
    )
    assert process.stdout is not None
    return process, _pump(process.stdout)


def _environ(more: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1", **(more or {})}


def _pump(output: IO[str]) -> "queue.Queue[str]":
    lines: queue.Queue[str] = queue.Queue()

    def pump() -> None:
        with output:
            for line in output:
                lines.put(line)
        lines.put("")

    threading.Thread(target=pump, daemon=True).start()
    return lines
