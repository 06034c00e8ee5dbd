"""How fast functions fill columns, beside plain processes that do the same without us.

Every figure has its counterpart in the same run, measured in turn: two plain processes (scan,
call, write, commit) as the ceiling, and pylance's `add_columns` in one process as what a user would
write first. So the ratios bear a busy machine; the seconds do not. What Spark alone takes for two
tasks is measured before; "to floor" is a job beside that and the two processes together.
"""

import os
import statistics
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# Lance warns at every commit of a column that the operation is young; it reads this at import.
os.environ["LANCE_LOG"] = "error"

import msgspec

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import command, filling, plain, servers
from benchmarks.filling import Case
from benchmarks.floor import spark_floor
from benchmarks.jobs import Client, family, resident_mb, runner, timed
from benchmarks.memory import prepare_memory
from benchmarks.progress import Progress
from benchmarks.report import align

RATIOS = {"arrow": 1.35, "scalar": 1.35, "vector": 1.3}
UPDATED_ROWS, UPDATE_SHARE = 100, 0.05
NOTHING_SECONDS = 0.5
CHECKPOINT_SHARE = 0.05
PLAN_SECONDS = 2.0
# A JVM compiles what it runs while it runs: that is most of what it does in its first jobs.
WARM_JOBS, WARM_ROWS = 40, 20_000


class Effort(msgspec.Struct, frozen=True):
    """How much is measured."""

    rows: int
    fragments: int
    rounds: int
    slow_rows: int
    long_fragment: int
    blobs: int
    planned_rows: int


FULL = Effort(2_000_000, 16, 5, 300_000, 5_000_000, 2_000, 100_000_000)
QUICK = Effort(200_000, 16, 2, 40_000, 500_000, 200, 10_000_000)


class Series(msgspec.Struct):
    """One function: seconds of the job, of two plain processes, and of pylance's add_columns."""

    job: list[float] = []
    ceiling: list[float] = []
    add_columns: list[float] = []


class Changes(msgspec.Struct):
    """One function: seconds of a whole fill, of one after a few rows changed, and of none."""

    full: float
    update: list[float] = []
    nothing: list[float] = []


class Figures(msgspec.Struct):
    """Everything that was measured, in seconds where nothing else is said."""

    load_average: float
    effort: Effort
    functions: dict[str, Series] = {}
    spark: float = 0.0
    changes: dict[str, Changes] = {}
    without_parts: list[float] = []
    with_parts: list[float] = []
    long_mb: float = 0.0
    blobs_mb: float = 0.0
    plan: float = 0.0


def run(effort: Effort, folder: Path) -> Figures:
    """All phases on one server and one runner."""
    figures = Figures(os.getloadavg()[0], effort)
    figures.spark = spark_floor(folder)
    with servers.penstock(folder / "data") as server:
        client = Client(f"http://127.0.0.1:{server.port}")
        with (
            runner(client.url, folder) as process,
            ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        ):
            warm_up(client, effort)
            for case in filling.CASES:
                figures.functions[case.name] = measure_function(client, pool, case, effort, folder)
            for case in (filling.SCALAR, filling.COSTLY):
                figures.changes[case.name] = measure_changes(client, case, effort)
            measure_parts(client, effort, figures)
            measure_memory(client, process.pid, effort, figures)
            measure_plan(client, effort, figures)
    return figures


def warm_up(client: Client, effort: Effort) -> None:
    """Run small jobs, until the runner is as fast as one that is up for an hour."""
    table = filling.make_table(client, WARM_ROWS, effort.fragments)
    filling.add_column(client, table, filling.SCALAR)
    progress = Progress("warm up", WARM_JOBS)
    for _ in range(WARM_JOBS):
        fill(client, table, force=True)
        progress.step("")


def measure_function(
    client: Client, pool: ProcessPoolExecutor, case: Case, effort: Effort, folder: Path
) -> Series:
    """The same column by a job, by two plain processes and by pylance alone, in turn."""
    size_bytes = effort.rows * case.value_bytes
    table = filling.make_table(client, effort.rows, effort.fragments)
    filling.add_column(client, table, case)
    found = Series()
    # Once without the clock: processes are up, workers have loaded the function.
    plain.fill(pool, client.url, table, case)
    filling.renew_column(client, table, case)
    fill(client, table)
    progress = Progress(f"{case.name} of {effort.rows:,} rows", effort.rounds)
    for _ in range(effort.rounds):
        # Both fill a column that has no values yet.
        filling.renew_column(client, table, case)
        prepare_memory(folder, size_bytes)
        found.ceiling.append(timed(lambda: plain.fill(pool, client.url, table, case)))
        filling.renew_column(client, table, case)
        prepare_memory(folder, size_bytes)
        found.job.append(timed(lambda: fill(client, table, calls=effort.rows)))
        found.add_columns.append(plain.add_columns(client.url, table, case))
        progress.step(f"{found.job[-1]:.2f} s beside {found.ceiling[-1]:.2f} s")
    return found


def measure_changes(client: Client, case: Case, effort: Effort) -> Changes:
    """What a few changed rows cost, and nothing at all, beside the whole column."""
    table = filling.make_table(client, effort.rows, effort.fragments)
    filling.add_column(client, table, case)
    progress = Progress(f"changes, {case.name}", effort.rounds)
    found = Changes(timed(lambda: fill(client, table)))
    for number in range(effort.rounds):
        first = number * UPDATED_ROWS * 7
        rows = ", ".join(str((first + n * 7919) % effort.rows) for n in range(UPDATED_ROWS))
        body = {"updates": [["text", f"'changed {number}'"]], "predicate": f"id IN ({rows})"}
        client.post(f"/v1/table/{'$'.join(table)}/update", body)
        found.update.append(timed(lambda: fill(client, table, calls=UPDATED_ROWS)))
        found.nothing.append(timed(lambda: fill(client, table, calls=0)))
        progress.step(f"{found.update[-1]:.2f} s, then {found.nothing[-1]:.2f} s")
    return found


def measure_parts(client: Client, effort: Effort, figures: Figures) -> None:
    """A slow function with and without checkpoints inside its fragments."""
    table = filling.make_table(client, effort.slow_rows, 2)
    filling.add_column(client, table, filling.SLOW)
    progress = Progress("checkpoints", effort.rounds)
    for _ in range(effort.rounds):
        for found, seconds in ((figures.without_parts, 3600), (figures.with_parts, None)):
            knob = {"batch_checkpoint_flush_interval_seconds": seconds}
            found.append(timed(lambda knob=knob: fill(client, table, force=True, **knob)))  # type: ignore[misc]
        progress.step(f"{figures.with_parts[-1]:.2f} s beside {figures.without_parts[-1]:.2f} s")


def measure_memory(client: Client, runner: int, effort: Effort, figures: Figures) -> None:
    """The largest worker while one long fragment, and then large values, go through it."""
    table = filling.make_table(client, effort.long_fragment, 1)
    filling.add_column(client, table, filling.SCALAR)
    with watched(runner) as peak:
        fill(client, table)
    figures.long_mb = peak[0]
    table = filling.make_blobs(client, effort.blobs)
    filling.add_column(client, table, filling.BLOBS)
    with watched(runner) as peak:
        fill(client, table)
    figures.blobs_mb = peak[0]


def measure_plan(client: Client, effort: Effort, figures: Figures) -> None:
    """The plan of a large table, none of whose rows has to be read for it."""
    table = filling.make_wide(client, effort.planned_rows)
    filling.add_column(client, table, filling.SCALAR)
    path = f"/v1/table/{'$'.join(table)}/explain_backfill"
    figures.plan = min(timed(lambda: client.post(path, {"column": "value"})) for _ in range(3))


def fill(client: Client, table: list[str], calls: int | None = None, **body: Any) -> None:
    """Fill the column; the job must have made so many calls."""
    asked = {"column": "value", **body}
    job = client.post(f"/v1/table/{'$'.join(table)}/backfill_column", asked)["job_id"]
    made = int(client.finish(job).get("function_calls", 0))
    if calls is not None and made != calls:
        raise RuntimeError(f"job {job} made {made} calls instead of {calls}")


@contextmanager
def watched(pid: int) -> Iterator[list[float]]:
    """The peak of the largest Python worker's resident memory in MB, while inside."""
    peak, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            for each in family(pid):
                try:
                    name = Path(f"/proc/{each}/cmdline").read_text()
                    if "pyspark.daemon" in name:
                        peak[0] = max(peak[0], resident_mb(each))
                except OSError:
                    continue

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def show(figures: Figures) -> str:
    """The figures beside their goals."""
    rows = [["measure", "job", "ceiling", "ratio", "goal", "add_columns", "to floor", ""]]
    for name, found in figures.functions.items():
        job, ceiling, single = (_median(s) for s in (found.job, found.ceiling, found.add_columns))
        goal = RATIOS.get(name)
        ratio = statistics.median(a / b for a, b in zip(found.job, found.ceiling, strict=True))
        rows.append(
            [
                f"{name}, {figures.effort.rows:,} rows",
                f"{job:.2f} s",
                f"{ceiling:.2f} s",
                f"{ratio:.2f}",
                f"{goal:.2f}" if goal else "",
                f"{single:.2f} s",
                f"{job / (ceiling + figures.spark):.2f}",
                _verdict(ratio <= goal) if goal else "",
            ]
        )
    for name, changes in figures.changes.items():
        update, nothing = _median(changes.update), _median(changes.nothing)
        what = f"{UPDATED_ROWS} rows changed, {name}, part of {changes.full:.2f} s"
        rows.append(_row(what, update, update / changes.full, UPDATE_SHARE))
        rows.append(_row(f"nothing to do, {name}", nothing, nothing, NOTHING_SECONDS))
    rows += [
        _row(
            "checkpoints' share", _median(figures.with_parts), _overhead(figures), CHECKPOINT_SHARE
        ),
        _row(
            f"plan of {figures.effort.planned_rows:,} rows",
            figures.plan,
            figures.plan,
            PLAN_SECONDS,
        ),
    ]
    head = (
        f"load average at the start: {figures.load_average:.1f}\n"
        f"two empty tasks on a warm Spark session: {figures.spark:.3f} s; the floor of a job is "
        "that and the two processes"
    )
    memory = (
        f"largest worker: {figures.long_mb:.0f} MB with a fragment of "
        f"{figures.effort.long_fragment:,} rows, {figures.blobs_mb:.0f} MB with "
        f"{figures.effort.blobs:,} values of 100 KB"
    )
    return f"{head}\n\n{align(rows, range(1, 7))}\n\n{memory}"


def _overhead(figures: Figures) -> float:
    pairs = zip(figures.with_parts, figures.without_parts, strict=True)
    return statistics.median(a / b for a, b in pairs) - 1


def _row(measure: str, seconds: float, figure: float, goal: float) -> list[str]:
    shown = [measure, f"{seconds:.2f} s", "", f"{figure:.2f}", f"{goal:.2f}", "", ""]
    return [*shown, _verdict(figure <= goal)]


def _verdict(is_reached: bool) -> str:
    return "reached" if is_reached else "MISSED"


def _median(seconds: list[float]) -> float:
    return statistics.median(seconds)


if __name__ == "__main__":
    command.start(__doc__, FULL, QUICK, run, show)
