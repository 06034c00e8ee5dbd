"""The Spark session of a runner: one for its cluster, kept warm, and started again when it dies.

Spark's own output goes to a separate file.
"""

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock.errors import PenstockError, Unavailable, Unsupported
from penstock.jobs.spark.doors import classic_session, connect_session, java_gateway, pyspark
from penstock.jobs.spark.gate.reader import prepare
from penstock.jobs.spark.probe import count_slots, warm_sql, warm_up
from penstock.jobs.spark.sql_sessions import CATALOG, LOCKED
from penstock.jobs.spark.tasks import Engine, WorkerPython
from penstock.runner.java import NoJava, find_java, point_spark_at
from penstock.runner.seals import seal_classic, seal_connect
from penstock.settings.sections import Cluster

log = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "localhost", "::1")
WAIT_SECONDS = 0.1
# A session that has nothing to do by then gets ready for SQL.
IDLE_SECONDS = 3.0
# Spark ends a JVM that has no memory left with this exit code, which takes it a moment.
NO_MEMORY, EXIT_SECONDS = 52, 5.0
# How PySpark says that the JVM ended before it could be talked to.
NO_GATEWAY = "JAVA_GATEWAY_EXITED"
JUDGE_CONF = {"spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "1"}
CATALOGS = ("spark.sql.catalog.", "spark.sql.hive.", "spark.hadoop.hive.")
# Our defaults; the cluster's own conf can override them.
CONF = {
    "spark.app.name": "penstock",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    # Over TCP, each task would start with a delayed acknowledgement of 40 ms.
    "spark.python.unix.domain.socket.enabled": "true",
    # Jobs of a runner share its session: none waits for another's tasks.
    "spark.scheduler.mode": "FAIR",
    # Our queries have one stage; generating code for them takes longer than running them.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    # A task that a cancel does not stop is killed with its executor.
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "4s",
    "spark.task.reaper.pollingInterval": "1s",
}


class Death(Enum):
    """Why a session died, if it did so through one of its jobs."""

    # Another job was canceled, and Spark could not stop its tasks.
    ABANDONED = "abandoned"
    NO_MEMORY = "no memory"


class Session:
    """A cluster's session; any number of threads may ask for it."""

    def __init__(
        self, name: str, cluster: Cluster, folder: Path, *, has_workers: bool = True
    ) -> None:
        self.name = name
        self.cluster = cluster
        self.log_file = folder / f"spark-{name}.log"
        self.starts = 0
        # By number of start: how sessions died, and which thread abandoned one.
        self._deaths: dict[int, Death] = {}
        self._leaver: dict[int, threading.Thread] = {}
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._gateway: Any = None
        self._starting: threading.Thread | None = None
        self._failure: PenstockError | None = None
        # The last failure, until a start succeeds, where only this machine can be the reason.
        self._trouble: PenstockError | None = None
        self._is_suspect = False
        self._is_stopped = False
        self._is_used = False
        self._has_workers = has_workers
        # Spark Connect shows no plans, so queries are checked in a JVM beside us.
        self._judge = None
        if cluster.remote:
            beside = Cluster(master="local[1]", conf=JUDGE_CONF)
            self._judge = Session(f"{name}-judge", beside, folder, has_workers=False)

    @property
    def is_local(self) -> bool:
        return self.cluster.master.startswith("local")

    @property
    def trouble(self) -> str:
        """Why it cannot start on this machine; empty unless the last start has failed."""
        found = self._trouble
        return "" if found is None else show_error(found)

    def is_trouble(self, error: PenstockError) -> bool:
        """Whether an error says that the session cannot start on this machine."""
        return error is self._trouble

    def start(self) -> None:
        """Start it in the background, unless it is there or starting."""
        with self._lock:
            if self._engine is not None and not self._is_alive():
                log.warning("the Spark session of cluster %s has died; starting again", self.name)
                self._note_exit(self._gateway)
                self._discard()
            if self._engine is None and self._starting is None and not self._is_stopped:
                self._failure = None
                self._starting = threading.Thread(target=self._start, name="spark", daemon=True)
                self._starting.start()

    def engine(self, check: Callable[[], None]) -> Engine:
        """Wait for the session; `check` may raise while it starts."""
        self.start()
        self._is_used = True
        while True:
            with self._lock:
                if self._engine is not None:
                    return self._engine
                starting, failure = self._starting, self._failure
            if starting is None:
                raise failure or Unavailable("the runner is stopping")
            check()
            starting.join(WAIT_SECONDS)

    def suspect(self) -> None:
        """Check the session before its next use, because a job failed on it."""
        self._is_suspect = True

    def find_death(self, start: int) -> Death | None:
        """Why the session of this start died under a job of the calling thread, if it is known."""
        with self._lock:
            if start == self.starts and self._engine is not None and not self._is_alive():
                self._note_exit(self._gateway)
        return (
            None
            if self._leaver.get(start) is threading.current_thread()
            else (self._deaths.get(start))
        )

    def _note_exit(self, gateway: Any) -> None:
        if gateway is not None and self.starts not in self._deaths:
            with contextlib.suppress(subprocess.TimeoutExpired):
                if gateway.proc.wait(EXIT_SECONDS) == NO_MEMORY:
                    self._deaths[self.starts] = Death.NO_MEMORY

    def stop(self) -> None:
        """Stop the session and its JVM."""
        with self._lock:
            self._is_stopped = True
            if self._engine is not None:
                self._discard()
        if self._judge is not None:
            self._judge.stop()

    def _abandon(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill a JVM because Spark can't stop a task in it; other jobs on it are retried."""
        log.warning("Spark on %s can't end a canceled task: its JVM is ended", self.name)
        self._deaths[self.starts] = Death.ABANDONED
        self._leaver[self.starts] = threading.current_thread()
        process.kill()
        process.wait()
        self.start()

    def _start(self) -> None:
        started = time.monotonic()
        try:
            engine = self._connect() if self.cluster.remote else self._launch()
            if self._has_workers:
                warm_up(engine, self.name)
            if not engine.is_connect:
                prepare(engine.spark)
        except PenstockError as error:
            self._fail(error)
        # A bad conf, a missing Java, a wrong address: Spark has no common error.
        except Exception as error:
            shown = str(error).strip().splitlines() or [type(error).__name__]
            if NO_GATEWAY in shown[0]:
                shown = [f"Java ended at once, and said: {_read_end(self.log_file)}"]
            self._fail(
                Unavailable(
                    f"the Spark session of cluster {self.name} did not start: {shown[0][:500]}",
                    detail=f"see {self.log_file} on the runner's machine",
                )
            )
        else:
            seconds = time.monotonic() - started
            log.info("Spark on %s: up after %.1f s, %d slots", self.name, seconds, engine.slots)
            with self._lock:
                self._engine, self._starting = engine, None
                self._trouble = None
                self._is_suspect = False
                self.starts += 1
                if self._is_stopped:
                    self._discard()
            if self._has_workers:
                idle = threading.Timer(IDLE_SECONDS, self._warm_sql, (engine,))
                idle.daemon = True
                idle.start()

    def _warm_sql(self, engine: Engine) -> None:
        """Load Spark's SQL while no job has asked for the session."""
        if self._is_used or self._is_stopped:
            return
        try:
            warm_sql(engine)
        # Nobody waits for it: whatever is wrong, the first job will tell.
        except Exception as error:
            log.debug("Spark on %s is not warm for SQL: %s", self.name, error)

    def _fail(self, error: PenstockError) -> None:
        # A start that is tried again and again is told once.
        level = logging.DEBUG if show_error(error) == self.trouble else logging.ERROR
        log.log(level, "%s", show_error(error))
        is_ours = isinstance(error, NoJava) or (self.is_local and not self.cluster.remote)
        with self._lock:
            self._failure, self._starting = error, None
            self._trouble = error if is_ours else None
            self._discard()

    def _launch(self) -> Engine:
        values = self._classic_conf()
        conf = pyspark.SparkConf(loadDefaults=False).setAll(list(values.items()))
        folder = self.log_file.parent
        folder.mkdir(parents=True, exist_ok=True)
        java = find_java(os.environ)
        point_spark_at(java, folder, os.environ)
        level = logging.DEBUG if self._trouble else logging.INFO
        log.log(level, "Spark on %s starts with %s", self.name, java)
        with open(self.log_file, "wb") as output:
            launch: Any = java_gateway.launch_gateway
            self._gateway = launch(conf, {"stdout": output, "stderr": output})
        context = pyspark.SparkContext(conf=conf, gateway=self._gateway)
        seal_classic(context)
        return Engine(
            classic_session.SparkSession(context),
            context.defaultParallelism,
            abandon=partial(self._abandon, self._gateway.proc) if self.is_local else None,
        )

    def _classic_conf(self) -> dict[str, str]:
        given = self.cluster.conf
        values = {**CONF, "spark.master": self.cluster.master}
        if self.is_local or urlsplit(self.cluster.master).hostname in LOOPBACK:
            values |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
            # The JVM reads this before any conf.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ["PYSPARK_PYTHON"] = given.get("spark.pyspark.python", sys.executable)
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        # Jobs never need the operator's catalogs.
        kept = {key: value for key, value in given.items() if not key.startswith(CATALOGS)}
        return {**values, **kept, **LOCKED, **CATALOG}

    def _connect(self) -> Engine:
        assert self._judge is not None
        self._judge.start()
        seal_connect()
        builder = connect_session.SparkSession.builder.remote(self.cluster.remote)
        for key, value in self.cluster.conf.items():
            builder = builder.config(key, value)
        spark = builder.create()
        try:
            self._check_release(spark.version)
            judge = partial(self._judge.engine, lambda: None)
            return Engine(spark, count_slots(spark), is_connect=True, judge=judge)
        except BaseException:
            spark.stop()
            raise

    def _check_release(self, theirs: str) -> None:
        """Refuse a server whose release of Spark is not this runner's PySpark."""
        # Vendors append their name to the release.
        if theirs.partition("-")[0] != pyspark.__version__.partition("-")[0]:
            raise Unsupported(
                f"the server of cluster {self.name!r} is Spark {theirs}, and this runner has "
                f"PySpark {pyspark.__version__}",
                detail="install the server's release of PySpark for the runner",
            )

    def _is_alive(self) -> bool:
        assert self._engine is not None
        spark = self._engine.spark
        # Whatever a broken connection raises, the answer is no.
        with contextlib.suppress(Exception):
            if self._engine.is_connect:
                if self._is_suspect:
                    spark.range(1).count()
                return not spark.is_stopped
            if self._gateway.proc.poll() is None:
                return not spark.sparkContext._jsc.sc().isStopped()
        return False

    def _discard(self) -> None:
        """Discard a session; PySpark's leftovers of a dead one would otherwise break the next."""
        engine, gateway = self._engine, self._gateway
        self._engine, self._gateway = None, None
        if self.cluster.remote:
            if engine is not None:
                with contextlib.suppress(Exception):
                    engine.spark.stop()
            return
        if engine is not None:
            # A dead JVM can't be told anything.
            with contextlib.suppress(Exception):
                engine.spark.stop()
        internals: Any = pyspark.SparkContext
        internals._active_spark_context = internals._gateway = internals._jvm = None
        sessions: Any = classic_session.SparkSession
        sessions._instantiatedSession = None
        if gateway is not None:
            with contextlib.suppress(Exception):
                gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.kill()
            gateway.proc.wait()


def show_error(error: PenstockError) -> str:
    return "; ".join(part for part in (error.message, error.detail) if part)


def _read_end(log_file: Path) -> str:
    """What a JVM said at its end, without the frames of a trace."""
    try:
        lines = log_file.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    told = [line.strip() for line in lines if line.strip() and not line.startswith((" ", "\t"))]
    return " ".join(told[-2:]) or "nothing"


def plain_python() -> WorkerPython:
    """The Python of workers whose job names none."""
    return WorkerPython(os.environ.get("PYSPARK_PYTHON", sys.executable))


def hush_spark() -> None:
    """Silence log lines of Spark that are useless or repeat our own errors."""
    for name in ("py4j", "pyspark", "grpc", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Spark's JVM is started by fork and exec, which does not harm Lance.
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    for handler in logging.getLogger().handlers:
        handler.addFilter(_Py4JFilter())


class _Py4JFilter(logging.Filter):
    """Drops Py4J's lines, some of which come from the root logger, by their source."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "py4j" not in record.pathname
