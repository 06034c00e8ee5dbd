"""The runner's loop: lease jobs, work on several at once, report how each ended."""

import logging
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from penstock.errors import LeaseLost, PenstockError, Unsupported
from penstock.jobs.engine.attempt import PLANNING, STARTING, JobCanceled, JobPaused, is_passing
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import KINDS, STATEMENT, UpstreamSpec
from penstock.lance.errors import find_lasting
from penstock.lance.session.remote import RemoteCatalog
from penstock.model.functions import Needs
from penstock.model.jobs import CANCELED, FAILED, FINISHED, PAUSED, QUEUED, SUCCEEDED
from penstock.retries import Backoff
from penstock.runner.attempt import LeasedAttempt, RunnerStopping
from penstock.runner.client import AttemptEnd, Lease, ServerClient
from penstock.runner.environments import prepare
from penstock.runner.metrics import RunnerMetrics
from penstock.runner.resources import grant
from penstock.runner.secrets import SecretStore, add_secrets, list_bindings
from penstock.runner.session import Death, Session, plain_python, show_error

log = logging.getLogger(__name__)

# Loaded before the first job, which is not to wait for them.
RECIPES = {word: kind.load_recipe() for word, kind in KINDS.items()}

OUT_OF_MEMORY = (
    "Spark ran out of memory while it ran the statement; select less at once, for example without "
    "collect_list, or give the cluster more (spark.driver.memory)"
)
MAX_EXCUSED = 5
LEASE_WAIT_SECONDS = 10.0
# How often a session that cannot start on this machine is tried again.
TROUBLE_SECONDS = 10.0
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.2, 5.0
# How long a stop waits for jobs to be given back; the process must be gone after ten seconds.
GIVE_BACK_SECONDS = 7.0


class Runner:
    """A runner of one cluster."""

    def __init__(
        self,
        name: str,
        client: ServerClient,
        catalog: RemoteCatalog,
        session: Session,
        folder: Path,
        max_jobs: int,
        metrics: RunnerMetrics,
        secrets: SecretStore,
    ) -> None:
        self._name = name
        self._client = client
        self._catalog = catalog
        self._session = session
        self._folder = folder
        self._max_jobs = max_jobs
        self._metrics = metrics
        self._secrets = secrets
        self._is_troubled = False
        self._stopping = threading.Event()
        self._room = threading.Condition()
        self._running: dict[LeasedAttempt, threading.Thread] = {}
        # By session that died: whether a statement ran on it.
        self._shared: dict[int, bool] = {}
        # How often jobs began again because of another one.
        self._excused: Counter[str] = Counter()

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; then give unfinished jobs back."""
        # In another thread, because this one must handle signals during a long poll.
        threading.Thread(target=self._lease, args=(stop,), name="lease", daemon=True).start()
        stop.wait()
        self._stopping.set()
        with self._room:
            running = dict(self._running)
            self._room.notify_all()
        for attempt in running:
            attempt.give_back()
        deadline = time.monotonic() + GIVE_BACK_SECONDS
        for thread in running.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        self._session.stop()

    def _lease(self, stop: threading.Event) -> None:
        """Lease jobs until the runner stops; if leasing fails for good, the runner stops."""
        try:
            self._lease_for_ever()
        finally:
            stop.set()

    def _lease_for_ever(self) -> None:
        pauses = Backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)
        while free := self._wait_for_room():
            trouble = self._session.trouble
            try:
                leases = self._lease_some(free, trouble)
                self._is_troubled = bool(trouble)
            except PenstockError as error:
                # The server is restarting, or not up yet; logged once, not at every try.
                level = logging.WARNING if pauses.is_first else logging.DEBUG
                log.log(level, "no jobs: %s", error.message)
                self._stopping.wait(pauses.take())
                continue
            if not pauses.is_first:
                log.info("the server answers again")
                pauses.reset()
            for lease in leases:
                self._begin(lease)
            if trouble:
                self._stopping.wait(TROUBLE_SECONDS)
                self._session.start()

    def _lease_some(self, free: int, trouble: str) -> tuple[Lease, ...]:
        """Lease jobs; where Spark cannot start, none, and the server is told why."""
        clusters = [self._session.name]
        if not trouble:
            return self._client.lease(self._name, clusters, free, LEASE_WAIT_SECONDS)
        self._client.tell_trouble(self._name, clusters, trouble)
        if not self._is_troubled:
            log.warning("no jobs are leased until Spark starts, which is tried again and again")
        return ()

    def _wait_for_room(self) -> int:
        """Wait for room for a job; returns for how many, and 0 when the runner stops."""
        with self._room:
            while not self._stopping.is_set():
                if free := self._max_jobs - len(self._running):
                    return free
                self._room.wait()
        return 0

    def _begin(self, lease: Lease) -> None:
        attempt = LeasedAttempt(self._client, lease, hide=self._secrets.hide)
        thread = threading.Thread(target=self._work, args=(attempt,), name=f"job {lease.id}")
        # A job that hangs in Spark must not keep a stopped runner alive.
        thread.daemon = True
        with self._room:
            self._running[attempt] = thread
            self._metrics.running.set(len(self._running))
        if self._stopping.is_set():
            attempt.give_back()
        thread.start()

    def _work(self, attempt: LeasedAttempt) -> None:
        lease = attempt.lease
        log.info("job %s: %s, attempt %d", lease.id, lease.kind, lease.attempt)
        started = time.monotonic()
        attempt.start()
        try:
            ending = self._run(attempt)
            state = self._report(attempt, ending) if ending is not None else "LOST"
            seconds = time.monotonic() - started
            log.info("job %s: %s after %.2f s", lease.id, state or "not reported", seconds)
            self._metrics.observe(lease.kind, state or "unreported", seconds)
            calls, failed = attempt.told("function_calls"), attempt.told("rows_failed")
            self._metrics.count_rows(lease.kind, calls, failed)
        finally:
            attempt.end()
            with self._room:
                del self._running[attempt]
                self._metrics.running.set(len(self._running))
                self._room.notify_all()

    def _run(self, attempt: LeasedAttempt) -> AttemptEnd | None:
        """Run the recipe; None when the attempt lost its lease."""
        lease = attempt.lease
        try:
            spec = attempt.spec
            get_engine = partial(self._engine, attempt)
            attempt.phase(PLANNING)
            if not KINDS[lease.kind].is_awaited:
                # The lease may have come late, to a machine that slept: another attempt may have
                # done the work since. A job that somebody waits for has only this one.
                attempt.fence()
            result = RECIPES[lease.kind].run(spec, self._catalog, get_engine, attempt)
            return AttemptEnd(SUCCEEDED, msgspec.to_builtins(result))
        except JobCanceled:
            return AttemptEnd(CANCELED)
        except JobPaused:
            return AttemptEnd(PAUSED, retryable=True)
        except RunnerStopping:
            return AttemptEnd(QUEUED, retryable=True)
        except LeaseLost as error:
            # Another attempt may use what was written, so nothing is touched.
            log.warning("job %s: attempt %d lost its lease", lease.id, lease.attempt)
            log.debug("%s", error.message)
            return None
        except PenstockError as error:
            if self._session.is_trouble(error):
                attempt.log(f"it waits, because {self._session.trouble}", "warning")
                return AttemptEnd(QUEUED, retryable=True)
            if (ending := self._excuse(attempt, error)) is not None:
                return ending
            self._session.suspect()
            shown = self._secrets.hide(show_error(error))
            attempt.log(shown, "error")
            return AttemptEnd(FAILED, error=shown, retryable=is_passing(error))
        # A bug of ours, or a library's error: the job fails, the runner goes on.
        except Exception as error:
            if (ending := self._excuse(attempt, error)) is not None:
                return ending
            self._session.suspect()
            log.exception("job %s: attempt %d failed", lease.id, lease.attempt)
            lasting = find_lasting(error)
            told = f"{type(error).__name__}: {error}" if lasting is None else str(lasting)
            shown = self._secrets.hide(told)[:1000]
            attempt.log(shown, "error")
            return AttemptEnd(FAILED, error=shown, retryable=lasting is None)

    def _excuse(self, attempt: LeasedAttempt, error: Exception) -> AttemptEnd | None:
        """The end of an attempt whose session died, if that is not to cost the job an attempt."""
        if not is_passing(error) or not attempt.session:
            return None
        death = self._session.find_death(attempt.session)
        if death is None:
            return None
        with self._room:
            # Whoever sees it first asks while all that ran there still run.
            kinds = [each.lease.kind for each in self._running if each.session == attempt.session]
            is_shared = self._shared.setdefault(attempt.session, STATEMENT in kinds)
        if death is Death.NO_MEMORY and attempt.lease.kind == STATEMENT:
            attempt.log(OUT_OF_MEMORY, "error")
            return AttemptEnd(FAILED, error=OUT_OF_MEMORY)
        # Whoever may read a table may have it killed by SQL, and must not fail other people's jobs.
        self._excused[attempt.lease.id] += 1
        # A job that ends its session itself, beside statements each time, must not go on for ever.
        if self._excused[attempt.lease.id] > MAX_EXCUSED:
            return None
        if death is Death.ABANDONED or is_shared:
            attempt.log("Spark was ended because of another job; this one begins again", "warning")
            return AttemptEnd(QUEUED, retryable=True)
        return None

    def _engine(self, attempt: LeasedAttempt, of: UpstreamSpec | None = None) -> Engine:
        """The session with the resources and the environment that the job needs, or a view that it
        refreshes on the way.
        """
        spec = attempt.spec if of is None else of
        manifest = attempt.lease.manifest if of is None else of.manifest
        wanted = spec.resources or Needs()
        if manifest and not self._session.is_local:
            raise Unsupported(
                f"cluster {self._session.name!r} cannot run jobs with a manifest: its Python "
                "workers are not this runner's",
                detail="install what the job needs on the cluster, or send it to a local one",
            )
        bindings = list_bindings(spec)
        if bindings and not self._session.is_local:
            raise Unsupported(
                f"cluster {self._session.name!r} cannot run functions with secrets: its Python "
                "workers are not this runner's",
                detail="send the job to a local cluster",
            )
        values = self._secrets.resolve(bindings)
        python = None
        if manifest:
            attempt.log("preparing the environment")
            with attempt.waiting(STARTING):
                python = prepare(manifest, self._folder / "environments")
        if values:
            python = add_secrets(python or plain_python(), values)
        with attempt.waiting(STARTING):
            engine = grant(wanted, self._session.engine(attempt.check), self._session.cluster)
        attempt.session = self._session.starts
        return engine if python is None else replace(engine, python=python)

    def _report(self, attempt: LeasedAttempt, ending: AttemptEnd) -> str:
        """Sweep and report; the files of a job that will be retried are kept."""
        if not ending.retryable and attempt.is_held(self._stopping.is_set):
            self._sweep(attempt, ending)
        state = attempt.finish(ending, self._stopping.is_set)
        if ending.retryable and state in FINISHED:
            self._sweep(attempt, ending)
        return state

    def _sweep(self, attempt: LeasedAttempt, ending: AttemptEnd) -> None:
        lease = attempt.lease
        try:
            spec, recipe = attempt.spec, RECIPES[lease.kind]
            sweep = recipe.sweep if ending.state == SUCCEEDED else recipe.leave or recipe.sweep
            removed = sweep(spec, self._catalog, lease.id, lease.attempt)
        except PenstockError as error:
            # The table may be gone, or the store unreachable; the table's next job sweeps too.
            log.warning("job %s: not swept: %s", lease.id, error.message)
        else:
            if removed:
                attempt.log(f"removed {removed} files that no version refers to")
