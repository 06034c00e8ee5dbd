"""Planners of backfills: for expressions, and for functions.

`explain` uses one once, a run in each of its rounds. Both give a plan for the open version, a
description of its fragments for the commit, and what to record when the job is done.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import pyarrow.compute as pc
from lance import LanceDataset, LanceFragment
from msgspec import structs

from penstock.crash import crash_point
from penstock.errors import ColumnNotFound
from penstock.jobs.backfill import watermarks
from penstock.jobs.backfill.freshness import Freshness
from penstock.jobs.backfill.plan import (
    BackfillOptions,
    Fill,
    RowCounts,
    Snapshot,
    UpToDate,
    Watermark,
    plan_backfill,
)
from penstock.jobs.backfill.plan_rows import count_rows, plan_rows
from penstock.jobs.backfill.selection import Scope, find_left
from penstock.jobs.backfill.watermarks import BoundFunction, follow
from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.kept.store import name_column
from penstock.jobs.specs import BackfillSpec
from penstock.lance import refs
from penstock.lance.columns import computed
from penstock.lance.columns.fields import get_field, show_path
from penstock.lance.commit.transaction import transaction_of
from penstock.lance.diff.fragments import describe_fragments, leaf_ids, show_files
from penstock.lance.errors import translated
from penstock.lance.expressions.check import check_expression
from penstock.lance.session.remote import Location, open_newest, open_version
from penstock.model.fragments import FragmentState
from penstock.model.functions import Function


class Planner(Protocol):
    """What the rounds of a backfill need.

    The columns are found by their binding in every version that is looked at: they may have got
    other names, as may their inputs, and a column of the same name may be another one.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """What the columns are called in the version of the last plan."""

    @property
    def expression(self) -> str | None:
        """The expression in that version."""

    @property
    def function(self) -> Function | None:
        """The function, with what its inputs are called in that version."""

    def open(self) -> LanceDataset:
        """The version that the next plan is for."""

    def plan(self, dataset: LanceDataset, options: BackfillOptions) -> UpToDate | Fill: ...

    def describe(self, dataset: LanceDataset) -> tuple[FragmentState, ...]:
        """The fragments as they are when files are to be committed."""

    def finish(self, versions: Collection[int], attempt: Attempt) -> Watermark | None:
        """Remember how far the column is filled, after the commits of these versions."""


@dataclass(frozen=True, slots=True)
class BackfillTable:
    """The table of a backfill, as its planner reads it."""

    location: Location
    # Its newest version, and the rows of the column that the ledger has.
    open_latest: Callable[[], LanceDataset]
    error_rows: Callable[[], Collection[int]]
    # Who asks.
    job: str = ""


def make_planner(spec: BackfillSpec, table: BackfillTable) -> Planner:
    """What plans a backfill, for a run and for those who only ask."""
    if spec.function is None:
        return ExpressionPlanner(spec, table)
    return FunctionPlanner(spec, table)


class ExpressionPlanner:
    """Whole fragments, by the names of their files."""

    def __init__(self, spec: BackfillSpec, table: BackfillTable) -> None:
        self._spec = spec
        self._table = table
        # With a version to read, later fragments are none of this job's business.
        self._scope: frozenset[int] | None = None
        self._covered = 0
        self._rows = 0
        self.function: Function | None = None
        self.columns, self.expression, self._inputs = spec.targets, spec.expression, spec.inputs
        # Which fields the inputs are, if not those of the declaration.
        self._other_fields = ""

    def open(self) -> LanceDataset:
        if self._spec.read_version is not None and self._scope is None:
            return open_version(self._table.location, self._spec.read_version, self._table.job)
        return self._table.open_latest()

    def plan(self, dataset: LanceDataset, options: BackfillOptions) -> UpToDate | Fill:
        spec = self._spec
        self._follow(dataset)
        taken = self._take_snapshot(dataset, spec.where, spec.watermark)
        self._covered = taken.version
        self._rows = sum(fragment.rows for fragment in taken.fragments)
        if spec.read_version is not None:
            if self._scope is None:
                self._scope = frozenset(fragment.id for fragment in taken.fragments)
            kept = tuple(f for f in taken.fragments if f.id in self._scope)
            taken = structs.replace(taken, fragments=kept)
        return plan_backfill(taken, options)

    def describe(self, dataset: LanceDataset) -> tuple[FragmentState, ...]:
        self._follow(dataset)
        return self._take_snapshot(dataset, None, None).fragments

    def finish(self, versions: Collection[int], attempt: Attempt) -> Watermark | None:
        spec = self._spec
        if (spec.where, spec.num_frags, spec.read_version) != (None,) * 3:
            return None
        # What others committed between the snapshot and our commits may have brought new rows.
        while self._covered + 1 in versions:
            self._covered += 1
        return Watermark(self._covered, counts=RowCounts(fresh=self._rows))

    def _follow(self, dataset: LanceDataset) -> None:
        spec = self._spec
        if not spec.binding:
            return
        found = computed.find_bound(dataset.schema, spec.binding, (spec.column,))
        names = f"the expression of {found.name}"
        if check_expression(names, found.declared or "") != spec.declared_expression:
            raise ColumnNotFound(
                f"column {found.name} was declared anew since its backfill was requested",
                detail="request a backfill of the column as it is now",
            )
        self.expression = check_expression(names, found.expression or "")
        self.columns, self._inputs = found.columns, found.inputs
        fields = computed.show_fields(dataset, found.inputs)
        self._other_fields = fields if found.fields not in ("", fields) else ""

    def _take_snapshot(
        self, dataset: LanceDataset, where: str | None, watermark: Watermark | None
    ) -> Snapshot:
        """Describe the version of a table that is open."""
        column = self.columns[0]
        targets = set(leaf_ids(get_field(dataset, show_path((column,))).lance))
        paths = self._inputs
        wanted = {id for path in paths for id in leaf_ids(get_field(dataset, path).lance)}
        counts = None if where is None else _count_matches(dataset, where)
        found = (
            _describe(fragment, targets, wanted, counts, self._other_fields)
            for fragment in dataset.get_fragments()
        )
        return Snapshot(dataset.version, column, tuple(found), watermark)


class FunctionPlanner:
    """Single rows, by files and by earlier versions."""

    def __init__(self, spec: BackfillSpec, table: BackfillTable) -> None:
        self._spec = spec
        self._table = table
        assert spec.function is not None
        self._bound = BoundFunction(
            spec.targets,
            spec.inputs,
            spec.function.identity,
            spec.binding,
            (spec.inputs, spec.function.inputs),
        )
        self.expression: str | None = None
        self._freshness = Freshness(self._bound, spec.known_watermarks, table.location)
        # What comes after the first plan is left to the next backfill.
        self._first: int | None = None
        self._planned = 0
        self._error_rows: Collection[int] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self._bound.columns

    @property
    def function(self) -> Function | None:
        function = self._spec.function
        return None if function is None else function.reading(self._bound.inputs)

    def open(self) -> LanceDataset:
        # A version to read only tells which rows are meant; what they need is read from the newest.
        return self._table.open_latest()

    def plan(self, dataset: LanceDataset, options: BackfillOptions) -> UpToDate | Fill:
        spec = self._spec
        if spec.errors_only and self._error_rows is None:
            self._error_rows = self._table.error_rows()
        limit = spec.read_version
        if limit is not None:
            # One that was asked for and is gone does not come back: that is no lost race.
            open_version(self._table.location, limit, self._table.job)
        if limit is None and dataset.has_stable_row_ids:
            limit = self._first
        if self._first is None:
            self._first = dataset.version
        self._planned = dataset.version
        self._bound = follow(dataset, self._bound)
        scope = Scope(spec.where, limit, self._error_rows, options.force, options.num_frags)
        return plan_rows(self._freshness.snapshot(dataset, scope), options)

    def describe(self, dataset: LanceDataset) -> tuple[FragmentState, ...]:
        bound = follow(dataset, self._bound)
        return describe_fragments(dataset, bound.columns, bound.inputs)

    def finish(self, versions: Collection[int], attempt: Attempt) -> Watermark | None:
        """Store which rows are not fresh in our last version, and keep that version."""
        spec, location = self._spec, self._table.location
        version = max([self._planned, *versions])
        newest = open_newest(location)
        # Of a column that is gone nothing is remembered.
        follow(newest, self._bound)
        with translated():
            dataset = newest.checkout_version((spec.branch or None, version))
        self._bound = follow(dataset, self._bound)
        # Only what changed since the plan is looked at again.
        fragments = self._freshness.snapshot(dataset).fragments
        rows, counts = find_left(dataset, fragments), count_rows(fragments)
        if (known := self._find_known(dataset, counts)) is not None:
            return known
        if not dataset.has_stable_row_ids:
            # Rows cannot be found there again, so nothing would read the list.
            return self._watermark(dataset, None, counts)
        place, folder = location.place(), name_column(spec.binding, spec.branch)
        name = f"{version}-{attempt.job}-{attempt.number}.rows"
        attempt.fence()
        stored = watermarks.write_left(place, folder, name, rows)
        refs.hold_version(
            newest, watermarks.tag_of(spec.binding, spec.branch), spec.branch, version
        )
        kept = {stored, *(watermark.unfilled for watermark in spec.known_watermarks)}
        watermarks.sweep_left(place, folder, kept, version)
        crash_point("watermark written")
        return self._watermark(dataset, stored, counts)

    def _watermark(self, dataset: LanceDataset, stored: str | None, counts: RowCounts) -> Watermark:
        return Watermark(
            dataset.version,
            self._bound.function,
            stored,
            counts.not_fresh,
            self._spec.branch,
            transaction_of(dataset),
            self._bound.inputs,
            self._bound.columns,
            counts,
        )

    def _find_known(self, dataset: LanceDataset, counts: RowCounts) -> Watermark | None:
        """The last watermark, if nothing has happened since."""
        last = next(iter(self._spec.known_watermarks), None)
        if last is None or (last.inputs, last.columns) != (self._bound.inputs, self._bound.columns):
            return None
        there = (last.version, last.branch, last.function, last.counts)
        here = (dataset.version, self._spec.branch, self._bound.function, counts)
        if there != here or last.transaction not in ("", transaction_of(dataset)):
            return None
        return last


def _describe(
    fragment: LanceFragment,
    targets: set[int],
    inputs: set[int],
    counts: Counter[int] | None,
    fields: str,
) -> FragmentState:
    rows = fragment.physical_rows - fragment.num_deletions
    files = fragment.data_files()
    return FragmentState(
        fragment.fragment_id,
        fragment.physical_rows,
        rows,
        rows if counts is None else counts[fragment.fragment_id],
        (*([fields] if fields else []), *show_files(files, inputs)),
        tuple(sorted(str(file.path) for file in files if targets & set(file.fields))),
        show_files(files, {id for file in files for id in file.fields} - targets),
    )


def _count_matches(dataset: LanceDataset, where: str) -> Counter[int]:
    """How many rows of each fragment match."""
    counts: Counter[int] = Counter()
    with translated():
        scanner = dataset.scanner(columns=[], filter=where, with_row_address=True)
        for batch in scanner.to_batches():
            fragments = pc.shift_right(batch.column("_rowaddr"), 32)
            for entry in pc.value_counts(fragments).to_pylist():
                counts[entry["values"]] += entry["counts"]
    return counts
