"""What was finished by rounds, attempts and jobs before, and how it follows rows that moved since.

No function is called here. What is carried over goes into the table at once: while others rewrite
fragments, what is not committed may have to move again.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.jobs.backfill.commit import Replacements
from penstock.jobs.backfill.kernel import FillOrder, carry_fragments
from penstock.jobs.backfill.plan import BackfillOptions, Fill, FragmentWork, UpToDate, fragment_key
from penstock.jobs.backfill.planning import Planner
from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.engine.checkpoints import Checkpoint
from penstock.jobs.engine.worker_reports import WorkerReports
from penstock.jobs.kept.parts import Part, list_parts
from penstock.jobs.kept.work import name_folder, owner_of_column
from penstock.jobs.specs import BackfillSpec
from penstock.model.fragments import FragmentState

if TYPE_CHECKING:
    from lance import LanceDataset

# So many rows at most are carried over by the driver itself, where Spark would take longer.
MAX_CARRIED_ROWS = 100_000
# How often values run after rows that others move just before the commit.
MAX_FOLLOWED = 50


class Moved(NamedTuple):
    """Finished work of fragments that are not as they were: their rows may be anywhere now."""

    files: tuple[Checkpoint, ...] = ()
    parts: tuple[str, ...] = ()


MakeOrder = Callable[[tuple[tuple[FragmentWork, ...], ...], "LanceDataset", Moved], FillOrder]


class Carrying:
    """Has values that one attempt knows of follow their rows."""

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

    def is_able(self, plan: Fill, dataset: "LanceDataset") -> bool:
        """Whether rows can be found again, and are few enough to be carried over here."""
        return (
            self._spec.function is not None
            and dataset.has_stable_row_ids
            and plan.rows <= MAX_CARRIED_ROWS
        )

    def carry(self, plan: Fill, dataset: "LanceDataset") -> bool | None:
        """While others rewrite fragments: have what is known follow its rows, and commit it.

        None: there was nothing, and the plan is to be computed. True: that was all of the plan.
        """
        if not self._files.is_disturbed or not self.is_able(plan, dataset):
            return None
        left = tuple(work for work in plan.work if work.id not in self._files.ready)
        moved = self.find(dataset, left)
        if not left or not (moved.files or moved.parts):
            return None
        notes = carry_fragments(self._make_order((left,), dataset, moved), left)
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

    def find(self, dataset: "LanceDataset", left: Iterable[FragmentWork]) -> Moved:
        """What is finished of fragments that are not as they were, and of those that are left."""
        if self._spec.function is None or not dataset.has_stable_row_ids:
            return Moved()
        self._reports.listen()
        parts = list_parts(self._reports.place, kept_folder(self._spec) or self._attempt.job)
        if not (parts or self._reports.notes):
            return Moved()
        states = self._planner.describe(dataset)
        wanted = {work.id for work in left}
        return find_moved(self._reports.notes, parts, states, self._options, wanted)


def kept_folder(spec: BackfillSpec) -> str:
    """Where finished work of the column lies; '' when it is of no use to other jobs."""
    function = spec.function_identity
    if function is None or not spec.binding:
        return ""
    return name_folder(owner_of_column(spec.binding, spec.branch), function)


def is_usable(note: Checkpoint, job: str, options: BackfillOptions) -> bool:
    """Whether a file may go in as it is; what another job failed on is tried again."""
    if note.origin is None or note.origin.job == job:
        return True
    return not (note.failed or options.force)


def find_moved(
    notes: Sequence[Checkpoint],
    parts: Sequence[Part],
    states: Iterable[FragmentState],
    options: BackfillOptions,
    wanted: Collection[int],
) -> Moved:
    """The files and parts that have values of rows which may be wanted.

    No file fits a fragment that is wanted: perhaps a restore brought rows back that it lacks, other
    rows were asked for, or some failed. What it has of the others still holds.
    """
    now = {state.id: state for state in states}
    keys: dict[int, str] = {}

    def is_same(fragment: int, key: str) -> bool:
        if fragment not in keys:
            state = now.get(fragment)
            keys[fragment] = "" if state is None else fragment_key(state, options)
        return keys[fragment] == key

    return Moved(
        tuple(
            note
            for note in notes
            if note.origin is not None
            and (
                note.work.id in wanted
                or not is_same(note.work.id, note.work.key)
                or now[note.work.id].deletions != note.work.deletions
            )
        ),
        tuple(
            part.name
            for part in parts
            if not (is_same(part.fragment, part.key) and not now[part.fragment].deletions)
        ),
    )
