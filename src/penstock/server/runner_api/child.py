"""The runner that a server starts as its child: restarted when it dies, ended with the server.

It has its own session, so that everything it starts (a JVM, Python workers) can be found and ended
by the session's id; if the server is killed, the kernel ends the runner.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from penstock.catalog.jobs.queue import wait_for
from penstock.extras import list_missing, show_install, show_some
from penstock.retries import Backoff

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 30.0
# A child that ran this long did not die from its start.
STEADY_SECONDS = 60.0
# Together less than the 15 seconds after which nothing may be left.
STOP_SECONDS, KILL_SECONDS = 10.0, 3.0
# What the child runs first, as a separate program because a forked server must not run Python: ask
# the kernel (PR_SET_PDEATHSIG) to kill it when its parent ends, then become the runner.
DIE_WITH_PARENT = """
import os, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
except (ImportError, OSError, AttributeError):
    pass
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


NOT_ITS = ("PENSTOCK_TOKEN", "PENSTOCK_API_KEY", "PENSTOCK__DATABASE__", "PENSTOCK__AUTH__")

# Called with the process id, and whether another one will be started.
OnDeath = Callable[[int, bool], Awaitable[None]]


class RunnerChild:
    """One child process at a time, restarted when it dies."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        on_death: OnDeath | None = None,
        token: str = "",
        *,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        self.command = command
        self.environ = environ
        self._on_death = on_death
        self._token = token
        self._pauses = Backoff(first_pause_seconds, MAX_PAUSE_SECONDS)
        self._stop_seconds = stop_seconds
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """End the child and everything it started; may be called more than once."""
        self._stop.set()
        if self._process is not None:
            await end_session(self._process, self._stop_seconds)
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        while not self._stop.is_set():
            started = clock()
            try:
                end = await self._run()
            except OSError as error:
                end = f"could not be started: {error}"
            if self._stop.is_set():
                return
            if clock() - started >= STEADY_SECONDS:
                self._pauses.reset()
            pause = self._pauses.take()
            log.warning("the runner %s; another starts in %g s", end, pause)
            if await wait_for(self._stop, pause):
                return

    async def _run(self) -> str:
        """Start the child and wait for its end; returns its exit status."""
        process = self._process = await self._spawn()
        if self._stop.is_set():
            await end_session(process, self._stop_seconds)
        code = await process.wait()
        kill_session(process.pid)
        self._process = None
        if self._on_death is not None:
            await self._on_death(process.pid, not self._stop.is_set())
        return f"ended with signal {-code}" if code < 0 else f"ended with exit code {code}"

    async def _spawn(self) -> asyncio.subprocess.Process:
        first = (sys.executable, "-I", "-S", "-c", DIE_WITH_PARENT, str(os.getpid()))
        process = await asyncio.create_subprocess_exec(
            *first,
            *self.command,
            stdin=asyncio.subprocess.PIPE if self._token else asyncio.subprocess.DEVNULL,
            env=dict(self.environ),
            start_new_session=True,
        )
        if process.stdin is not None:
            # Through a pipe: others can read command lines and environments.
            with contextlib.suppress(ConnectionError):
                process.stdin.write(f"{self._token}\n".encode())
                await process.stdin.drain()
            process.stdin.close()
        return process


def make_child(
    url: str, data: str, config: str, on_death: OnDeath, token: str = ""
) -> RunnerChild | None:
    """The runner of a server at this URL; None, with a line in the log, where Spark is missing."""
    if missing := list_missing("runner"):
        log.warning(
            "no runner is started, so jobs wait: it needs %s; %s, or --no-runner if one "
            "runs elsewhere",
            show_some(missing),
            show_install("runner"),
        )
        return None
    # A runner needs neither the database nor the server's own secrets.
    environ = {name: text for name, text in os.environ.items() if not name.startswith(NOT_ITS)}
    if config:
        environ["PENSTOCK_CONFIG"] = config
    command = [sys.executable, "-m", "penstock", "runner", "--child", "--url", url]
    command += ["--data", data]
    if token:
        command.append("--token-stdin")
    return RunnerChild(command, environ, on_death, token)


def lease_prefix(pid: int) -> str:
    """The prefix of the names under which a runner with this process id leases jobs."""
    return f"{socket.gethostname()}-{pid}-"


async def end_session(process: asyncio.subprocess.Process, stop_seconds: float) -> None:
    """Ask a session's leader to stop, and after a while kill what is left of the session."""
    # Only the leader: it may need its children to stop in order.
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(stop_seconds):
            await process.wait()
    clock = asyncio.get_running_loop().time
    deadline = clock() + KILL_SECONDS
    while kill_session(process.pid) and clock() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.1)


def kill_session(session: int) -> bool:
    """Kill every process of a session, whatever its group; returns whether there was one."""
    found = list_session(session)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(found)


def list_session(session: int) -> list[int]:
    """The live processes of a session."""
    found = []
    for entry in Path("/proc").iterdir() if Path("/proc/self/stat").exists() else ():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            # After the name, which may contain anything: state, parent, group, session.
            state, _, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state not in "ZX":
                found.append(int(entry.name))
    return found
