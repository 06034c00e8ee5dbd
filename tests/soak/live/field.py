"""A server with two runners, any part of which can be killed, and is replaced."""

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.harness.processes import servers
from tests.harness.processes.runners import RunnerProcess, Team, restart
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

VICTIMS = ("worker", "jvm", "runner", "server", "all")
ENVIRON = {
    "PENSTOCK__JOBS__LEASE_SECONDS": "5",
    "PENSTOCK__JOBS__MAX_ATTEMPTS": "10",
}
RUNNERS = {
    "PENSTOCK__CLUSTERS": '{"local": {"master": "local[2,4]"}}',
    "PENSTOCK__RUNNER__JOBS": "6",
}
TASKS = 2
WORKER_SECONDS = 10


@dataclass
class Field:
    """Where the kills happen."""

    server: Server
    team: Team
    environ: Mapping[str, str]

    def strike(self, victim: str, holder: RunnerProcess) -> str:
        """Kill a part of what works on a job; returns what was killed in the end."""
        if victim == "worker":
            # A query without functions has workers for a moment only, if any.
            with contextlib.suppress(AssertionError):
                until(holder.workers, seconds=WORKER_SECONDS)
            for pid in holder.workers():
                _kill(pid)
        elif victim == "jvm":
            with contextlib.suppress(StopIteration):
                _kill(holder.jvm())
        elif victim == "runner":
            self._replace([holder])
        elif victim == "server":
            restart(self.server, environ=self.environ)
        else:
            for runner in self.team.members:
                for pid in runner.processes():
                    _kill(pid)
            everyone = list(self.team.members)
            for runner in everyone:
                runner.kill()
            restart(self.server, environ=self.environ)
            self._replace(everyone)
        return victim

    def _replace(self, runners: list[RunnerProcess]) -> None:
        for runner in runners:
            if runner.process.poll() is None:
                runner.kill()
            self.team.members.remove(runner)
            self.team.members.append(self.team.start())


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def open_field(
    folder: Path,
    database: str = "",
    runners: int = 2,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Field]:
    """A field of its own; `database` is an address, or "" for SQLite."""
    environ = ENVIRON | dict(settings or {})
    if database:
        environ["PENSTOCK__DATABASE__URL"] = database
    port = str(servers.free_port())
    server = servers.start(folder / "data", "--no-runner", "--port", port, environ=environ)
    team = Team(server, folder / "runner", RUNNERS)
    try:
        team.at_least(runners)
        yield Field(server, team, environ)
    finally:
        team.stop()
        with contextlib.suppress(ProcessLookupError):
            server.stop()
