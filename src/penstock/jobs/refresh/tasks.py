"""Run those tasks of a refresh that no earlier attempt has finished."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from penstock.errors import Unavailable
from penstock.jobs.engine.finished import FinishedRows, NewRows
from penstock.jobs.engine.waiting import wait_for_tasks
from penstock.jobs.engine.worker_reports import WorkerReports
from penstock.jobs.functions.task import FunctionOptions
from penstock.jobs.refresh.context import Work
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine, SparkWork
from penstock.jobs.specs import RefreshSpec
from penstock.model.functions import Function


def make_missing(
    work: Work,
    functions: Sequence[Function],
    keys: Sequence[str],
    sizes: Sequence[int],
    start: Callable[[Sequence[int], Engine], SparkWork],
) -> list[NewRows]:
    """Run what no earlier attempt has finished, and wait; returns the notes of all.

    Each piece of work has a key and a number of source rows; `start` gets the numbers of the
    missing ones.
    """
    attempt, finished = work.attempt, FinishedRows(work.location, work.attempt)
    if attempt.number > 1:
        finished.look()
    missing = [number for number, key in enumerate(keys) if key not in finished.by_key]
    if missing:
        attempt.log(f"computing {sum(sizes[number] for number in missing)} rows")
        total, reports = sum(sizes), WorkerReports(work.location, functions, attempt)
        reports.failures.expect(total)

        def count_done() -> int:
            # Source rows, like the total: how many rows come out of them is another matter.
            return sum(sizes[n] for n, key in enumerate(keys) if key in finished.by_key)

        attempt.progress(rows_total=total, rows_done=count_done())

        def listen() -> bool:
            moved = finished.look()
            if not functions:
                if moved:
                    attempt.progress(rows_done=count_done())
                return moved
            reports.listen()
            if reports.listen_inside() or moved:
                done = min(total, max(count_done(), reports.rows_inside(())))
                attempt.progress(rows_done=done, rows_failed=reports.failures.rows)
                moved = True
            reports.failures.check()
            return moved

        wait_for_tasks(attempt, work.place, start(missing, work.get_engine()), listen)
        finished.look()
        attempt.progress(rows_done=count_done())
    if lost := set(keys) - finished.by_key.keys():
        raise Unavailable(f"the files of {len(lost)} tasks are not there")
    return [finished.by_key[key] for key in keys]


@contextmanager
def open_engine(work: Work, rows: int = 0) -> Iterator[Work]:
    """The work with a clean SQL session, if Spark evaluates its expressions."""
    query = work.definition.rows
    if query is None or query.engine == "lance":
        yield work
        return
    with open_sql(work.get_engine(), rows) as sql:
        yield replace(work, get_engine=lambda: sql)


def to_knobs(spec: RefreshSpec) -> FunctionOptions:
    """The settings of a view's functions; source_task_size also bounds their batches."""
    size, seconds = spec.source_task_size, spec.batch_checkpoint_flush_interval_seconds
    first, most = spec.checkpoint_size, spec.max_checkpoint_size
    bounds = [each for each in (most or first, size) if each]
    knobs = FunctionOptions(
        spec.intra_applier_concurrency or 1,
        batch_rows=first and min([first, *bounds]),
        min_rows=spec.min_checkpoint_size,
        max_rows=min(bounds) if bounds else None,
        is_full=spec.mode == "full",
    )
    return knobs if seconds is None else replace(knobs, flush_seconds=seconds)
