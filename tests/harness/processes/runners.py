"""Real `penstock runner` processes for tests, and the jobs that they work on."""

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from tests.harness.clients.pylance import connect
from tests.harness.data.tables import new_name
from tests.harness.jobs.fake_runner import add_computed, describe
from tests.harness.jobs.loose_files import find_loose
from tests.harness.processes import servers
from tests.harness.processes.servers import Server

# Spark starts in a few seconds, and in minutes on a machine that does many other things.
START_SECONDS = 300
JOB_SECONDS = 180
WORKER_SECONDS = 60
FINISHED = ("SUCCEEDED", "FAILED", "CANCELED")
# About two milliseconds of work for each row.
SLOW = f"levenshtein(lpad(text, 2500, 'a'), '{'b' * 250}') + id"


@dataclass
class RunnerProcess:
    """A running `penstock runner`."""

    process: subprocess.Popen[str]
    lines: "queue.Queue[str]"
    seen: list[str]

    def wait_until_warm(self) -> "RunnerProcess":
        self.wait_for(r"Spark on \w+: up")
        return self

    def wait_for(self, pattern: str) -> str:
        """Wait for a line of its log."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            line = self.lines.get(timeout=max(0.1, deadline - time.monotonic()))
            self.seen.append(line)
            if re.search(pattern, line):
                return line
            assert line, "the runner ended:\n" + "".join(self.seen)

    def jvm(self) -> int:
        """The process of its JVM."""
        return next(pid for pid in self.processes() if "/java" in _command(pid).split(" ")[0])

    def workers(self) -> list[int]:
        """Its Python workers, the children of Spark's daemons; none before the first task."""
        found = self.processes()
        daemons = [pid for pid in found if "pyspark.daemon" in _command(pid)]
        return [pid for pid in daemons if found[pid] in daemons]

    def processes(self) -> dict[int, int]:
        """Every process that it started, directly or not, with its parent."""
        parents = _parents()
        found: dict[int, int] = {}
        level = {self.process.pid}
        # By the tree: the numbers start again at the bottom, so a child's may be the smaller one.
        while level:
            children = {pid: parents[pid] for pid in parents if parents[pid] in level}
            found |= children
            level = set(children)
        return found

    def kill_workers(self) -> None:
        """Kill the Python workers that there are, and at least one."""
        deadline = time.monotonic() + WORKER_SECONDS
        while not (pids := self.workers()):
            assert time.monotonic() < deadline, "no Python worker came"
            time.sleep(0.05)
        for pid in pids:
            # One that had nothing to do may have ended by itself.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """End it as a power cut would; what it started ends by itself."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)


def start_runner(
    url: str, data: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> RunnerProcess:
    command = [sys.executable, "-m", "penstock", "runner", "--url", url, "--data", str(data)]
    process, lines = servers.spawn([*command, *arguments], environ)
    return RunnerProcess(process, lines, [])


@dataclass
class Team:
    """The runners of one server, started when a test wants them."""

    server: Server
    data: Path
    environ: Mapping[str, str]
    members: list[RunnerProcess] = field(default_factory=list)

    def at_least(self, count: int) -> list[RunnerProcess]:
        """So many warm runners, or more."""
        self.members = [runner for runner in self.members if runner.process.poll() is None]
        new = [self.start() for _ in range(count - len(self.members))]
        # Before they are warm, so that they are stopped even if they never are.
        self.members += new
        for runner in new:
            runner.wait_until_warm()
        return self.members

    def start(self, **environ: str) -> RunnerProcess:
        """One more, which belongs to the test."""
        return start_runner(self.server.url, self.data, environ={**self.environ, **environ})

    def holder(self, job: str) -> RunnerProcess:
        """The runner that works on a job."""
        name = describe(self.server, job)["runner"]
        return next(r for r in self.members if f"-{r.process.pid}-" in name)

    @contextlib.contextmanager
    def asleep(self) -> Iterator[None]:
        """Inside, none of them works, and what they had asked for is refused."""
        for runner in self.at_least(1):
            runner.pause()
        try:
            yield
        finally:
            for runner in self.members:
                runner.resume()

    def stop(self) -> None:
        for runner in self.members:
            if runner.process.poll() is None:
                runner.resume()
                runner.stop()


@dataclass(frozen=True)
class JobTable:
    """A table whose column `value` jobs fill."""

    server: Server
    id: list[str]
    expression: str

    @property
    def name(self) -> str:
        return "$".join(self.id)

    def open(self) -> lance.LanceDataset:
        return lance.dataset(namespace_client=connect(self.server), table_id=self.id)

    def request(self, **body: Any) -> str:
        """Request a backfill, which must work; returns the job."""
        answer = self.server.post(
            f"/v1/table/{self.name}/backfill_column", {"column": "value", **body}
        )
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    def finish(self, job: str, seconds: float = JOB_SECONDS) -> dict[str, Any]:
        """Wait until a job has ended; returns its properties and state."""
        return wait(self.server, job, lambda found: found["status"] in FINISHED, seconds)

    def fill(self, **body: Any) -> dict[str, Any]:
        return self.finish(self.request(**body))

    def is_right(self) -> bool:
        """Whether every row has its value."""
        columns = {"value": "value", "wanted": self.expression}
        rows = self.open().to_table(columns=columns)
        return bool(rows["value"].to_pylist() == rows["wanted"].to_pylist())

    def is_empty(self) -> bool:
        return self.open().count_rows("value IS NOT NULL") == 0

    def commits(self, job: str) -> list[int]:
        """The versions that a job committed."""
        return find_commits(self.open(), job)

    def loose_files(self) -> set[str]:
        """Files of backfills that no version refers to, and notes of jobs."""
        newest = self.open()
        return find_loose(Path(newest.uri), [newest], "bf-*")


def find_commits(dataset: lance.LanceDataset, job: str) -> list[int]:
    """The versions that a job committed."""
    found = []
    for version in range(1, dataset.version + 1):
        transaction = dataset.read_transaction(version)
        properties = (transaction and transaction.transaction_properties) or {}
        if properties.get("penstock.job") == job:
            found.append(version)
    return found


def wait(
    server: Server,
    job: str,
    ready: Callable[[dict[str, Any]], bool],
    seconds: float = JOB_SECONDS,
) -> dict[str, Any]:
    """Wait until a job is as it should be."""
    deadline = time.monotonic() + seconds
    while True:
        found = describe(server, job)
        if ready(found):
            return found
        assert time.monotonic() < deadline, f"the job is still {found}"
        time.sleep(0.05)


def cpu_seconds(pid: int) -> float:
    """How long a process has computed."""
    spent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")


def restart(server: Server, *, environ: Mapping[str, str]) -> None:
    """Kill a server, and start another with its port and its data."""
    port = server.url.rpartition(":")[2]
    server.kill()
    again = servers.start(server.data, "--no-runner", "--port", port, environ=environ)
    again.client.close()
    server.process, server.lines = again.process, again.lines


def make_filled(
    server: Server, rows: int = 100, fragments: int = 4, expression: str = "length(text) + id"
) -> JobTable:
    """A new table with a computed column that is not filled yet."""
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    id = [namespace, "t"]
    ids = pa.array(range(rows), pa.int64())
    lance.write_dataset(
        pa.table({"id": ids, "text": ["x" * (n % 17 + 1) for n in range(rows)]}),
        namespace_client=connect(server),
        table_id=id,
        mode="create",
        max_rows_per_file=-(-rows // fragments),
        enable_stable_row_ids=True,
    )
    add_computed(server, "$".join(id), value=expression).raise_for_status()
    return JobTable(server, id, expression)


def _parents() -> dict[int, int]:
    """The parent of every process on this machine."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name before the last parenthesis may hold anything.
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return found


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""
