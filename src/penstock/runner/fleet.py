"""Run a process for each cluster, because a process can have only one classic Spark session."""

import contextlib
import logging
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

from penstock.retries import Backoff

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 30.0
LOOK_SECONDS = 0.2
STOP_SECONDS = 9.0


def run_fleet(
    commands: Mapping[str, Sequence[str]], stop: threading.Event, token: str = ""
) -> None:
    """Keep a process running for each cluster until `stop` is set; passes each the key, if any."""
    children = {name: _start(command, token) for name, command in commands.items()}
    pauses = {name: Backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS) for name in commands}
    due = dict.fromkeys(commands, 0.0)
    while not stop.wait(LOOK_SECONDS):
        for name, child in children.items():
            if child.poll() is None:
                continue
            if not due[name]:
                log.warning("the runner of cluster %s ended with %s", name, child.returncode)
                due[name] = time.monotonic() + pauses[name].take()
            elif time.monotonic() >= due[name]:
                children[name] = _start(commands[name], token)
                due[name] = 0.0
    for child in children.values():
        child.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for child in children.values():
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()


def _start(command: Sequence[str], token: str) -> "subprocess.Popen[str]":
    if not token:
        return subprocess.Popen(command, text=True)
    child = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
    assert child.stdin is not None
    # A process that dies at once is seen, and restarted, like any other.
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(f"{token}\n")
        child.stdin.close()
    return child
