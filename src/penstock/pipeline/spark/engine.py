"""Work on Spark: a function over numbered tasks, which can be watched and canceled.

A classic session runs them without a query, whose planning takes longer than a small job; one of
Spark Connect has nothing but queries.
"""

import functools
import itertools
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import Unavailable

if TYPE_CHECKING:
    import pyarrow as pa

Kernel = Callable[["Iterator[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]

POOLS = 16
_turn = itertools.count()
# The interpreter of a classic session's workers is a field of its context, for all threads.
_choosing = threading.Lock()


@dataclass(frozen=True, slots=True)
class WorkerPython:
    """The interpreter and the variables that a job's Python workers run with."""

    executable: str
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Engine:
    """A Spark session, how many tasks it runs at once, and the Python of its workers."""

    spark: Any
    slots: int
    is_connect: bool = False
    python: WorkerPython | None = None
    # Spark's resource profile for the tasks, where the cluster schedules by one.
    profile: Any = None


class Tasks:
    """Numbered tasks that run on Spark in the background."""

    def __init__(self, engine: Engine, kernel: Kernel, count: int, schema: str) -> None:
        self._engine = engine
        self._tag = f"penstock-{uuid.uuid4().hex}"
        self._rows: list[Any] = []
        self._failure: Exception | None = None
        make = _make_query if engine.is_connect else _make_tasks
        with _worker_python(engine):
            self._work = make(engine, kernel, count, schema)
        # A canceled call may hang on in the JVM; the process need not wait for it at its end.
        self._thread = threading.Thread(target=self._collect, name=self._tag, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the end at most so long; whether it was reached."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> list[Any]:
        """The rows that the tasks yielded, or what made them fail."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._rows

    def cancel(self) -> None:
        """Make Spark end the tasks that run and forget the others."""
        if self._engine.is_connect:
            self._engine.spark.interruptTag(self._tag)
        else:
            self._engine.spark.sparkContext.cancelJobsWithTag(self._tag)

    def _collect(self) -> None:
        # Tags belong to the thread that starts the work.
        if self._engine.is_connect:
            self._engine.spark.addTag(self._tag)
        else:
            context = self._engine.spark.sparkContext
            context.addJobTag(self._tag)
            # Only pools are fair to each other; within one, jobs wait in line.
            context.setLocalProperty("spark.scheduler.pool", f"penstock-{next(_turn) % POOLS}")
        try:
            self._rows = self._work()
        # Whatever Spark raises, down to a broken connection to its JVM, is told by `result`.
        except Exception as error:
            self._failure = _explain(error)


def _make_query(engine: Engine, kernel: Kernel, count: int, schema: str) -> Callable[[], list[Any]]:
    """The tasks as a query; returns what runs it."""
    # One partition with one number for each task: nothing has to be sent to Spark.
    numbers = engine.spark.range(0, count, 1, count)
    query: Any = numbers.mapInArrow(kernel, schema, profile=engine.profile)
    found: Callable[[], list[Any]] = query.collect
    return found


def _make_tasks(engine: Engine, kernel: Kernel, count: int, schema: str) -> Callable[[], list[Any]]:
    """The tasks by themselves; their rows name their columns, so that no schema is needed."""
    from pyspark.sql import Row

    tasks = _partitions(engine.spark.sparkContext, count).mapPartitionsWithIndex(
        functools.partial(_run_task, kernel)
    )
    if engine.profile is not None:
        tasks = tasks.withResources(engine.profile)
    # Made now, while the context has the Python that the tasks are to run with.
    assert tasks._jrdd is not None
    return lambda: [Row(**row) for row in tasks.collect()]


@functools.lru_cache(16)
def _partitions(context: Any, count: int) -> Any:
    """So many empty partitions, which any number of jobs may begin with."""
    return context.parallelize([], count)


def _run_task(kernel: Kernel, number: int, nothing: Iterator[object]) -> Iterator[dict[str, Any]]:
    """In a worker: run one task."""
    import pyarrow as pa

    # Spark keeps a worker for its next task only if it has read to the end of its input.
    for _ in nothing:
        raise RuntimeError("a task has no input but its number")
    for batch in kernel(iter([pa.record_batch([[number]], ["id"])])):
        yield from batch.to_pylist()


def is_second_try() -> bool:
    """In a worker: whether Spark runs this task again, because its process may have died."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


@contextmanager
def _worker_python(engine: Engine) -> Iterator[None]:
    """Inside, what is made for the engine's workers runs with its Python."""
    if engine.python is None:
        yield
        return
    context = engine.spark.sparkContext
    with _choosing:
        before = context.pythonExec, dict(context.environment)
        context.pythonExec = engine.python.executable
        context.environment.update(engine.python.variables)
        try:
            yield
        finally:
            context.pythonExec = before[0]
            context.environment.clear()
            context.environment.update(before[1])


def _explain(error: Exception) -> Exception:
    """Spark's failure in one line; its traces fill pages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("at ", "File ", "Traceback"))]
    # The last line of a worker's own traceback says what went wrong there.
    python = [line for line in telling if "Error: " in line or "Exception: " in line]
    shown = (python or telling or [type(error).__name__])[-1 if python else 0]
    return Unavailable(
        f"Spark could not finish the tasks: {shown[:500]}",
        detail="the log of the runner's Spark session has the whole trace",
    )
