"""The processes of the demo: a server with its runner, and a second runner on standby."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from penstock.sdk.connection.server_note import find

# How soon a dead runner is noticed; the default is longer, for slow networks.
LEASE_SECONDS = 5
START_SECONDS, STOP_SECONDS = 60, 30


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a server with its runner for the length of a block; yields its address."""
    command = ["serve", "--host", "127.0.0.1", "--port", "0", "--data", str(folder)]
    log = folder / "demo-server.log"
    with _started(command, log, PENSTOCK__JOBS__LEASE_SECONDS=str(LEASE_SECONDS)) as process:
        deadline = time.monotonic() + START_SECONDS
        while (found := find(folder)) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                raise click.ClickException(f"the server did not start: {_last_line(log)}")
            time.sleep(0.05)
        yield found.url


@contextmanager
def second_runner(url: str, folder: Path) -> Iterator[None]:
    """Another runner for the same server, with a folder of its own."""
    command = ["runner", "--url", url, "--data", str(folder / "second")]
    with _started(command, folder / "demo-runner.log"):
        yield


def kill_runner(name: str) -> None:
    """Kill a runner of this machine as a power cut would; its name contains its process id."""
    os.kill(int(name.split("-")[-2]), signal.SIGKILL)


@contextmanager
def _started(command: list[str], log: Path, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    settings: Mapping[str, str] = {**os.environ, **environ}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", *command],
            stdout=output,
            stderr=output,
            env=settings,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
