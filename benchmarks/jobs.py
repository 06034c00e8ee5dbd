"""How fast jobs are: a tiny one, many small ones, a large one beside plain processes, and idling.

The large job fills a column of an SQL expression; the plain processes write and commit the very
same files without server, queue and Spark. Both are measured in turn, so their ratio bears a busy
machine.
"""

import multiprocessing
import os
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Lance warns at every commit of a column that the operation is young; it reads this at import.
os.environ["LANCE_LOG"] = "error"

import httpx
import lance
import msgspec
import pyarrow as pa
from lance.namespace import RestNamespace

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import command, servers
from benchmarks.progress import Progress
from benchmarks.report import align
from penstock.lance.commit.replacement import ColumnFile, Computation, commit_files
from penstock.lance.session.remote import Location, RemoteCatalog, open_version
from penstock.lance.write.column_files import (
    compute_pieces,
    get_fragment,
    get_targets,
    write_column_file,
)

EXPRESSION = "length(text)"
COLUMN = "value"
TINY_SECONDS = 0.6
LARGE_SECONDS, LARGE_RATIO = 0.35, 1.5
JOBS_A_SECOND = 5.0
START_SECONDS = 180
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    tiny: int
    rounds: int
    rows: int
    fragments: int
    queued: int
    idle_seconds: float


FULL = Effort(tiny=20, rounds=5, rows=2_000_000, fragments=16, queued=200, idle_seconds=10)
QUICK = Effort(tiny=5, rounds=2, rows=400_000, fragments=16, queued=40, idle_seconds=3)


class Client:
    """A server, as the benchmark asks it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, timeout=30, trust_env=False)

    def post(self, path: str, body: object = None) -> Any:
        answer = self._http.post(path, json=body)
        answer.raise_for_status()
        return answer.json()

    def finish(self, job: str) -> dict[str, str]:
        """Wait for a job's success, and return what is known of it.

        Its events tell that at once. Asking again and again would take the processors from it.
        """
        found: dict[str, Any] = {}
        with self._http.stream("GET", f"/v1/jobs/{job}/events") as events:
            events.raise_for_status()
            for line in events.iter_lines():
                if line.startswith("data: "):
                    found = msgspec.json.decode(line.removeprefix("data: "))
        if found.get("status") != "SUCCEEDED":
            raise RuntimeError(f"job {job} did not succeed: {found}")
        properties: dict[str, str] = found["properties"]
        return properties


class Figures(msgspec.Struct):
    """Everything that was measured, in seconds where nothing else is said."""

    load_average: float
    warm: float = 0.0
    tiny: list[float] = []
    queued_jobs: int = 0
    queued: float = 0.0
    large: list[float] = []
    ceiling: list[float] = []
    rows: int = 0
    idle_cores: float = 0.0
    resident_mb: float = 0.0


def run(effort: Effort, folder: Path) -> Figures:
    """All phases on one server and one runner."""
    figures = Figures(os.getloadavg()[0], rows=effort.rows)
    with servers.penstock(folder / "data") as server:
        started = time.perf_counter()
        client = Client(f"http://127.0.0.1:{server.port}")
        with runner(client.url, folder) as process:
            figures.warm = time.perf_counter() - started
            measure_tiny(client, effort, figures)
            measure_queue(client, effort, figures)
            measure_large(client, effort, figures)
            measure_idle(process.pid, effort, figures)
    return figures


def measure_tiny(client: Client, effort: Effort, figures: Figures) -> None:
    """One job after the other on a table of a hundred rows."""
    table = make_table(client, 100, 4)
    progress = Progress("tiny jobs", effort.tiny)
    for _ in range(effort.tiny):
        figures.tiny.append(timed(lambda: client.finish(request(client, table))))
        progress.step(f"{figures.tiny[-1]:.2f} s")


def measure_queue(client: Client, effort: Effort, figures: Figures) -> None:
    """Many jobs at once, each on a table of its own."""
    tables = [make_table(client, 10, 1) for _ in range(effort.queued)]
    progress = Progress("queued jobs", effort.queued)

    def all_of_them() -> None:
        for job in [request(client, table) for table in tables]:
            client.finish(job)
            progress.step("")

    figures.queued_jobs = effort.queued
    figures.queued = timed(all_of_them)


def measure_large(client: Client, effort: Effort, figures: Figures) -> None:
    """The same column by a job and by two plain processes, in turn."""
    table = make_table(client, effort.rows, effort.fragments)
    spawn = multiprocessing.get_context("spawn")
    progress = Progress("large jobs", effort.rounds)
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        # Both processes are up and have loaded everything before the clock runs.
        fill_plainly(pool, client.url, table, effort.fragments)
        client.finish(request(client, table))
        for _ in range(effort.rounds):
            figures.ceiling.append(
                timed(lambda: fill_plainly(pool, client.url, table, effort.fragments))
            )
            figures.large.append(timed(lambda: client.finish(request(client, table))))
            progress.step(f"{figures.large[-1]:.2f} s beside {figures.ceiling[-1]:.2f} s")


def measure_idle(pid: int, effort: Effort, figures: Figures) -> None:
    """What a warm runner with nothing to do costs, with all that it has started."""
    before = cpu_seconds(pid)
    time.sleep(effort.idle_seconds)
    figures.idle_cores = (cpu_seconds(pid) - before) / effort.idle_seconds
    figures.resident_mb = sum(resident_mb(each) for each in family(pid))


def fill_plainly(pool: ProcessPoolExecutor, url: str, table: list[str], fragments: int) -> None:
    """Write the column's files in two processes, and commit them."""
    dataset = RemoteCatalog(url).open_latest(table, "")
    halves = [range(start, fragments, 2) for start in (0, 1)]
    work = [pool.submit(write_plainly, dataset.uri, dataset.version, list(h)) for h in halves]
    files = {id: file for each in work for id, file in each.result().items()}
    commit_files(dataset, files, {})


def write_plainly(uri: str, version: int, fragments: list[int]) -> dict[int, ColumnFile]:
    """What one of them does."""
    location = Location(uri, "")
    dataset = open_version(location, version)
    what = Computation(COLUMN, EXPRESSION)
    targets = get_targets(dataset, [COLUMN])
    written = {}
    for id in fragments:
        fragment = get_fragment(dataset, id)
        pieces = compute_pieces(dataset, fragment, targets[0], what)
        name = f"plain-{uuid.uuid4().hex}.lance"
        written[id] = write_column_file(dataset, location, fragment, targets, pieces, name)
    return written


def make_table(client: Client, rows: int, fragments: int) -> list[str]:
    """A table with a computed column that is not filled."""
    id = [f"b{uuid.uuid4().hex[:8]}", "t"]
    client.post(f"/v1/namespace/{id[0]}/create")
    connect: Any = RestNamespace
    lance.write_dataset(
        pa.table({"id": range(rows), "text": ["x" * (n % 97) for n in range(rows)]}),
        namespace_client=connect(uri=client.url),
        table_id=id,
        mode="create",
        max_rows_per_file=-(-rows // fragments),
        enable_stable_row_ids=True,
    )
    new = [{"name": COLUMN, "computed": EXPRESSION}]
    client.post(f"/v1/table/{'$'.join(id)}/add_columns", {"new_columns": new})
    return id


def request(client: Client, table: list[str]) -> str:
    """Ask for the whole column, whether it is fresh or not; returns the job."""
    body = {"column": COLUMN, "force": True}
    return str(client.post(f"/v1/table/{'$'.join(table)}/backfill_column", body)["job_id"])


@contextmanager
def runner(url: str, folder: Path) -> "Iterator[subprocess.Popen[str]]":
    """A warm runner on two cores."""
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", "runner", "--url", url, "--data", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if ": up after" in line:
                break
        else:
            raise RuntimeError("the runner did not start")
        # Its log must not fill the pipe and stop it.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield process
    finally:
        process.terminate()
        process.wait(30)


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [each for child in task.read_text().split() for each in family(int(child))]
    return found if children.exists() else []


def cpu_seconds(pid: int) -> float:
    total = 0.0
    for each in family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / TICK
    return total


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def show(figures: Figures) -> str:
    """The figures beside their goals."""
    tiny, large = statistics.median(figures.tiny), statistics.median(figures.large)
    ceiling = statistics.median(figures.ceiling)
    bound = LARGE_SECONDS + LARGE_RATIO * ceiling
    rate = figures.queued_jobs / figures.queued
    many, rows_of = f"{figures.queued_jobs} queued jobs", f"{figures.rows:,} rows by SQL"
    rows = [
        ["measure", "figure", "goal", ""],
        _row("tiny job to its end", f"{tiny:.2f} s", f"< {TINY_SECONDS} s", tiny < TINY_SECONDS),
        _row(many, f"{rate:.1f} a second", f">= {JOBS_A_SECOND:g}", rate >= JOBS_A_SECOND),
        _row(rows_of, f"{large:.2f} s", f"<= {bound:.2f} s", large <= bound),
        ["  two plain processes", f"{ceiling:.2f} s", "", f"ratio {large / ceiling:.1f}"],
        ["a runner's start until warm", f"{figures.warm:.1f} s", "", ""],
        ["idle: cores used", f"{figures.idle_cores:.3f}", "", ""],
        ["idle: resident, with JVM and workers", f"{figures.resident_mb:.0f} MB", "", ""],
    ]
    head = f"load average at the start: {figures.load_average:.1f}"
    return f"{head}\n\n{align(rows, range(1, 3))}"


def _row(measure: str, figure: str, goal: str, is_reached: bool) -> list[str]:
    return [measure, figure, goal, "reached" if is_reached else "MISSED"]


if __name__ == "__main__":
    command.start(__doc__, FULL, QUICK, run, show)
