"""Run numbered tasks on Spark, which can be watched and canceled.

A classic session runs them without a query, whose planning takes longer than a small job, unless
more of Spark follows them; Spark Connect only has queries. Results are JSON or Arrow: whatever a
worker writes, the driver only reads it as values.
"""

import contextlib
import functools
import gc
import itertools
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from msgspec import json

from penstock.errors import InvalidRequest, PenstockError, Unavailable
from penstock.jobs.spark.doors import pyspark, types

Kernel = Callable[["Iterator[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]

POOLS = 16
# Spark kills a Python worker that does not stop, which takes two seconds.
KILL_SECONDS = 3
# Spark stops JVM code only between two batches of rows, never inside a value: a batch of a join, or
# one string for a regular expression, may take hours. Together with what comes before (a heartbeat,
# three seconds for workers to stop by themselves) this stays within ten seconds.
PATIENCE_SECONDS, LOOK_SECONDS = 2.5, 0.25
# On a cluster Spark kills the executor itself, five seconds after the cancel.
CLUSTER_PATIENCE_SECONDS = 6
# Classes of SQL states that are caused by a query or by values, and so come back every time.
OF_QUERIES = ("0A", "21", "22", "42", "54", "P0")
# Where Spark stumbled, in a text that its author never saw, and the plan that it had then.
MAX_CAUSES = 8
PLACE = re.compile(r"(;? ?line \d+,? pos \d+.*| ?SQLSTATE: \w+.*)")
# A way out that Spark names, and that nobody has here.
SETTING = re.compile(r" ?If necessary set \S+ to \S+ to bypass this error\.?")
_turn = itertools.count()
# In a worker: how many tasks it has started.
_begun = itertools.count()
# The interpreter of a classic session's workers is a field of its context, shared by all threads.
_choosing = threading.Lock()


@dataclass(frozen=True, slots=True)
class WorkerPython:
    """The interpreter and environment variables of a job's Python workers."""

    executable: str
    # Some may be secrets.
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Engine:
    """A Spark session, how many tasks it runs at once, and the Python of its workers."""

    spark: Any
    slots: int
    is_connect: bool = False
    python: WorkerPython | None = None
    # Spark's resource profile for the tasks, where the cluster schedules by one.
    profile: Any = None
    # Ends a session that is only the runner's, with all that runs on it; another takes its place.
    abandon: Callable[[], None] | None = None
    # Gives a session of the runner's own that shows its plans, where this one does not.
    judge: "Callable[[], Engine] | None" = None


class SparkWork:
    """Work on Spark in the background, which gives few rows."""

    def __init__(self, engine: Engine, work: Callable[[], list[Any]]) -> None:
        self._engine = engine
        self._work = work
        self._tag = f"penstock-{uuid.uuid4().hex}"
        self._rows: list[Any] = []
        self._failure: Exception | None = None
        # A canceled call may hang in the JVM; the process need not wait for it at its end.
        self._thread = threading.Thread(target=self._collect, name=self._tag, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait at most so long for the end; returns whether it was reached."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> list[Any]:
        """The rows that the tasks yielded; raises what made them fail."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._rows

    def cancel(self) -> None:
        """Make Spark stop the running tasks and drop the others."""
        if self._engine.is_connect:
            self._engine.spark.interruptTag(self._tag)
        else:
            self._engine.spark.sparkContext.cancelJobsWithTag(self._tag)

    def end(self) -> None:
        """Stop the tasks; once this returns, none writes any more."""
        # A session that died has nothing left to cancel.
        with contextlib.suppress(Exception):
            if self.wait(0):
                return
            self.cancel()
            time.sleep(KILL_SECONDS)
            abandon = self._engine.abandon
            patience = CLUSTER_PATIENCE_SECONDS if abandon is None else PATIENCE_SECONDS
            deadline = time.monotonic() + patience
            while self._has_tasks():
                if time.monotonic() >= deadline:
                    if abandon is not None:
                        abandon()
                    return
                time.sleep(LOOK_SECONDS)

    def _has_tasks(self) -> bool:
        """Whether tasks still run after their job was canceled; unknown for Spark Connect."""
        if self._engine.is_connect:
            return False
        tracker = self._engine.spark.sparkContext._jsc.sc().statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(self._tag)]
        stages = [stage for job in jobs if job.isDefined() for stage in job.get().stageIds()]
        found = [tracker.getStageInfo(stage) for stage in stages]
        return any(stage.isDefined() and stage.get().numActiveTasks() for stage in found)

    def _collect(self) -> None:
        # Tags belong to the thread that starts the work.
        if self._engine.is_connect:
            self._engine.spark.addTag(self._tag)
        else:
            context = self._engine.spark.sparkContext
            context.addJobTag(self._tag)
            # Pools share fairly; within one pool, jobs wait in line.
            context.setLocalProperty("spark.scheduler.pool", f"penstock-{next(_turn) % POOLS}")
        try:
            self._rows = self._work()
        # Whatever Spark raises, down to a broken connection to its JVM, is raised by `result`.
        except Exception as error:
            self._failure = explain(error)


class Tasks(SparkWork):
    """Numbered tasks that run on Spark in the background.

    More of Spark may process what the kernel yields, before it is the tasks' result.
    """

    def __init__(
        self,
        engine: Engine,
        kernel: Kernel,
        count: int,
        schema: str,
        then: Callable[[Any], Any] | None = None,
    ) -> None:
        with _worker_python(engine):
            if engine.is_connect or then is not None:
                work = _make_query(engine, kernel, count, schema, then)
            else:
                work = _make_tasks(engine, kernel, count)
        super().__init__(engine, work)


class FrameTasks(SparkWork):
    """A kernel that runs on Spark in the background, for each partition of a frame."""

    def __init__(self, engine: Engine, frame: Any, kernel: Kernel, schema: str) -> None:
        with _worker_python(engine):
            query = frame.mapInArrow(kernel, schema, profile=engine.profile)
        super().__init__(engine, rows_of(query))


def _make_query(
    engine: Engine, kernel: Kernel, count: int, schema: str, then: Callable[[Any], Any] | None
) -> Callable[[], list[Any]]:
    """The tasks as a query, and what follows them; returns a function that runs it."""
    # One partition with one number for each task: nothing has to be sent to Spark.
    numbers = engine.spark.range(0, count, 1, count)
    query: Any = numbers.mapInArrow(kernel, schema, profile=engine.profile)
    return rows_of(query if then is None else then(query))


def rows_of(frame: Any) -> Callable[[], list[Any]]:
    """A function that runs a query; rows come as Arrow, because Spark's own way is a pickle."""
    return lambda: [types.Row(**row) for row in frame.toArrow().to_pylist()]


def _make_tasks(engine: Engine, kernel: Kernel, count: int) -> Callable[[], list[Any]]:
    """The tasks by themselves; their rows name their columns, so no schema is needed."""
    tasks = _partitions(engine.spark.sparkContext, count).mapPartitionsWithIndex(
        functools.partial(_run_task, kernel)
    )
    # Otherwise the driver would unpickle what tasks yield; like this it takes plain bytes.
    internals: Any = tasks
    internals._bypass_serializer = True
    if engine.profile is not None:
        tasks = tasks.withResources(engine.profile)
    # Made now, while the context has the Python that the tasks are to run with.
    assert tasks._jrdd is not None
    return lambda: [types.Row(**row) for each in tasks.collect() for row in _decode(each)]


@functools.lru_cache(16)
def _partitions(context: Any, count: int) -> Any:
    """Empty partitions, which any number of jobs can start with."""
    return context.parallelize([], count)


def _decode(encoded: Any) -> list[dict[str, Any]]:
    return json.decode(encoded, type=list[dict[str, Any]])


def _run_task(kernel: Kernel, number: int, nothing: Iterator[object]) -> Iterator[bytes]:
    """In a worker: run one task."""
    # Spark makes a worker collect garbage after each task. With all modules loaded this takes
    # longer than many tasks, so it is switched off; there is no garbage at this moment.
    if next(_begun) == 1:
        gc.freeze()
    # Spark reuses a worker only if it has read its input to the end.
    for _ in nothing:
        raise RuntimeError("a task has no input but its number")
    for batch in kernel(iter([pa.record_batch([[number]], ["id"])])):
        yield json.encode(batch.to_pylist())


def is_second_try() -> bool:
    """In a worker: whether Spark is retrying this task, because its process may have died."""
    context = pyspark.TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def task_number() -> int:
    """In a worker: the number of the running task."""
    context = pyspark.TaskContext.get()
    assert context is not None
    return context.partitionId()


@contextlib.contextmanager
def _worker_python(engine: Engine) -> Iterator[None]:
    """Inside the block, the engine's workers get its Python."""
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


def explain(error: Exception) -> Exception:
    """Spark's failure in one line; its traces fill pages."""
    if isinstance(error, PenstockError):
        return error
    state, text = _find_state(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("at ", "File ", "Traceback"))]
    if state.startswith(OF_QUERIES):
        shown = SETTING.sub("", PLACE.sub("", telling[0])).strip()[:500]
        # Spark itself says which function takes such values, as try_divide does.
        is_told = "`try_" in shown or "'try_" in shown
        remedy = "change the query so" if is_told else "correct the query"
        return InvalidRequest(f"Spark cannot compute the query: {shown}", detail=remedy)
    # The last line of a worker's own traceback says what went wrong there.
    python = [line for line in telling if "Error: " in line or "Exception: " in line]
    shown = (python or telling or [type(error).__name__])[-1 if python else 0]
    return Unavailable(
        f"Spark could not finish the tasks: {shown[:500]}",
        detail="the log of the runner's Spark session has the whole trace",
    )


def _find_state(error: Exception) -> tuple[str, str]:
    """The SQL state of a failure or of its cause in the JVM, if it has one, and its text."""
    if state := getattr(error, "getSqlState", lambda: None)():
        return str(state), str(error)
    cause: Any = getattr(error, "java_exception", None)
    for _ in range(MAX_CAUSES):
        # A JVM that died cannot be asked, and not every exception of it has a cause or a state.
        with contextlib.suppress(Exception):
            cause = cause.getCause()
            if state := cause.getSqlState():
                return str(state), str(cause.getMessage())
    return "", str(error)
