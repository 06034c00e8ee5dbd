"""How well a job overlaps calls that wait, beside a bare asyncio loop that makes the same calls.

Each row is one call that sleeps, as a call of a service does. Job and bare loop have the same
number of calls under way, and are measured in turn, so their ratio bears a busy machine.
"""

import asyncio
import os
import statistics
import sys
import time
import uuid
from pathlib import Path

# Lance warns at every commit of a column that the operation is young; it reads this at import.
os.environ["LANCE_LOG"] = "error"

import lance
import msgspec
import pyarrow as pa
from lance.namespace import RestNamespace

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import penstock
from benchmarks import command, servers
from benchmarks.jobs import runner, timed
from benchmarks.progress import Progress
from benchmarks.report import align

RATIO = 1.5


class Effort(msgspec.Struct, frozen=True):
    """How much is measured."""

    rows: int
    rounds: int
    seconds: float = 0.05
    concurrency: int = 16
    tasks: int = 2


FULL, QUICK = Effort(1000, 5), Effort(400, 2)


class Figures(msgspec.Struct):
    """Seconds of each round, and what the calls would take if nothing else did."""

    load_average: float
    effort: Effort
    ideal: float
    job: list[float] = []
    bare: list[float] = []


def run(effort: Effort, folder: Path) -> Figures:
    at_once = effort.concurrency * effort.tasks
    ideal = effort.rows * effort.seconds / at_once
    figures = Figures(os.getloadavg()[0], effort, ideal)
    progress = Progress("waiting calls", effort.rounds)
    with servers.penstock(folder / "data") as server:
        url = f"http://127.0.0.1:{server.port}"
        with runner(url, folder), penstock.connect(url) as lake:
            # The first job has workers load what they need.
            measure_job(lake, url, effort)
            for _ in range(effort.rounds):
                figures.job.append(measure_job(lake, url, effort))
                figures.bare.append(timed(lambda: asyncio.run(call_all(effort, at_once))))
                progress.step(f"{figures.job[-1]:.2f} s, bare {figures.bare[-1]:.2f} s")
    return figures


def measure_job(lake: penstock.Lake, url: str, effort: Effort) -> float:
    """A backfill of a new table with a fragment for each task."""
    seconds = effort.seconds

    @penstock.udf(concurrency=effort.concurrency)
    async def wait(id: int) -> int:
        await asyncio.sleep(seconds)
        return id

    name = f"b{uuid.uuid4().hex[:8]}"
    lake.create_namespace(name)
    lance.write_dataset(
        pa.table({"id": range(effort.rows)}),
        namespace_client=RestNamespace(uri=url),  # type: ignore[no-untyped-call]
        table_id=[name, "t"],
        mode="create",
        max_rows_per_file=-(-effort.rows // effort.tasks),
        enable_stable_row_ids=True,
    )
    table = lake.table(f"{name}.t").add_column("value", wait)
    started = time.perf_counter()
    job = table.backfill("value", progress=False)
    took = time.perf_counter() - started
    if job.function_calls != effort.rows or table.count("value = id") != effort.rows:
        raise RuntimeError(f"{job.function_calls} calls for {effort.rows} rows")
    return took


async def call_all(effort: Effort, at_once: int) -> None:
    room = asyncio.Semaphore(at_once)

    async def call() -> None:
        async with room:
            await asyncio.sleep(effort.seconds)

    await asyncio.gather(*(call() for _ in range(effort.rows)))


def show(figures: Figures) -> str:
    """The figures beside the goal."""
    effort = figures.effort
    job, bare = statistics.median(figures.job), statistics.median(figures.bare)
    head = (
        f"{effort.rows} calls of {effort.seconds * 1000:g} ms, {effort.tasks} tasks with "
        f"{effort.concurrency} at once; load average at the start: {figures.load_average:.1f}"
    )
    verdict = "reached" if job / bare <= RATIO else "MISSED"
    rows = [
        ["measure", "seconds", "to bare", "goal", ""],
        ["nothing but the calls", f"{figures.ideal:.2f} s", "", "", ""],
        ["bare asyncio loop", f"{bare:.2f} s", "1.00", "", ""],
        ["job", f"{job:.2f} s", f"{job / bare:.2f}", f"{RATIO:.2f}", verdict],
    ]
    return f"{head}\n\n{align(rows, range(1, 4))}"


if __name__ == "__main__":
    command.start(__doc__, FULL, QUICK, run, show)
