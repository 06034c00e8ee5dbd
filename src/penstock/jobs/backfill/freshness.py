"""Find out which rows of a function's columns are fresh, with as little reading as possible.

A file that a backfill wrote has a name that says what it was computed from, so most fragments' rows
need not be read. The others are compared, row by row, with the versions that earlier backfills left
(`watermarks`). `row_states` decides what follows. Everything here blocks.
"""

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from lance import LanceDataset

from penstock.errors import ConcurrentCommit, InvalidRequest, InvalidTableState, NotFound
from penstock.jobs.backfill import watermarks as marks
from penstock.jobs.backfill.plan import BackfillOptions, Watermark, fragment_key
from penstock.jobs.backfill.plan_rows import FragmentRows, RowSnapshot
from penstock.jobs.backfill.row_states import (
    FOREIGN_VALUE,
    FRESH,
    FUNCTION_CHANGED,
    INPUTS_CHANGED,
    NEVER_FILLED,
    UNKNOWN,
    Codes,
    Comparison,
    join,
    judge,
    settle,
)
from penstock.jobs.backfill.selection import Scope, find_left, select
from penstock.jobs.backfill.watermarks import BoundFunction, Mark, follow
from penstock.jobs.engine.fragment_work import PARTIAL_PREFIX, PREFIX
from penstock.lance.columns.fields import show_path
from penstock.lance.commit.replacement import find_fills
from penstock.lance.diff.compactions import VERSIONS_BACK, Compactions
from penstock.lance.diff.compare import is_null, rows_unchanged, step_rows
from penstock.lance.diff.fragments import describe_fields, describe_fragments
from penstock.lance.diff.row_sets import Ids
from penstock.lance.errors import translated
from penstock.lance.read.by_id import RowReader
from penstock.lance.read.row_ids import scan_rows
from penstock.lance.session.remote import Location
from penstock.model.fragments import FragmentState

# How many rows are looked at together; fewer of them are read at once when they are wide.
LOOK_ROWS = 262_144
# How many versions, and how far back, are looked for that no watermark speaks of.
MAX_LOOKS_BACK = 3


class Freshness:
    """What is known of a column's rows; fragments that stay as they are cost nothing again."""

    def __init__(
        self, bound: BoundFunction, watermarks: Sequence[Watermark], location: Location
    ) -> None:
        self._bound = bound
        self._watermarks = watermarks
        self._location = location
        self._known: dict[FragmentState, Codes | int] = {}
        self._states: tuple[FragmentState, ...] = ()
        self._marks: list[Mark] | None = None
        self._notes: list[str] = []

    def snapshot(self, dataset: LanceDataset, scope: Scope | None = None) -> RowSnapshot:
        """Every fragment of a version, with what is to be known of its rows."""
        scope = scope or Scope()
        self._learn(dataset, by_files=scope.is_everything)
        rows = select(dataset, self._location.branch, self._found(), scope)
        self._known = {state: self._known[state] for state in self._states if state in self._known}
        mark = self._watermarks[0] if self._watermarks else None
        is_known = self._known.keys() >= set(self._states)
        return RowSnapshot(dataset.version, tuple(rows), mark, tuple(self._notes), is_known)

    def _learn(
        self, dataset: LanceDataset, *, by_files: bool = False, is_back: bool = False
    ) -> None:
        """Find out what there is to know of each fragment of a version, or only what files say."""
        bound = self._bound = follow(dataset, self._bound)
        states = self._states = describe_fragments(dataset, bound.columns, bound.inputs)
        unsure = [state for state in states if not self._decide_by_file(dataset, state)]
        if by_files:
            return
        unsure = [state for state in unsure if not self._is_settled(dataset, state)]
        unsure = self._drop_compacted(dataset, unsure)
        if unsure and not is_back:
            self._look_back(dataset)
            self._bound, self._states = bound, states
            unsure = [state for state in unsure if not self._is_settled(dataset, state)]
        self._compare(dataset, unsure)

    def _found(self) -> list[FragmentRows]:
        # Where no look was taken, every row is computed in any case.
        return [FragmentRows(state, self._known.get(state, NEVER_FILLED)) for state in self._states]

    # By the names of files ---------------------------------------------------------------------

    def _decide_by_file(self, dataset: LanceDataset, state: FragmentState) -> bool:
        if state in self._known:
            return True
        found: Codes | int | None = None
        if not state.rows:
            found = FRESH
        elif not state.target_files:
            found = NEVER_FILLED
        elif (kind := self._kind(state, self._bound.function)) is not None:
            found = FRESH if kind == PREFIX else self._read_partial(dataset, state)
        else:
            found = self._read_other(dataset, state)
        if found is not None:
            self._known[state] = found
        return found is not None

    def _kind(self, state: FragmentState, function: str) -> str | None:
        """Whether a backfill of that version of the function wrote the file from these inputs."""
        if not state.is_whole:
            return None
        kind, _, rest = state.target_files[0].partition("-")
        made_by = BackfillOptions(function=function, binding=self._bound.binding)
        key = fragment_key(state, made_by)
        return kind if kind in (PREFIX, PARTIAL_PREFIX) and rest.startswith(f"{key}-") else None

    def _read_partial(self, dataset: LanceDataset, state: FragmentState) -> Codes:
        """The codes of a fragment whose file says itself which rows are not fresh, and why."""
        return marks.read_codes(dataset, self._location, state)

    def _read_other(self, dataset: LanceDataset, state: FragmentState) -> Codes | int | None:
        """The same, if another version of the function made the file from these inputs."""
        for function in self._other_functions():
            if (kind := self._kind(state, function)) is not None:
                is_partial = kind == PARTIAL_PREFIX
                return self._read_stale(dataset, state, is_partial, same_function=False)
        return None

    def _read_stale(
        self,
        dataset: LanceDataset,
        state: FragmentState,
        is_partial: bool,
        *,
        same_function: bool,
    ) -> Codes | int:
        """The same, where no row of the file can be fresh any more."""
        if not is_partial:
            return INPUTS_CHANGED if same_function else FUNCTION_CHANGED
        were = self._read_partial(dataset, state)
        same = np.ones(len(were), bool)
        return judge(Comparison(same_function, were, same_values=same, same_inputs=~same))

    def _other_functions(self) -> list[str]:
        """What else filled the column, as far as that is remembered."""
        found = dict.fromkeys(mark.function or "" for mark in self._watermarks)
        return [function for function in found if function not in ("", self._bound.function)]

    # By earlier versions -----------------------------------------------------------------------

    def _is_settled(self, dataset: LanceDataset, state: FragmentState) -> bool:
        known = self._open_marks(dataset)
        usable = [mark for mark in known if self._is_same_function(mark)]
        for mark in usable:
            if _has_rows_of(mark, state) and not len(mark.left):
                self._known[state] = FRESH
                return True
        if usable:
            return False
        # Every row is computed in any case; only the reason is asked for.
        name = state.target_files[0]
        if any(_has_rows_of(mark, state) and not len(mark.left) for mark in known):
            self._known[state] = FUNCTION_CHANGED
        elif not known and name.startswith((f"{PREFIX}-", f"{PARTIAL_PREFIX}-")):
            is_partial = state.is_whole and name.startswith(PARTIAL_PREFIX)
            self._known[state] = self._read_stale(dataset, state, is_partial, same_function=True)
        return state in self._known

    def _drop_compacted(
        self, dataset: LanceDataset, unsure: Sequence[FragmentState]
    ) -> list[FragmentState]:
        """Settle what a compaction made of fragments that were filled in whole; the rest."""
        if not unsure:
            return []
        order, *ids = describe_fields(dataset, self._bound.columns, self._bound.inputs)
        for function in (self._bound.function, *self._other_functions()):

            def is_whole(state: FragmentState, function: str = function) -> bool:
                return self._kind(state, function) == PREFIX

            origins = Compactions(dataset, order, (ids[0], ids[1]), is_whole)
            found = [state for state in unsure if origins.were_whole(state)]
            code = FRESH if function == self._bound.function else FUNCTION_CHANGED
            self._known |= dict.fromkeys(found, code)
            unsure = [state for state in unsure if state not in self._known]
        return list(unsure)

    def _open_marks(self, dataset: LanceDataset) -> list[Mark]:
        if self._marks is None:
            self._marks = []
            if not dataset.has_stable_row_ids:
                self._notes.append(
                    "the table has no stable row ids, so rows that moved to another file are "
                    "computed again"
                )
                return self._marks
            place = self._location.place()
            for watermark in self._watermarks:
                found = marks.open_mark(dataset, place, watermark, self._bound)
                if isinstance(found, Mark):
                    self._marks.append(found)
                elif watermark is self._watermarks[0]:
                    self._notes.append(found)
        return self._marks

    def _look_back(self, dataset: LanceDataset) -> None:
        """Compare also with what was committed without a watermark: by a job that then failed, was
        killed, or is still on its way."""
        known, branch = self._open_marks(dataset), self._location.branch
        if not dataset.has_stable_row_ids or not self._bound.binding:
            return
        ours = [mark.watermark for mark in known if self._is_same_function(mark)]
        after = max((each.version for each in ours if each.branch == branch), default=0)
        back = min(VERSIONS_BACK, dataset.version - after)
        fills = find_fills(dataset, self._bound.binding, self._bound.function, back)
        # What stands right before another one is in that one.
        last = [v for v in fills if v != dataset.version and v + 1 not in fills]
        looked_at = {mark.dataset.version for mark in known}
        for version in reversed(last[:MAX_LOOKS_BACK]):
            if version in looked_at:
                continue
            with (
                contextlib.suppress(ConcurrentCommit, InvalidRequest, InvalidTableState, NotFound),
                translated(),
            ):
                then = dataset.checkout_version((branch or None, version))
                self._learn(then, is_back=True)
                rows = find_left(then, self._found())
                known.insert(0, marks.make_mark(then, branch, self._bound, self._states, rows))

    def _is_same_function(self, mark: Mark) -> bool:
        return mark.watermark.function == self._bound.function

    def _compare(self, dataset: LanceDataset, states: Sequence[FragmentState]) -> None:
        """Look at every row of some fragments."""
        if not states:
            return
        by_id = {state.id: state for state in states}
        look = _Look(
            RowReader(dataset, by_id.keys()),
            [(mark, _open_rows(mark, self._states)) for mark in self._open_marks(dataset)],
            by_id,
            step_rows(dataset, by_id.keys()),
        )
        codes = {state.id: np.zeros(state.physical_rows, np.uint8) for state in states}
        for ids, fragments, offsets in scan_rows(dataset, by_id.keys(), batch_rows=LOOK_ROWS):
            found = self._judge(look, ids, fragments)
            for id in np.unique(fragments).tolist():
                of = fragments == id
                codes[id][offsets[of]] = found[of]
        for state in states:
            self._known[state] = codes[state.id]

    def _judge(self, look: "_Look", ids: Ids, fragments: Ids) -> Codes:
        """The codes of some rows."""
        codes = np.full(len(ids), UNKNOWN, np.uint8)
        for mark, then in look.marks:
            rows = np.flatnonzero(codes != FRESH)
            same = [id for id, state in look.states.items() if _has_files_of(mark, state)]
            whole = [id for id in same if _has_rows_of(mark, look.states[id])]
            there = np.isin(fragments[rows], whole) | then.has(ids[rows])
            were = np.where(there, mark.left.find(ids[rows]), UNKNOWN).astype(np.uint8)
            # Where a newer version knows the value, an older one only tells whether it is fresh.
            is_of_use = np.isin(codes[rows], (UNKNOWN, FOREIGN_VALUE))
            is_of_use |= (were == FRESH) & self._is_same_function(mark)
            rows, were = rows[is_of_use & there], were[is_of_use & there]
            unmoved = np.isin(fragments[rows], same)
            values, inputs = unmoved.copy(), unmoved.copy()
            moved = np.flatnonzero(~unmoved)
            new, old = self._bound, mark.bound
            pairs = ((_quote(new.columns), _quote(old.columns)), (new.inputs, old.inputs))
            for found, (now_paths, then_paths) in zip((values, inputs), pairs, strict=True):
                found[moved] = rows_unchanged(
                    look.rows, now_paths, then, then_paths, ids[rows[moved]], look.step
                )
                # Inputs matter only where the value is that of then, by the same function.
                moved = moved[found[moved] & (were[moved] == FRESH) & self._is_same_function(mark)]
            seen = Comparison(self._is_same_function(mark), were, values, inputs)
            codes[rows] = join(judge(seen), codes[rows])
        unknown = np.flatnonzero(codes == UNKNOWN)
        nulls = np.zeros(len(ids), bool)
        nulls[unknown] = is_null(look.rows, _quote(self._bound.columns), ids[unknown], look.step)
        return settle(codes, nulls)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a look at rows needs: they themselves, and those that marks had."""

    rows: RowReader
    marks: list[tuple[Mark, RowReader]]
    states: Mapping[int, FragmentState]
    step: int


def _open_rows(mark: Mark, states: Collection[FragmentState]) -> RowReader:
    """The rows of a mark that may have moved: those of fragments that are not as they were."""
    same = {state.id for state in states if mark.states.get(state.id) == state}
    return RowReader(mark.dataset, mark.states.keys() - same)


def _has_files_of(mark: Mark, state: FragmentState) -> bool:
    """Whether a fragment has the same values as then."""
    then = mark.states.get(state.id)
    return then is not None and (then.physical_rows, then.input_files, then.target_files) == (
        state.physical_rows,
        state.input_files,
        state.target_files,
    )


def _has_rows_of(mark: Mark, state: FragmentState) -> bool:
    """Whether it also had then every row that is alive now."""
    then = mark.states.get(state.id)
    return (
        _has_files_of(mark, state) and then is not None and then.deletions in ("", state.deletions)
    )


def _quote(columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(show_path((name,)) for name in columns)
