"""The recipe of a backfill: snapshot, plan, files on Spark, commits, report.

Each round plans on what the table is then. A fragment that somebody changed while its file was
computed is left to the next round; what was committed before, by this attempt or an earlier one,
is fresh and so in no plan any more.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert, structs

from penstock.crash import crash_point
from penstock.datasets import checkpoints
from penstock.datasets.checkpoints import Checkpoint
from penstock.datasets.remote import RemoteCatalog, open_version
from penstock.datasets.replacement import Computation, find_commits
from penstock.datasets.snapshot import take_snapshot
from penstock.errors import ConcurrentCommit, InvalidRequest, Unavailable
from penstock.pipeline.attempt import Attempt, JobCanceled
from penstock.pipeline.plan.backfill import (
    BackfillOptions,
    Fill,
    Snapshot,
    UpToDate,
    Watermark,
    plan_backfill,
    plan_tasks,
    to_options,
)
from penstock.pipeline.replacements import BackfillSpec, Replacements
from penstock.pipeline.spark.engine import Engine, Tasks
from penstock.pipeline.spark.fill_column import SCHEMA, FillOrder, fill_kernel

if TYPE_CHECKING:
    from lance import LanceDataset

MAX_ROUNDS = 10
# How far back an attempt looks for commits of the attempts before it.
COMMITS_BACK = 200
FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.25
# A worker that hears of a cancel stops at its next fragment; one that does not is ended by Spark,
# which takes two seconds by itself.
STOP_SECONDS, KILL_SECONDS = 3, 4


class BackfillResult(Struct, frozen=True):
    """What a backfill did; `version` is the last one it committed, or the one it found.

    The watermark is the version up to which every row is filled; None when only some were wanted.
    """

    version: int
    watermark: Watermark | None
    mode: str
    reason: str
    rows: int
    function_calls: int
    committed_versions: tuple[int, ...]
    committed_fragments: tuple[int, ...]


def run_backfill(
    spec: Mapping[str, Any],
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> BackfillResult:
    """Fill the column; raises JobCanceled, LeaseLost or what made it fail.

    The engine is asked for only when something has to be computed.
    """
    wanted = convert(spec, BackfillSpec)
    return _Backfill(wanted, to_options(spec, attempt.job), catalog, get_engine, attempt).run()


def sweep_backfill(spec: Mapping[str, Any], catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """Remove what a finished job wrote and no version refers to; returns how many files."""
    wanted = convert(spec, BackfillSpec)
    return checkpoints.sweep(catalog.locate(wanted.table, wanted.branch), job, attempt)


class _Backfill:
    """One attempt: the files that are finished, and what of them is committed."""

    def __init__(
        self,
        spec: BackfillSpec,
        options: BackfillOptions,
        catalog: RemoteCatalog,
        get_engine: Callable[[], Engine],
        attempt: Attempt,
    ) -> None:
        self._spec = spec
        self._options = options
        self._catalog = catalog
        self._get_engine = get_engine
        self._attempt = attempt
        self._what = Computation(spec.column, spec.expression, spec.where, not spec.inputs)
        self._location = catalog.locate(spec.table, spec.branch)
        self._place = self._location.place()
        self._files = Replacements(spec, options, catalog, attempt)
        self._seen: set[str] = set()
        self._notes: list[Checkpoint] = []
        self._function_calls = 0
        # With a version to read, later fragments are none of this job's business.
        self._scope: frozenset[int] | None = None
        self._covered = 0

    def run(self) -> BackfillResult:
        plan: UpToDate | Fill | None = None
        for _ in range(MAX_ROUNDS):
            self._attempt.check()
            dataset = self._open_to_read()
            snapshot = self._snapshot(dataset)
            self._covered = snapshot.version
            found = plan_backfill(snapshot, self._remaining())
            plan = plan or found
            if isinstance(found, UpToDate):
                return self._result(plan, dataset)
            self._tell_plan(found)
            self._read_notes(found)
            self._compute(found, snapshot)
            complete = self._files.commit_all()
            self._tell_progress()
            if complete:
                return self._result(plan, None)
        raise ConcurrentCommit(
            f"the fragments of {'$'.join(self._spec.table)} changed in each of {MAX_ROUNDS} rounds",
            detail="set commit_granularity to commit a few fragments at a time, or try later",
        )

    # Reading ---------------------------------------------------------------------------------

    def _open_to_read(self) -> "LanceDataset":
        if self._spec.read_version is not None and self._scope is None:
            return open_version(self._location, self._spec.read_version, self._attempt.job)
        return self._catalog.open_latest(self._spec.table, self._spec.branch)

    def _snapshot(self, dataset: "LanceDataset") -> Snapshot:
        spec = self._spec
        taken = take_snapshot(dataset, spec.column, spec.inputs, spec.where, spec.watermark)
        if spec.read_version is None:
            return taken
        if self._scope is None:
            self._scope = frozenset(fragment.id for fragment in taken.fragments)
        kept = tuple(f for f in taken.fragments if f.id in self._scope)
        return structs.replace(taken, fragments=kept)

    def _remaining(self) -> BackfillOptions:
        limit = self._options.num_frags
        if limit is None:
            return self._options
        # Zero takes nothing: all that were asked for are done.
        return structs.replace(self._options, num_frags=max(0, limit - len(self._files.committed)))

    # Computing -------------------------------------------------------------------------------

    def _compute(self, plan: Fill, snapshot: Snapshot) -> None:
        """Have Spark write what is missing; commit groups on the way if that is wanted."""
        missing = {work.id: work for work in plan.work if work.id not in self._files.ready}
        if not missing:
            return
        engine = self._get_engine()
        tasks = plan_tasks(tuple(missing.values()), self._options, engine.slots)
        order = FillOrder(
            self._attempt.job,
            self._attempt.number,
            self._location.uri,
            self._location.branch,
            self._location.options,
            snapshot.version,
            self._what,
            tuple(tuple(missing[id] for id in task) for task in tasks),
        )
        self._attempt.log(f"computing {len(missing)} fragments in {len(tasks)} tasks")
        running = Tasks(engine, fill_kernel(order), len(tasks), SCHEMA)
        try:
            pause = FIRST_POLL_SECONDS
            while not running.wait(pause):
                self._attempt.check()
                moved = self._read_notes(plan)
                pause = FIRST_POLL_SECONDS if moved else min(MAX_POLL_SECONDS, pause * 1.5)
                if moved:
                    self._files.commit_groups()
            failed = running.result()
        except BaseException as error:
            self._stop(running, gently=isinstance(error, JobCanceled))
            raise
        self._read_notes(plan)
        self._attempt.check()
        if failed:
            first = min(failed, key=lambda row: row.fragment)
            raise InvalidRequest(
                f"column {self._spec.column} cannot be computed in fragment {first.fragment}: "
                f"{first.error}",
                detail=f"check the expression {self._spec.expression}",
            )
        if lost := missing.keys() - self._files.ready.keys() - self._files.committed.keys():
            raise Unavailable(f"the files of {len(lost)} fragments are not there")
        crash_point("files written")

    def _stop(self, running: Tasks, *, gently: bool) -> None:
        """End the tasks, so that nothing is written any more when this returns."""
        if gently:
            checkpoints.request_stop(self._place, self._attempt.job, self._attempt.number)
            if running.wait(STOP_SECONDS):
                return
        # A session that died has nothing left to cancel.
        with contextlib.suppress(Exception):
            if not running.wait(0):
                running.cancel()
                time.sleep(KILL_SECONDS)

    def _read_notes(self, plan: Fill) -> bool:
        """Take in what workers have finished since the last look; whether there was anything."""
        wanted = {work.id: work for work in plan.work}
        moved = False
        found = checkpoints.read_checkpoints(self._place, self._attempt.job, self._seen)
        for name, note in found:
            self._seen.add(name)
            if note.attempt == self._attempt.number:
                self._function_calls += note.computed
            elif not checkpoints.has_file(self._place, self._location, note):
                continue
            self._notes.append(note)
            moved = True
        for note in self._notes:
            if (work := wanted.get(note.work.id)) is not None and note.serves(work):
                self._files.add(note)
        if moved:
            self._tell_progress()
        return moved

    # Telling ---------------------------------------------------------------------------------

    def _tell_plan(self, plan: Fill) -> None:
        self._attempt.log(f"{plan.mode}: {plan.reason}")
        self._attempt.progress(
            mode=plan.mode,
            reason=plan.reason,
            rows_total=plan.rows + self._files.rows_committed,
            fragments_total=plan.fragments + len(self._files.committed),
        )
        self._tell_progress()

    def _tell_progress(self) -> None:
        self._attempt.progress(
            rows_done=self._files.rows_committed + self._files.rows_ready,
            fragments_done=len(self._files.committed) + len(self._files.ready),
            function_calls=self._function_calls,
            rows_failed=0,
        )

    def _result(self, plan: UpToDate | Fill, dataset: "LanceDataset | None") -> BackfillResult:
        """What was done, with what earlier attempts committed and could not report."""
        versions, rows = set(self._files.versions), self._files.rows_committed
        if self._attempt.number > 1:
            latest = self._catalog.open_latest(self._spec.table, self._spec.branch)
            earlier = find_commits(latest, self._attempt.job, COMMITS_BACK)
            rows += sum(count for version, count in earlier if version not in versions)
            versions.update(version for version, _ in earlier)
        if isinstance(plan, UpToDate):
            self._attempt.log(plan.reason)
            self._attempt.progress(rows_total=rows, fragments_total=0)
        self._tell_progress()
        self._attempt.progress(mode=plan.mode, reason=plan.reason, rows_done=rows)
        found = max(versions) if versions else None
        if found is None:
            dataset = dataset or self._catalog.open_latest(self._spec.table, self._spec.branch)
            found = dataset.version
        return BackfillResult(
            found,
            self._watermark(versions),
            plan.mode,
            plan.reason,
            rows,
            self._function_calls,
            tuple(sorted(versions)),
            tuple(sorted(self._files.committed)),
        )

    def _watermark(self, versions: set[int]) -> Watermark | None:
        if (self._spec.where, self._options.num_frags, self._spec.read_version) != (None,) * 3:
            return None
        # What others committed between the snapshot and our commits may have brought new rows.
        while self._covered + 1 in versions:
            self._covered += 1
        return Watermark(self._covered)
