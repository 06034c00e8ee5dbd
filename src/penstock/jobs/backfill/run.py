"""The recipe of a backfill: snapshot, plan, files on Spark, commits, report.

Each round plans on what the table is then. What was committed before, by this attempt or an earlier
one, is fresh and so in no plan any more. Values whose fragment somebody rewrote while they were
computed follow their rows in the next round, and only what has other inputs is computed again.
"""

import time
from collections.abc import Callable
from functools import partial

from lance import LanceDataset
from msgspec import Struct, structs

from penstock.crash import crash_point
from penstock.errors import ConcurrentCommit, FunctionFailed, Unavailable
from penstock.jobs.backfill.carrier import Carrier, Files, is_usable, kept_folder
from penstock.jobs.backfill.commit import Replacements
from penstock.jobs.backfill.kernel import FillOrder, fill_kernel
from penstock.jobs.backfill.plan import (
    BackfillOptions,
    Fill,
    UpToDate,
    Watermark,
    plan_tasks,
    show_counts,
)
from penstock.jobs.backfill.planning import BackfillTable, make_planner
from penstock.jobs.engine.attempt import (
    COMMITTING,
    COMPUTING,
    FINISHING,
    PLANNING,
    Attempt,
    JobPaused,
)
from penstock.jobs.engine.checkpoints import note_pause
from penstock.jobs.engine.fragment_work import FragmentWork
from penstock.jobs.engine.guard import SCHEMA
from penstock.jobs.engine.waiting import wait_for_tasks
from penstock.jobs.engine.worker_reports import WorkerReports
from penstock.jobs.functions.task import FunctionOptions
from penstock.jobs.kept.sweep import has_others, sweep
from penstock.jobs.spark.tasks import Engine, Tasks
from penstock.jobs.specs import BackfillSpec, Recipe
from penstock.lance.commit.replacement import Computation, OwnCommit, find_commits
from penstock.lance.commit.transaction import transaction_of
from penstock.lance.session.remote import RemoteCatalog

# Rounds in which nothing was computed and nothing went in, because others were faster each time.
MAX_FRUITLESS = 50
# After so many rounds a job does not run after rows any more that others change meanwhile.
MAX_COMPUTED_ROUNDS = 3
# How far back an attempt looks for commits of the attempts before it.
COMMITS_BACK = 200
# The pause after a fruitless round grows by this, up to that.
PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.02, 0.5
# How long finished values may be in a worker's memory only.
FLUSH_SECONDS = 5.0


class BackfillResult(Struct, frozen=True):
    """What a backfill did; `version` is the last one it committed, or the one it found.

    The watermark is the version up to which every row is filled: with expressions None when only
    some were wanted, with functions it names those that are not.
    """

    version: int
    watermark: Watermark | None
    mode: str
    reason: str
    rows: int
    function_calls: int
    committed_versions: tuple[int, ...]
    committed_fragments: tuple[int, ...]
    # For functions: rows that failed and were skipped, other rows that are not fresh at the end,
    # and how many rows a core computed in a second.
    rows_failed: int = 0
    rows_left: int = 0
    rate: float | None = None
    # How many rows are in each state at the end; with expressions None when only some were wanted.
    rows_by_state: dict[str, int] | None = None
    stale_by_reason: dict[str, int] | None = None
    # Rows that are fresh and were not computed by this attempt; None when nobody counted.
    calls_saved: int | None = None


def run_backfill(
    spec: BackfillSpec,
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> BackfillResult:
    """Fill the column; raises JobCanceled, JobPaused, LeaseLost or what made it fail.

    The engine is asked for only when something has to be computed.
    """
    options = spec.to_options(attempt.job)
    return _Backfill(spec, options, catalog, get_engine, attempt).run()


def sweep_backfill(spec: BackfillSpec, catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """Remove what a finished job wrote and no version refers to; returns how many files.

    What others finished stays when the job was asked for some rows only.
    """
    location, kept = catalog.locate(spec.table, spec.branch), kept_folder(spec)
    limits = spec.where, spec.num_frags, spec.read_version, spec.errors_only or None
    is_narrow = bool(kept) and any(limit is not None for limit in limits)
    is_needed = is_narrow and has_others(location.place(), kept, job)
    return sweep(location, job, attempt, kept, is_needed=is_needed)


def leave_backfill(spec: BackfillSpec, catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """The same for a job that did not succeed: what it finished stays for the next one."""
    location = catalog.locate(spec.table, spec.branch)
    return sweep(location, job, attempt, kept_folder(spec), is_needed=True)


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
        self._location = catalog.locate(spec.table, spec.branch)
        self._place = self._location.place()
        open_latest = partial(catalog.open_latest, spec.table, spec.branch)
        self._planner = make_planner(
            spec, BackfillTable(self._location, open_latest, attempt.error_rows, attempt.job)
        )
        self._files = Replacements(
            spec, options, catalog, attempt, self._location, self._planner.describe
        )
        functions = () if spec.function is None else (spec.function,)
        self._kept = kept_folder(spec)
        self._reports = WorkerReports(self._location, functions, attempt, self._kept)
        self._carrier = Carrier(
            spec, options, attempt, self._planner, self._files, self._reports, self._order
        )
        self._rows_left = self._rounds_computed = 0
        # What attempts before this one committed, and up to which version that is known.
        self._earlier: list[OwnCommit] = []
        self._looked_until = 0

    def run(self) -> BackfillResult:
        try:
            return self._run()
        except JobPaused:
            note_pause(self._place, self._attempt.job, self._attempt.number)
            raise

    def _run(self) -> BackfillResult:
        plan: UpToDate | Fill | None = None
        self._find_earlier()
        fruitless = 0
        while fruitless < MAX_FRUITLESS:
            self._attempt.check()
            self._attempt.phase(PLANNING)
            before = self._done_so_far()
            dataset = self._planner.open()
            found = self._planner.plan(dataset, self._remaining())
            self._rows_left = found.rows_left
            plan = plan or found
            if isinstance(found, UpToDate):
                return self._result(plan, dataset)
            self._files.begin(found)
            self._tell_plan(found)
            self._reports.failures.expect(found.rows + self._files.rows_committed)
            self._read_notes(found)
            try:
                complete = self._carrier.carry(found, dataset)
                if complete is None and self._is_chasing(found, dataset):
                    complete = True
                elif complete is None:
                    self._compute(found, dataset)
                    self._attempt.phase(COMMITTING)
                    complete = self._files.commit_all()
            except FunctionFailed:
                # Groups that were whole before the row failed stay.
                self._files.commit_groups()
                raise
            self._tell_progress()
            if complete:
                self._rows_left = self._carrier.follow(self._rows_left)
                return self._result(plan, None)
            fruitless = fruitless + 1 if self._done_so_far() == before else 0
            time.sleep(min(MAX_PAUSE_SECONDS, PAUSE_SECONDS * fruitless))
        raise ConcurrentCommit(
            f"the fragments of {'$'.join(self._spec.table)} changed in each of {MAX_FRUITLESS} "
            "rounds in which there was nothing left to compute",
            detail="try later, when fewer rewrite this table",
        )

    def _is_chasing(self, plan: Fill, dataset: LanceDataset) -> bool:
        """Whether all that was computed is in, and what is left changed since, time and again.

        That is for the next backfill: a job that runs after a busy writer would never end.
        """
        return (
            self._files.is_disturbed
            and self._rounds_computed >= MAX_COMPUTED_ROUNDS
            and self._carrier.is_able(plan, dataset)
            and not self._files.ready
        )

    def _done_so_far(self) -> tuple[int, int]:
        return len(self._files.versions), self._reports.function_calls

    def _remaining(self) -> BackfillOptions:
        limit = self._options.num_frags
        if limit is None:
            return self._options
        # Zero takes nothing: all that were asked for are done.
        done = sum(commit.fragments for commit in self._earlier) + self._files.fragments_committed
        return structs.replace(self._options, num_frags=max(0, limit - done))

    def _find_earlier(self) -> None:
        if self._attempt.number == 1:
            return
        latest = self._catalog.open_latest(self._spec.table, self._spec.branch)
        back = min(COMMITS_BACK, latest.version - self._looked_until)
        mine = set(self._files.versions)
        found = find_commits(latest, self._attempt.job, back)
        self._earlier += [commit for commit in found if commit.version not in mine]
        self._looked_until = latest.version

    # Computing -------------------------------------------------------------------------------

    def _compute(self, plan: Fill, dataset: LanceDataset) -> None:
        """Have Spark write what is missing; commit groups on the way if that is wanted."""
        missing = {work.id: work for work in plan.work if work.id not in self._files.ready}
        if not missing:
            return
        self._rounds_computed += 1
        engine = self._get_engine()
        self._attempt.phase(COMPUTING)
        tasks = plan_tasks(tuple(missing.values()), self._options, engine.slots)
        work = tuple(tuple(missing[id] for id in task) for task in tasks)
        self._attempt.log(f"computing {len(missing)} fragments in {len(tasks)} tasks")
        order = self._order(work, dataset, self._carrier.find_files(dataset, missing.values()))
        running = Tasks(engine, fill_kernel(order), len(tasks), SCHEMA)
        wait_for_tasks(self._attempt, self._place, running, partial(self._listen, plan))
        # Also those that did not fit when their group was committed.
        self._read_notes(plan)
        if lost := missing.keys() - self._files.ready.keys() - self._files.committed.keys():
            raise Unavailable(f"the files of {len(lost)} fragments are not there")
        crash_point("files written")

    def _order(
        self, work: tuple[tuple[FragmentWork, ...], ...], dataset: LanceDataset, files: Files
    ) -> FillOrder:
        spec, columns, function = self._spec, self._planner.columns, self._planner.function
        flush_seconds = spec.batch_checkpoint_flush_interval_seconds
        return FillOrder(
            self._attempt.job,
            self._attempt.number,
            self._location,
            dataset.version,
            Computation(columns[0], self._planner.expression or "", spec.where, not spec.inputs),
            work,
            function=function,
            columns=columns if function is not None else (),
            knobs=FunctionOptions(
                spec.intra_applier_concurrency or 1,
                spec.checkpoint_size,
                spec.min_checkpoint_size,
                spec.max_checkpoint_size,
                FLUSH_SECONDS if flush_seconds is None else flush_seconds,
            ),
            kept=self._kept,
            transaction=transaction_of(dataset) if self._kept else "",
            files=files,
            own_only=self._options.force,
        )

    def _listen(self, plan: Fill) -> bool:
        """While tasks run: take in what they have finished, and commit whole groups."""
        moved = self._read_notes(plan)
        if moved:
            self._files.commit_groups()
        return moved

    def _read_notes(self, plan: Fill) -> bool:
        """Take in what workers have finished since the last look; whether there was anything."""
        wanted = {work.id: work for work in plan.work}
        moved = self._reports.listen()
        for note in self._reports.notes:
            work = wanted.get(note.work.id)
            usable = is_usable(note, self._attempt.job, self._options)
            if work is not None and usable and note.serves(work):
                self._files.add(note)
                self._reports.failures.use_file(note.work.id, note.failed)
        if self._reports.listen_inside() or moved:
            self._tell_progress()
        self._reports.failures.check()
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
        finished = self._files.committed.keys() | self._files.ready.keys()
        inside = self._reports.rows_inside(finished)
        self._attempt.progress(
            rows_done=self._files.rows_committed + self._files.rows_ready + inside,
            fragments_done=len(finished),
            function_calls=self._reports.function_calls,
            rows_failed=max(self._reports.failures.rows, self._files.rows_failed),
            **({"rows_null": nulls} if (nulls := self._reports.rows_null) else {}),
        )

    def _result(self, plan: UpToDate | Fill, dataset: LanceDataset | None) -> BackfillResult:
        """What was done, with what earlier attempts committed and could not report."""
        self._attempt.phase(FINISHING)
        versions, rows = set(self._files.versions), self._files.rows_committed
        self._find_earlier()
        rows += sum(commit.rows for commit in self._earlier if commit.version not in versions)
        versions.update(commit.version for commit in self._earlier)
        if isinstance(plan, UpToDate):
            self._attempt.log(plan.reason)
            self._attempt.progress(rows_total=rows, fragments_total=0)
        watermark = self._planner.finish(versions, self._attempt)
        failed = self._files.rows_failed
        if self._spec.function is not None and watermark is not None:
            self._rows_left = max(0, watermark.unfilled_rows - failed)
        if self._spec.function is not None:
            self._attempt.progress(rows_left=self._rows_left)
        saved = self._count_saved(watermark)
        if saved is not None:
            self._attempt.progress(calls_saved=saved)
        self._tell_progress()
        self._attempt.progress(mode=plan.mode, reason=plan.reason, rows_done=rows)
        found = max(versions) if versions else None
        if found is None:
            dataset = dataset or self._catalog.open_latest(self._spec.table, self._spec.branch)
            found = dataset.version
        return BackfillResult(
            found,
            watermark,
            plan.mode,
            plan.reason,
            rows,
            self._reports.function_calls,
            tuple(sorted(versions)),
            tuple(sorted(self._files.committed)),
            failed,
            self._rows_left,
            self._reports.rate(),
            calls_saved=saved,
            **show_counts(None if watermark is None else watermark.counts),
        )

    def _count_saved(self, watermark: Watermark | None) -> int | None:
        if watermark is None or watermark.counts is None:
            return None
        came_out = self._reports.function_calls - self._reports.failures.rows
        # Rows that are null because an input is would cost no call at any time.
        came_out += self._reports.rows_null
        return max(0, watermark.counts.fresh - max(0, came_out))


RECIPE = Recipe(run_backfill, sweep_backfill, leave_backfill)
