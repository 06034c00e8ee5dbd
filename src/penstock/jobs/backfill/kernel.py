"""Fill columns on Spark: each task goes through its fragments and writes a file for each.

The functions below `fill_kernel` run in Python workers, which need penstock installed.
"""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from lance import LanceDataset, LanceFragment
from msgspec import Struct, json, structs

from penstock.errors import InvalidRequest, PenstockError
from penstock.jobs.backfill.plan_rows import codes_of
from penstock.jobs.backfill.watermarks import describe_left
from penstock.jobs.engine.attempt import PASSING
from penstock.jobs.engine.checkpoints import (
    Checkpoint,
    ValueOrigin,
    has_file,
    is_stopped,
    read_new_notes,
    write_checkpoint,
)
from penstock.jobs.engine.fragment_work import PARTIAL_PREFIX, PREFIX, FragmentWork, file_name
from penstock.jobs.engine.guard import Stopped, guard
from penstock.jobs.functions.errors import may_skip
from penstock.jobs.functions.fragment import FragmentRun
from penstock.jobs.functions.task import FunctionOptions, FunctionTask
from penstock.jobs.kept.fragments import FragmentFinder, wanted_rows
from penstock.jobs.kept.store import Store
from penstock.jobs.spark.tasks import Kernel, is_second_try
from penstock.lance.commit.replacement import ColumnFile, Computation
from penstock.lance.diff.masks import pack, unpack
from penstock.lance.session.remote import Location, open_planned
from penstock.lance.storage import files
from penstock.lance.storage.side_files import FOLDER
from penstock.lance.write.column_files import (
    FilledColumn,
    ValuePiece,
    compute_pieces,
    get_fragment,
    get_targets,
    write_column_file,
)
from penstock.model.functions import Function


class FillOrder(Struct, frozen=True):
    """Everything that workers need; sent in the kernel's closure."""

    job: str
    attempt: int
    location: Location
    version: int
    what: Computation
    tasks: tuple[tuple[FragmentWork, ...], ...]
    # None: the column is computed by its SQL expression.
    function: Function | None = None
    columns: tuple[str, ...] = ()
    knobs: FunctionOptions = FunctionOptions()
    # Where finished work lies, if not in the job's own folder, and finished files whose values may
    # be wanted elsewhere now; perhaps only what this job did itself is used.
    kept: str = ""
    transaction: str = ""
    files: tuple[Checkpoint, ...] = ()
    own_only: bool = False

    @property
    def folder(self) -> str:
        return self.kept or self.job

    @property
    def origin(self) -> ValueOrigin:
        inputs = () if self.function is None else self.function.inputs
        return ValueOrigin(self.job, self.attempt, self.version, self.transaction, inputs)


def fill_kernel(order: FillOrder) -> Kernel:
    """Runs in each worker."""
    return partial(_fill, json.encode(order))


def _fill(encoded: bytes, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=FillOrder)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            task = order.tasks[number]
            yield from guard(partial(fill_fragments, order, task, is_second=is_second_try()))


def fill_fragments(
    order: FillOrder, work: tuple[FragmentWork, ...], *, is_second: bool = False
) -> None:
    """Write the files of these fragments."""
    filler = _Filler(order, is_second=is_second)
    finished = _read_finished(order) if is_second else []
    try:
        for each in work:
            if not any(note.serves(each) for note in finished):
                filler.fill(each)
    finally:
        filler.close()


def _read_finished(order: FillOrder) -> list[Checkpoint]:
    """What tries of this attempt finished before one of them died; the driver has heard of it."""
    place = order.location.place()
    return [
        note
        for note in read_new_notes(place, order.folder, set()).checkpoints
        if note.is_of(order.job, order.attempt) and has_file(place, order.location, note)
    ]


def carry_fragments(order: FillOrder, work: tuple[FragmentWork, ...]) -> list[Checkpoint]:
    """Write files of these fragments with what is kept of their rows; the rest is left."""
    filler = _Filler(order)
    return [note for each in work if (note := filler.carry(each)) is not None]


class _Opened(NamedTuple):
    """A fragment that gets a file, and the columns that are in it."""

    work: FragmentWork
    dataset: LanceDataset
    fragment: LanceFragment
    targets: tuple[FilledColumn, ...]

    @property
    def kinds(self) -> pa.Schema:
        return pa.schema([pa.field(target.name, target.kind) for target in self.targets])

    @property
    def is_readable(self) -> bool:
        """Whether a file of the columns can be read by itself: not where it has blobs."""
        return all(
            each.stored.type == each.kind and not each.stored.metadata for each in self.targets
        )

    @property
    def left(self) -> Any:
        """The rows that are not fresh even afterwards; None: there are none."""
        work = self.work
        return None if work.left is None else unpack(work.left, work.physical_rows)


class _Filler:
    """One try of a task."""

    def __init__(self, order: FillOrder, *, is_second: bool = False) -> None:
        self._order = order
        self._place = order.location.place()
        self._is_second = is_second
        self._task: FunctionTask | None = None
        self._finder: FragmentFinder | None = None
        # Where files are until they are whole; in an object store none is seen before.
        self._folder = f"{FOLDER}/{order.job}/unfinished" if self._place.is_local else ""

    def fill(self, work: FragmentWork) -> None:
        order = self._order
        if is_stopped(self._place, order.job, order.attempt):
            raise Stopped
        started, opened = time.perf_counter(), self._open(work)
        if order.function is None:
            with _naming(order.what, work):
                self._by_expression(opened, started)
        else:
            self._by_function(opened, order.function, started)

    def carry(self, work: FragmentWork) -> Checkpoint | None:
        """A file with what is kept already; None when nothing is. No function is called."""
        started, opened = time.perf_counter(), self._open(work)
        kept = self._get_finder(opened).find(opened.dataset, opened.fragment, work)
        if kept is None:
            return None
        left = wanted_rows(opened.dataset, opened.fragment, work) & ~kept.mask
        if opened.left is not None:
            left |= opened.left
        made = structs.replace(
            work,
            rows=int(kept.mask.sum()),
            need=pack(kept.mask),
            left=pack(left) if left.any() else None,
        )

        def metadata() -> dict[str, str]:
            return describe_left(left, codes_of(work), kept.failed)

        pieces = kept.merge(kept.mask, iter(()))
        file = self._write(opened, pieces, partial=True, keep=True, metadata=metadata)
        if len(kept.failed) == kept.rows:
            # Failed rows are in the next plan again: to carry them alone gets the job nowhere.
            return None
        file = self._move_in(file, is_complete=not left.any() and not kept.failed)
        return self._note(made, file, started, kept.rows, failed=len(kept.failed))

    def close(self) -> None:
        if self._task is not None:
            self._task.close()

    def _open(self, work: FragmentWork) -> _Opened:
        order = self._order
        dataset = open_planned(order.location, order.version, order.job)
        targets = get_targets(dataset, order.columns or (order.what.column,))
        return _Opened(work, dataset, get_fragment(dataset, work.id), targets)

    def _by_expression(self, opened: _Opened, started: float) -> None:
        what, computed = self._order.what, 0

        def pieces() -> Iterator[ValuePiece]:
            nonlocal computed
            for piece in compute_pieces(opened.dataset, opened.fragment, opened.targets[0], what):
                computed += piece.values.num_rows
                yield piece

        file = self._write(opened, pieces(), keep=what.where is not None)
        self._note(opened.work, self._move_in(file), started, computed, calls=computed)

    def _by_function(self, opened: _Opened, function: Function, started: float) -> None:
        work, left = opened.work, opened.left
        task = self._task = self._task or self._make_task(opened, function)
        run = FragmentRun(
            task,
            opened.dataset,
            opened.fragment,
            work,
            self._get_finder(opened),
            keep_all=not opened.is_readable,
        )
        is_partial = left is not None or may_skip(function.on_error)

        def metadata() -> dict[str, str]:
            return describe_left(left, codes_of(work), run.failed) if is_partial else {}

        file = self._write(
            opened, run.pieces(), partial=is_partial, keep=work.need is not None, metadata=metadata
        )
        file = self._move_in(file, is_complete=is_partial and left is None and not run.failed)
        self._note(
            work,
            file,
            started,
            run.computed,
            calls=run.calls,
            failed=len(run.failed),
            rows_null=run.rows_null,
        )
        if opened.is_readable:
            run.remove_parts()

    def _write(
        self,
        opened: _Opened,
        pieces: Iterator[ValuePiece],
        *,
        partial: bool = False,
        keep: bool = False,
        metadata: Callable[[], Mapping[str, str]] = dict,
    ) -> ColumnFile:
        order, unique = self._order, uuid.uuid4().hex[:8]
        return write_column_file(
            opened.dataset,
            order.location,
            opened.fragment,
            opened.targets,
            pieces,
            file_name(opened.work.key, order.job, order.attempt, unique, partial=partial),
            keep=keep,
            metadata=metadata,
            folder=self._folder,
        )

    def _move_in(self, file: ColumnFile, *, is_complete: bool = False) -> ColumnFile:
        """Put a file that is whole among the table's; complete: no row failed after all.

        Elsewhere than on a disk a new name would be a copy.
        """
        if not self._place.is_local:
            return file
        name = PREFIX + file.path.removeprefix(PARTIAL_PREFIX) if is_complete else file.path
        to = f"{self._order.location.data_folder}/{name}"
        files.move(self._place, f"{self._folder}/{file.path}", to)
        return structs.replace(file, path=name)

    def _note(
        self,
        work: FragmentWork,
        file: ColumnFile,
        started: float,
        computed: int,
        *,
        calls: int = 0,
        failed: int = 0,
        rows_null: int = 0,
    ) -> Checkpoint:
        """Tell of a finished file, of the rows with new values in it, those that the function was
        given, those that it failed on, and those that are null because an input is."""
        order = self._order
        seconds = round(time.perf_counter() - started, 4)
        origin = None if order.function is None else order.origin
        note = Checkpoint(
            *(work, file, computed, order.attempt, seconds, calls, failed, rows_null, origin)
        )
        write_checkpoint(self._place, order.folder, note)
        return note

    def _get_finder(self, opened: _Opened) -> FragmentFinder:
        order = self._order
        assert order.function is not None
        self._finder = self._finder or FragmentFinder(
            Store(self._place, order.folder, order.job),
            order.location,
            opened.kinds,
            order.function,
            order.files if opened.is_readable else (),
            own_only=order.own_only,
        )
        return self._finder

    def _make_task(self, opened: _Opened, function: Function) -> FunctionTask:
        order = self._order
        return FunctionTask(
            self._place,
            order.job,
            order.attempt,
            function,
            opened.kinds,
            order.knobs,
            isolated=self._is_second,
            kept=order.folder,
        )


@contextlib.contextmanager
def _naming(what: Computation, work: FragmentWork) -> Iterator[None]:
    """Say which column and fragment an error of the values is about."""
    try:
        yield
    except PASSING:
        raise
    except PenstockError as error:
        raise InvalidRequest(
            f"column {what.column} cannot be computed in fragment {work.id}: {error.message}",
            detail=f"check the expression {what.expression}",
        ) from error
