"""How fast materialized views are refreshed, beside plain processes that do the same without us.

Every figure has its counterpart in the same run, measured in turn: two plain processes (scan,
compute, write, commit) as the floor, lancedb's view in one process where it can do the work, and
plain Spark on Parquet for joins and groups. So the ratios bear a busy machine; the seconds do not.
"""

import os
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

# Lance warns of operations that are young; it reads this at import.
os.environ["LANCE_LOG"] = "error"

import msgspec

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import command, following, servers
from benchmarks.following import InProcess, refresh
from benchmarks.jobs import Client, runner, timed
from benchmarks.plain_spark import PlainSpark
from benchmarks.progress import Progress
from benchmarks.report import align

FULL_RATIO, FULL_SECONDS = 1.5, 0.3
APPEND_SHARE, APPEND_SECONDS = 0.05, 0.5
UPDATED_ROWS, UPDATE_SECONDS = 100, 0.8
NOTHING_SECONDS = 0.3
CHUNKER_RATIO, CHUNKER_SECONDS = 1.5, 0.5
CHANGED_DOCUMENTS = 10
SPARK_RATIO = 2.0
# One changed row, of either side of a join or of one partition of a window.
TOUCH_SHARE, TOUCH_SECONDS = 0.1, 1.0


class Effort(msgspec.Struct, frozen=True):
    """How much is measured."""

    rows: int
    fragments: int
    documents: int
    joined_rows: int
    kinds: int
    rounds: int


FULL = Effort(2_000_000, 16, 20_000, 1_000_000, 10_000, 3)
QUICK = Effort(200_000, 16, 2_000, 100_000, 1_000, 2)


class Series(msgspec.Struct):
    """One measure: seconds of the refresh, of its floor, and of lancedb in one process."""

    job: list[float] = []
    floor: list[float] = []
    lancedb: list[float] = []
    skipped: str = ""


class Figures(msgspec.Struct):
    """Everything that was measured, in seconds."""

    load_average: float
    effort: Effort
    query: Series = msgspec.field(default_factory=Series)
    by_spark: Series = msgspec.field(default_factory=Series)
    append: Series = msgspec.field(default_factory=Series)
    update: Series = msgspec.field(default_factory=Series)
    nothing: Series = msgspec.field(default_factory=Series)
    chunker: Series = msgspec.field(default_factory=Series)
    documents: Series = msgspec.field(default_factory=Series)
    join: Series = msgspec.field(default_factory=Series)
    groups: Series = msgspec.field(default_factory=Series)
    window: Series = msgspec.field(default_factory=Series)
    changed_fact: Series = msgspec.field(default_factory=Series)
    changed_kind: Series = msgspec.field(default_factory=Series)
    changed_partition: Series = msgspec.field(default_factory=Series)


def run(effort: Effort, folder: Path) -> Figures:
    """All phases on one server and one runner."""
    figures = Figures(os.getloadavg()[0], effort)
    with servers.penstock(folder / "data") as server:
        client = Client(f"http://127.0.0.1:{server.port}")
        with (
            runner(client.url, folder),
            ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        ):
            measure_query(client, pool, effort, figures, folder)
            measure_chunker(client, pool, effort, figures, folder)
            measure_spark(client, effort, figures, folder)
    return figures


def measure_query(
    client: Client, pool: ProcessPoolExecutor, effort: Effort, figures: Figures, folder: Path
) -> None:
    """Half of a table, as a whole, and then what changes of it cost."""
    table = following.make_table(client, effort.rows, effort.fragments)
    source = locate(client, table)
    view = following.make_view(client, table, following.SIDES)
    by_spark = following.make_view(client, table, following.SIDES_BY_SPARK)
    near = InProcess(folder / "lancedb", following.rows(0, effort.rows, effort.kinds))
    target = str(folder / "plain")
    # Once without the clock: processes are up, workers have loaded what they need.
    following.write_plainly(pool, source, target, following.left_side)
    for each in (view, by_spark):
        refresh(client, each)
        expect(following.count(client, each), effort.rows // 2)
    progress = Progress(f"query of {effort.rows:,} rows", effort.rounds)
    for _ in range(effort.rounds):
        floor = timed(lambda: following.write_plainly(pool, source, target, following.left_side))
        figures.query.floor.append(floor)
        figures.by_spark.floor.append(floor)
        figures.query.job.append(timed(lambda: refresh(client, view, mode="full")))
        figures.by_spark.job.append(timed(lambda: refresh(client, by_spark, mode="full")))
        figures.query.lancedb.append(timed(lambda: near.refresh(full=True)))
        progress.step(f"{figures.query.job[-1]:.2f} s beside {floor:.2f} s")
    measure_changes(client, effort, figures, table, view, near)


def measure_changes(
    client: Client, effort: Effort, figures: Figures, table: list[str], view: str, near: InProcess
) -> None:
    """One row of a hundred more, a hundred rows changed, nothing at all."""
    more = effort.rows // 100
    progress = Progress("changes", effort.rounds)
    for number in range(effort.rounds):
        new = following.rows(effort.rows + number * more, more, effort.kinds)
        following.write(client, table, new, more, "append")
        near.table.add(new)
        figures.append.job.append(timed(lambda: refresh(client, view)))
        figures.append.lancedb.append(timed(near.refresh))
        ids = ", ".join(
            str((number * 701 + n * 7919 * 2 + 1) % effort.rows) for n in range(UPDATED_ROWS)
        )
        body = {"updates": [["text", f"'changed {number}'"]], "predicate": f"id IN ({ids})"}
        client.post(f"/v1/table/{'$'.join(table)}/update", body)
        near.table.update(where=f"id IN ({ids})", values={"text": f"changed {number}"})
        figures.update.job.append(timed(lambda: refresh(client, view)))
        figures.update.lancedb.append(timed(near.refresh))
        figures.nothing.job.append(timed(lambda: refresh(client, view)))
        figures.nothing.lancedb.append(timed(near.refresh))
        progress.step(f"{figures.append.job[-1]:.2f} s, {figures.update.job[-1]:.2f} s")
    expect(following.count(client, view), near.view.table.count_rows())


def measure_chunker(
    client: Client, pool: ProcessPoolExecutor, effort: Effort, figures: Figures, folder: Path
) -> None:
    """Documents cut into their lines, and what a few changed ones cost."""
    table = following.make_documents(client, effort.documents, effort.fragments)
    source, target = locate(client, table), str(folder / "plain-parts")
    view = following.make_parts(client, table)
    following.write_plainly(pool, source, target, following.parts)
    refresh(client, view)
    expect(following.count(client, view), effort.documents * following.PARTS)
    progress = Progress(f"chunker of {effort.documents:,} documents", effort.rounds)
    for number in range(effort.rounds):
        figures.chunker.floor.append(
            timed(lambda: following.write_plainly(pool, source, target, following.parts))
        )
        found: list[int] = []
        figures.chunker.job.append(
            timed(lambda found=found: found.append(calls(client, view, mode="full")))  # type: ignore[misc]
        )
        ids = ", ".join(str(number + n * 97) for n in range(CHANGED_DOCUMENTS))
        body = {"updates": [["text", f"'new {number}'"]], "predicate": f"id IN ({ids})"}
        client.post(f"/v1/table/{'$'.join(table)}/update", body)
        figures.documents.job.append(
            timed(lambda found=found: found.append(calls(client, view)))  # type: ignore[misc]
        )
        expect(found, [effort.documents, CHANGED_DOCUMENTS])
        progress.step(f"{figures.chunker.job[-1]:.2f} s beside {figures.chunker.floor[-1]:.2f} s")


def measure_spark(client: Client, effort: Effort, figures: Figures, folder: Path) -> None:
    """A join and groups, beside plain Spark that reads and writes Parquet."""
    table = following.make_table(client, effort.joined_rows, effort.fragments, effort.kinds)
    kinds = following.kinds(effort.kinds)
    following.write(client, [table[0], "kinds"], kinds, effort.kinds)
    queries = {
        following.JOINED: figures.join,
        following.GROUPED: figures.groups,
        following.WINDOWED: figures.window,
    }
    views: dict[str, str] = {}
    for query, found in queries.items():
        views[query], found.skipped = following.try_view(client, table, query)
    if not any(views.values()):
        return
    data = following.rows(0, effort.joined_rows, effort.kinds)
    with PlainSpark(folder / "parquet", {"t": data, "kinds": kinds}) as plain:
        for query, found in queries.items():
            if views[query]:
                measure_sql(client, views[query], query, plain, found, effort.rounds)
    measure_touched(client, effort, figures, table, views)


def measure_touched(
    client: Client, effort: Effort, figures: Figures, table: list[str], views: dict[str, str]
) -> None:
    """One changed row: of the large side of a join, of its small side, and of a window."""
    joined, window = views[following.JOINED], views[following.WINDOWED]
    each = effort.joined_rows // effort.kinds
    # Plain Spark has no other way than all of it.
    figures.changed_fact.floor = figures.changed_kind.floor = figures.join.floor
    figures.changed_partition.floor = figures.window.floor
    progress = Progress("one row changed", effort.rounds)
    for number in range(effort.rounds):
        key = 3 + number * 7
        change(client, table, "text", f"'changed {number}'", f"id = {key}")
        figures.changed_fact.job.append(touch(client, joined, 1))
        change(client, [table[0], "kinds"], "label", f"'other {number}'", f"kind = {key}")
        figures.changed_kind.job.append(touch(client, joined, each))
        refresh(client, window)
        change(client, table, "id", f"id + {effort.joined_rows}", f"id = {key + 1}")
        figures.changed_partition.job.append(touch(client, window, each))
        refresh(client, joined)
        progress.step(f"{figures.changed_fact.job[-1]:.2f} s, {figures.changed_kind.job[-1]:.2f} s")


def change(client: Client, table: list[str], column: str, value: str, where: str) -> None:
    body = {"updates": [[column, value]], "predicate": where}
    client.post(f"/v1/table/{'$'.join(table)}/update", body)


def touch(client: Client, view: str, rows: int) -> float:
    """The seconds of a refresh that must update so many rows, and no others."""
    found: list[dict[str, str]] = []
    seconds = timed(lambda: found.append(refresh(client, view)))
    expect((found[0]["mode"], int(found[0]["rows_updated"])), ("incremental", rows))
    return seconds


def measure_sql(
    client: Client, view: str, query: str, plain: PlainSpark, found: Series, rounds: int
) -> None:
    """One such query, in turn with plain Spark."""
    plain.write(query)
    progress = Progress(query.partition(" FROM ")[0], rounds)
    for _ in range(rounds):
        found.floor.append(timed(lambda: plain.write(query)))
        found.job.append(timed(lambda: refresh(client, view, mode="full")))
        progress.step(f"{found.job[-1]:.2f} s beside {found.floor[-1]:.2f} s")
    expect(following.count(client, view), plain.count(query))


def locate(client: Client, table: list[str]) -> str:
    return str(client.post(f"/v1/table/{'$'.join(table)}/describe")["location"])


def calls(client: Client, view: str, **body: str) -> int:
    return int(refresh(client, view, **body)["function_calls"])


def expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise RuntimeError(f"there are {found} instead of {wanted}")


def show(figures: Figures) -> str:
    """The figures beside their goals."""
    effort = figures.effort
    full = _goal(figures.query, FULL_RATIO, FULL_SECONDS)
    append = APPEND_SHARE * statistics.median(figures.query.job) + APPEND_SECONDS
    chunker = _goal(figures.chunker, CHUNKER_RATIO, CHUNKER_SECONDS)
    documents = f"chunker, {effort.documents:,} documents"
    rows = [
        ["measure", "refresh", "floor", "goal", "lancedb", ""],
        _row(f"query, {effort.rows:,} rows", figures.query, full),
        _row("  the same by Spark", figures.by_spark, None),
        _row("1 % more rows", figures.append, append),
        _row(f"{UPDATED_ROWS} rows changed", figures.update, UPDATE_SECONDS),
        _row("nothing to do", figures.nothing, NOTHING_SECONDS),
        _row(documents, figures.chunker, chunker),
        _row(f"{CHANGED_DOCUMENTS} documents changed", figures.documents, None),
    ]
    skipped = []
    named = {
        f"join, {effort.joined_rows:,} rows": figures.join,
        "groups": figures.groups,
        f"window, {effort.kinds:,} partitions": figures.window,
    }
    for name, found in named.items():
        if found.skipped:
            skipped.append(f"{name}: not measured: {found.skipped}")
        else:
            rows.append(_row(name, found, _goal(found, SPARK_RATIO, 0)))
    each = effort.joined_rows // effort.kinds
    touched = (
        ("  one row of the join changed", figures.changed_fact, figures.join),
        (f"  one row with {each} joined ones", figures.changed_kind, figures.join),
        ("  one row of the window changed", figures.changed_partition, figures.window),
    )
    for name, found, whole in touched:
        if found.job:
            goal = min(TOUCH_SECONDS, TOUCH_SHARE * statistics.median(whole.job))
            rows.append(_row(name, found, goal))
    head = f"load average at the start: {figures.load_average:.1f}"
    return "\n\n".join([head, align(rows, range(1, 5)), *skipped])


def _goal(found: Series, ratio: float, seconds: float) -> float:
    return ratio * statistics.median(found.floor) + seconds if found.floor else 0


def _row(measure: str, found: Series, goal: float | None) -> list[str]:
    seconds = [statistics.median(each) if each else None for each in _columns(found)]
    shown = ["" if each is None else f"{each:.2f} s" for each in seconds]
    job = seconds[0] or 0
    verdict = "" if goal is None else "reached" if job <= goal else "MISSED"
    wanted = "" if goal is None else f"<= {goal:.2f} s"
    return [measure, shown[0], shown[1], wanted, shown[2], verdict]


def _columns(found: Series) -> tuple[list[float], list[float], list[float]]:
    return found.job, found.floor, found.lancedb


if __name__ == "__main__":
    command.start(__doc__, FULL, QUICK, run, show)
