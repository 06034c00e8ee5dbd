"""Carry finished values over to rows that moved since, from earlier rounds, attempts and jobs.

No function is called here. Carried values are committed at once: while others rewrite fragments,
uncommitted values may have to move again.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from lance import LanceDataset

from penstock.jobs.backfill.commit import Replacements
from penstock.jobs.backfill.kernel import FillOrder, carry_fragments
from penstock.jobs.backfill.plan import BackfillOptions, Fill, UpToDate, fragment_key
from penstock.jobs.backfill.planning import Planner
from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.engine.checkpoints import Checkpoint
from penstock.jobs.engine.fragment_work import FragmentWork
from penstock.jobs.engine.worker_reports import WorkerReports
from penstock.jobs.kept.store import name_store, owner_of_column
from penstock.jobs.specs import BackfillSpec
from penstock.model.fragments import FragmentState

# The most rows that the driver carries over itself, where Spark would take longer.
MAX_CARRIED_ROWS = 100_000
# How often values follow rows that others move just before the commit.
MAX_FOLLOWED = 50


Files = tuple[Checkpoint, ...]
MakeOrder = Callable[[tuple[tuple[FragmentWork, ...], ...], LanceDataset, Files], FillOrder]


class Carrier:
    """Has the values that one attempt knows of follow their rows."""

    def __init__(
        self,
        spec: BackfillSpec,
        options: BackfillOptions,
        attempt: Attempt,
        planner: Planner,
        files: Replacements,
        reports: WorkerReports,
        make_order: MakeOrder,
    ) -> None:
        self._spec = spec
        self._options = options
        self._attempt = attempt
        self._planner = planner
        self._files = files
        self._reports = reports
        self._make_order = make_order

    def is_able(self, plan: Fill, dataset: LanceDataset) -> bool:
        """Whether rows can be found again, and are few enough to be carried over here."""
        return (
            self._spec.function is not None
            and dataset.has_stable_row_ids
            and plan.rows <= MAX_CARRIED_ROWS
        )

    def carry(self, plan: Fill, dataset: LanceDataset) -> bool | None:
        """While others rewrite fragments: have what is known follow its rows, and commit it.

        None: there was nothing, and the plan is to be computed. True: that was all of the plan.
        """
        if not self._files.is_disturbed or not self.is_able(plan, dataset):
            return None
        left = tuple(work for work in plan.work if work.id not in self._files.ready)
        if not left:
            return None
        files = self.find_files(dataset, left)
        notes = carry_fragments(self._make_order((left,), dataset, files), left)
        if not notes:
            return None
        for note in notes:
            self._files.add(note)
        covered = {note.work.id: note.work.rows for note in notes}
        complete = all(covered.get(work.id, 0) >= work.rows for work in left)
        self._attempt.log(f"{sum(covered.values())} rows moved, and their values with them")
        return self._files.commit_all() and complete

    def follow(self, rows_left: int) -> int:
        """Have values follow rows that others moved just before the commit; the rows that are left.

        They are in a file that went in, and not in the fragment that the rows are in.
        """
        if self._spec.function is None or self._spec.num_frags is not None:
            return rows_left
        for _ in range(MAX_FOLLOWED):
            if not self._files.has_moved:
                break
            self._files.has_moved, self._files.is_disturbed = False, True
            dataset = self._planner.open()
            found = self._planner.plan(dataset, self._options)
            rows_left = found.rows_left
            if isinstance(found, UpToDate):
                break
            self._files.begin(found)
            self.carry(found, dataset)
        return rows_left

    def find_files(self, dataset: LanceDataset, left: Iterable[FragmentWork]) -> Files:
        """Finished files of fragments that are not as they were, and of those that are left."""
        if self._spec.function is None or not dataset.has_stable_row_ids:
            return ()
        self._reports.listen()
        if not self._reports.notes:
            return ()
        wanted = {work.id for work in left}
        states = self._planner.describe(dataset)
        return find_files(self._reports.notes, states, self._options, wanted)


def kept_folder(spec: BackfillSpec) -> str:
    """Where finished work of the column lies; '' when it is of no use to other jobs."""
    function = spec.function_identity
    if function is None or not spec.binding:
        return ""
    return name_store(owner_of_column(spec.binding, spec.branch), function)


def is_usable(note: Checkpoint, job: str, options: BackfillOptions) -> bool:
    """Whether a file may go in as it is; what another job failed on is tried again."""
    if note.origin is None or note.origin.job == job:
        return True
    return not (note.failed or options.force)


def find_files(
    notes: Sequence[Checkpoint],
    states: Iterable[FragmentState],
    options: BackfillOptions,
    wanted: Collection[int],
) -> Files:
    """The files that have values of rows which may be wanted: these may be anywhere now.

    No file fits a fragment that is wanted: perhaps a restore brought rows back that it lacks, other
    rows were asked for, or some failed. What it has of the others still holds.
    """
    keys = {state.id: (fragment_key(state, options), state.deletions) for state in states}
    return tuple(
        note
        for note in notes
        if note.origin is not None
        and (
            note.work.id in wanted or keys.get(note.work.id) != (note.work.key, note.work.deletions)
        )
    )
