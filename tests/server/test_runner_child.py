"""The runner that the server starts: started again when it dies, and gone when the server is."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.server.runner_api import child as runner_child
from penstock.server.runner_api.child import RunnerChild, list_session
from tests.harness.jobs.fake_runner import describe, make_column
from tests.harness.processes import servers, waiting

pytestmark = pytest.mark.anyio

# A runner that notes its start and has a child in a group of its own, as Spark's workers are.
RUNNER = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import os, time; os.setpgid(0, 0); time.sleep(600)"])
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(600)
"""
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + RUNNER
FLEETING = RUNNER.replace("time.sleep(600)\n", "sys.exit(3)\n")


def command(script: str, notes: Path) -> list[str]:
    return [sys.executable, "-c", script, str(notes)]


def starts(notes: Path) -> list[int]:
    return [int(line) for line in notes.read_text().split()] if notes.exists() else []


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        await asyncio.sleep(0.05)


async def test_a_stop_leaves_nothing_of_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    child = RunnerChild(command(RUNNER, notes), os.environ)
    child.start()
    await until(lambda: bool(starts(notes)))
    (pid,) = starts(notes)
    await until(lambda: len(list_session(pid)) == 2)
    started = time.monotonic()
    await child.stop()
    # It heard the request, and was not killed.
    assert time.monotonic() - started < runner_child.STOP_SECONDS
    assert list_session(pid) == []


async def test_what_does_not_stop_is_killed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    child = RunnerChild(command(STUBBORN, notes), os.environ, stop_seconds=0.5)
    child.start()
    await until(lambda: bool(starts(notes)))
    (pid,) = starts(notes)
    await child.stop()
    await child.stop()
    assert list_session(pid) == []


async def test_one_that_dies_is_started_again(tmp_path: Path) -> None:
    notes, deaths = tmp_path / "notes", []

    async def note(pid: int, again: bool) -> None:
        deaths.append((pid, again))

    child = RunnerChild(command(RUNNER, notes), os.environ, note)
    child.start()
    await until(lambda: len(starts(notes)) == 1)
    os.kill(starts(notes)[0], signal.SIGKILL)
    await until(lambda: len(starts(notes)) == 2)
    first, second = starts(notes)
    assert list_session(first) == []
    await child.stop()
    assert list_session(second) == []
    assert deaths == [(first, True), (second, False)]


async def test_one_that_dies_at_once_is_started_ever_more_rarely(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    child = RunnerChild(command(FLEETING, notes), os.environ, first_pause_seconds=0.2)
    started = time.monotonic()
    child.start()
    await until(lambda: len(starts(notes)) == 4)
    await child.stop()
    assert time.monotonic() - started > 0.2 + 0.4 + 0.8


def test_it_dies_with_a_server_that_is_killed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    code = (
        "import asyncio, os, sys\n"
        "from penstock.server.runner_api.child import RunnerChild\n"
        "async def main():\n"
        f"    RunnerChild([sys.executable, '-c', {RUNNER!r}, {str(notes)!r}], os.environ).start()\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    server = subprocess.Popen([sys.executable, "-c", code])
    waiting.until(lambda: starts(notes))
    (pid,) = starts(notes)
    server.kill()
    server.wait()
    waiting.until(lambda: pid not in list_session(pid))
    runner_child.kill_session(pid)


async def nobody(pid: int, again: bool) -> None: ...


def session_of(server: servers.Server) -> int | None:
    """The session of the runner that a server has started."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    for pid in map(int, children.read_text().split()):
        # One that has ended meanwhile is no runner.
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(pid) == pid:
                return pid
    return None


def test_serve_starts_a_runner_and_takes_it_along(tmp_path: Path) -> None:
    with servers.running(tmp_path, runner=True) as server:
        session = wait_for_session(server)
        wanted = b"\0".join([b"penstock", b"runner", b"--child", b"--url", server.url.encode()])
        # What makes the session becomes the runner.
        waiting.until(
            lambda: wanted in Path(f"/proc/{session}/cmdline").read_bytes(), "it is no runner"
        )
        assert server.stop() == 0
    assert list_session(session) == []


def test_a_killed_runner_loses_its_job_at_once(tmp_path: Path) -> None:
    # Leases do not end by themselves while this test runs.
    environ = {"PENSTOCK__JOBS__LEASE_SECONDS": "3600"}
    with servers.running(tmp_path, runner=True, environ=environ) as server:
        session = wait_for_session(server)
        os.kill(session, signal.SIGSTOP)
        id = make_column(server, "local").request()
        # Nothing but a name ties a lease to the child: this test leases under it, unless the child
        # had asked for jobs before it was stopped.
        name = f"{socket.gethostname()}-{session}-x"
        body = {"runner": name, "clusters": ["local"], "free": 1, "wait_seconds": 0}
        server.post("/v1/runner/lease", body).raise_for_status()
        assert is_held(server, id)
        os.kill(session, signal.SIGKILL)
        # The next one may have begun with it already.
        waiting.until(lambda: not is_held(server, id))
        assert "penstock_runner_restarts_total 1.0" in server.get("/metrics").text


def is_held(server: servers.Server, id: str) -> bool:
    found = describe(server, id)
    return (found["status"], found["attempt"]) == ("RUNNING", "1")


def wait_for_session(server: servers.Server) -> int:
    """The session of a server's runner, once its program runs.

    The server waits for that, and would wait for ever for one that is stopped before.
    """
    session = waiting.until(lambda: session_of(server), "it has no runner")
    program = Path(f"/proc/{session}/cmdline")
    waiting.until(lambda: b"\0runner\0" in program.read_bytes(), "its runner does not run")
    return session


def is_daemon(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@pytest.mark.slow
def test_nothing_of_a_warm_runner_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    server = servers.start(tmp_path, runner=True)
    session = wait_for_session(server)
    # The last that is started: by the JVM, for Python workers.
    waiting.until(lambda: any(is_daemon(pid) for pid in list_session(session)), "it has no workers")
    server.kill()
    waiting.until(lambda: not list_session(session), "something is left")


def test_serve_starts_none_when_told_so(tmp_path: Path) -> None:
    for arguments in ({"runner": False}, {"runner": True, "no": 1}):
        environ = {"PENSTOCK__RUNNER__START": "false"} if "no" in arguments else {}
        with servers.running(tmp_path, environ=environ, runner=bool(arguments["runner"])) as server:
            time.sleep(1)
            assert session_of(server) is None


def test_without_spark_there_is_one_line_and_no_runner(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So Python marks a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert runner_child.make_child("http://x", "/data", "", nobody) is None
    (line,) = caplog.messages
    assert "it needs pyspark" in line


def test_the_child_reads_the_same_settings_file() -> None:
    child = runner_child.make_child("http://x:1", "/data", "/some/penstock.toml", nobody)
    assert child is not None
    assert child.environ["PENSTOCK_CONFIG"] == "/some/penstock.toml"
    assert child.command[-4:] == ["--url", "http://x:1", "--data", "/data"]
