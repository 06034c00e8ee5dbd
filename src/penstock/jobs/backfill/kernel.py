"""Fill columns on Spark: each task goes through its fragments and writes a file for each.

The functions below `fill_kernel` run in Python workers, which need penstock installed.
"""

import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from msgspec import Struct, json, structs

from penstock.errors import InvalidRequest, PenstockError
from penstock.jobs.backfill.plan import PARTIAL_PREFIX, PREFIX, FragmentWork, file_name
from penstock.jobs.backfill.plan_rows import codes_of
from penstock.jobs.backfill.watermarks import describe_left
from penstock.jobs.engine.attempt import PASSING
from penstock.jobs.engine.checkpoints import (
    Checkpoint,
    has_file,
    is_stopped,
    read_news,
    write_checkpoint,
)
from penstock.jobs.engine.guard import Stopped, guard
from penstock.jobs.functions.errors import may_skip
from penstock.jobs.functions.fragment import FragmentRun
from penstock.jobs.functions.task import FunctionTask, Knobs
from penstock.jobs.kept.carrier import Carrier, wanted_rows
from penstock.jobs.kept.parts import remove_parts
from penstock.jobs.kept.work import Origin
from penstock.jobs.spark.tasks import Kernel, is_second_try
from penstock.lance.commit.replacement import ColumnFile, Computation
from penstock.lance.diff.masks import pack, unpack
from penstock.lance.session.remote import Location, open_planned
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER
from penstock.lance.write.column_files import (
    Piece,
    Target,
    compute_pieces,
    get_fragment,
    get_targets,
    write_column_file,
)
from penstock.model.functions import Function

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment


class FillOrder(Struct, frozen=True):
    """All that workers need to know; it travels to them in the function itself."""

    job: str
    attempt: int
    uri: str
    branch: str
    options: Mapping[str, str]
    version: int
    what: Computation
    tasks: tuple[tuple[FragmentWork, ...], ...]
    # None: the column is computed by its SQL expression.
    function: Function | None = None
    columns: tuple[str, ...] = ()
    threads: int = 1
    batch_rows: int | None = None
    min_rows: int | None = None
    max_rows: int | None = None
    flush_seconds: float = 5.0
    # Where finished work lies, if not in the job's own folder, and what is to be found there of
    # fragments that are not as they were; perhaps only what this job did itself.
    kept: str = ""
    transaction: str = ""
    files: tuple[Checkpoint, ...] = ()
    parts: tuple[str, ...] = ()
    own_only: bool = False

    @property
    def origin(self) -> Origin:
        return Origin(self.job, self.attempt, self.version, self.transaction)


def fill_kernel(order: FillOrder) -> Kernel:
    """What Spark runs in each worker."""
    return partial(_fill, json.encode(order))


def _fill(encoded: bytes, numbers: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    order = json.decode(encoded, type=FillOrder)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            task = order.tasks[number]
            yield from guard(partial(fill_fragments, order, task, is_second=is_second_try()))


def fill_fragments(
    order: FillOrder, work: tuple[FragmentWork, ...], *, is_second: bool = False
) -> None:
    """Write the files of these fragments."""
    location = Location(order.uri, order.branch, order.options)
    place = location.place()
    filler = _Filler(order, location, place, is_second)
    finished = _read_finished(order, location, place) if is_second else []
    try:
        for each in work:
            if any(note.serves(each) for note in finished):
                continue
            filler.fill(each)
    finally:
        filler.close()


def _read_finished(order: FillOrder, location: Location, place: Place) -> list[Checkpoint]:
    """What tries of this attempt finished before one of them died; the driver has heard of it."""
    return [
        note
        for note in read_news(place, order.kept or order.job, set()).checkpoints
        if note.is_of(order.job, order.attempt) and has_file(place, location, note)
    ]


def carry_fragments(order: FillOrder, work: tuple[FragmentWork, ...]) -> list[Checkpoint]:
    """Write files of these fragments with what is known of their rows; the rest is left."""
    location = Location(order.uri, order.branch, order.options)
    filler = _Filler(order, location, location.place(), is_second=False)
    return [note for each in work if (note := filler.carry(each)) is not None]


class _Done(NamedTuple):
    """A file, the rows with new values in it, those given to the function, and those it failed."""

    file: ColumnFile
    computed: int
    calls: int
    failed: int


class _Filler:
    """One try of a task."""

    def __init__(self, order: FillOrder, location: Location, place: Place, is_second: bool) -> None:
        self._order = order
        self._location = location
        self._place = place
        self._is_second = is_second
        self._task: FunctionTask | None = None
        self._carrier: Carrier | None = None
        # Where files are until they are whole; in an object store none is seen before.
        self._folder = f"{FOLDER}/{order.job}/unfinished" if place.is_local else ""

    def fill(self, work: FragmentWork) -> None:
        order = self._order
        if is_stopped(self._place, order.job, order.attempt):
            raise Stopped
        started = time.perf_counter()
        dataset, fragment, targets = self._open(work)
        if order.function is None:
            with _naming(order.what, work):
                done = self._by_expression(dataset, fragment, targets, work)
        else:
            done = self._by_function(dataset, fragment, targets, work)
        self._note(work, done, started)
        is_whole = work.need is None and work.dead is None
        if order.function is not None and is_whole and _can_read_files(targets):
            # All that they have is in the file now. Where rows are gone from the fragment, others
            # may look for them: they may have moved.
            remove_parts(self._place, order.kept or order.job, work.id, work.key)

    def carry(self, work: FragmentWork) -> Checkpoint | None:
        """A file with what is known already; None when nothing is. No function is called."""
        started = time.perf_counter()
        dataset, fragment, targets = self._open(work)
        known = self._get_carrier(targets).find(dataset, fragment, work)
        if known is None or not known.mask.any():
            return None
        left = wanted_rows(dataset, fragment, work) & ~known.mask
        if (before := _left(work)) is not None:
            left |= before
        made = structs.replace(
            work,
            rows=int(known.mask.sum()),
            need=pack(known.mask),
            left=pack(left) if left.any() else None,
        )

        def metadata() -> dict[str, str]:
            return describe_left(left, codes_of(work), known.failed)

        file = write_column_file(
            dataset,
            self._location,
            fragment,
            targets,
            known.merge(known.mask, iter(())),
            self._name(work, partial=True),
            keep=True,
            metadata=metadata,
            folder=self._folder,
        )
        file = self._move_in(file, is_complete=not left.any() and not known.failed)
        return self._note(made, _Done(file, known.rows, 0, len(known.failed)), started)

    def _open(self, work: FragmentWork) -> "tuple[LanceDataset, LanceFragment, tuple[Target, ...]]":
        order = self._order
        dataset = open_planned(self._location, order.version, order.job)
        targets = get_targets(dataset, order.columns or (order.what.column,))
        return dataset, get_fragment(dataset, work.id), targets

    def _note(self, work: FragmentWork, done: "_Done", started: float) -> Checkpoint:
        order = self._order
        seconds = round(time.perf_counter() - started, 4)
        note = Checkpoint(
            work,
            done.file,
            done.computed,
            order.attempt,
            seconds,
            done.calls,
            done.failed,
            None if order.function is None else order.origin,
        )
        write_checkpoint(self._place, order.kept or order.job, note)
        return note

    def close(self) -> None:
        if self._task is not None:
            self._task.close()

    def _by_expression(
        self,
        dataset: "LanceDataset",
        fragment: "LanceFragment",
        targets: tuple[Target, ...],
        work: FragmentWork,
    ) -> "_Done":
        what = self._order.what
        computed = 0

        def pieces() -> Iterator[Piece]:
            nonlocal computed
            for piece in compute_pieces(dataset, fragment, targets[0], what):
                computed += piece.values.num_rows
                yield piece

        file = write_column_file(
            dataset,
            self._location,
            fragment,
            targets,
            pieces(),
            self._name(work),
            keep=what.where is not None,
            folder=self._folder,
        )
        return _Done(self._move_in(file), computed, computed, 0)

    def _by_function(
        self,
        dataset: "LanceDataset",
        fragment: "LanceFragment",
        targets: tuple[Target, ...],
        work: FragmentWork,
    ) -> "_Done":
        task = self._task = self._task or self._make_task(targets)
        carrier = self._get_carrier(targets)
        can_read = _can_read_files(targets)
        run = FragmentRun(task, dataset, fragment, work, carrier, can_read_file=can_read)
        left = _left(work)
        is_partial = left is not None or may_skip(task.function.on_error)

        def metadata() -> dict[str, str]:
            if not is_partial:
                return {}
            return describe_left(left, codes_of(work), run.failed)

        file = write_column_file(
            dataset,
            self._location,
            fragment,
            targets,
            run.pieces(),
            self._name(work, partial=is_partial),
            keep=work.need is not None,
            metadata=metadata,
            folder=self._folder,
        )
        file = self._move_in(file, is_complete=is_partial and left is None and not run.failed)
        return _Done(file, run.computed, run.calls, len(run.failed))

    def _get_carrier(self, targets: tuple[Target, ...]) -> Carrier:
        order = self._order
        assert order.function is not None
        self._carrier = self._carrier or Carrier(
            order,
            self._location,
            self._place,
            _kinds(targets),
            order.function.inputs,
            can_read_files=_can_read_files(targets),
        )
        return self._carrier

    def _make_task(self, targets: tuple[Target, ...]) -> FunctionTask:
        order = self._order
        assert order.function is not None
        return FunctionTask(
            self._place,
            order.job,
            order.attempt,
            order.function,
            _kinds(targets),
            Knobs(
                order.threads, order.batch_rows, order.min_rows, order.max_rows, order.flush_seconds
            ),
            # What killed the process before is then found, row by row.
            isolated=self._is_second or order.attempt > 1,
            kept=order.kept,
            origin=json.encode(order.origin),
        )

    def _move_in(self, file: ColumnFile, *, is_complete: bool = False) -> ColumnFile:
        """Put a file that is whole among the table's; complete: no row failed after all.

        Elsewhere than on a disk a new name would be a copy.
        """
        if not self._place.is_local:
            return file
        name = PREFIX + file.path.removeprefix(PARTIAL_PREFIX) if is_complete else file.path
        to = f"{self._location.data_folder}/{name}"
        files.move(self._place, f"{self._folder}/{file.path}", to)
        return structs.replace(file, path=name)

    def _name(self, work: FragmentWork, *, partial: bool = False) -> str:
        unique = uuid.uuid4().hex[:8]
        order = self._order
        return file_name(work.key, order.job, order.attempt, unique, partial=partial)


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


def _kinds(targets: tuple[Target, ...]) -> "pa.Schema":
    return pa.schema([pa.field(target.name, target.kind) for target in targets])


def _can_read_files(targets: tuple[Target, ...]) -> bool:
    """Whether a file of the columns can be read by itself: not where it has blobs."""
    return all(each.stored.type == each.kind and not each.stored.metadata for each in targets)


def _left(work: FragmentWork) -> Any:
    return unpack(work.left, work.physical_rows) if work.left is not None else None
