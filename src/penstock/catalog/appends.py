"""Appends: rows that wait for the same branch are written and committed together.

Whoever waits when a worker begins is part of its commit: small bodies of one schema share a file,
long ones bring the fragments that they were written into. So sixteen writers cost a few commits,
and none of them meets a conflict with the others.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.catalog import data
from penstock.catalog.catalog import Catalog
from penstock.datasets import rows, uploads
from penstock.datasets.failures import translated
from penstock.datasets.uploads import RowStream, Written, check_rows, check_schema, field_ids
from penstock.errors import ConcurrentCommit, PenstockError
from penstock.model.origins import Origin
from penstock.model.tables import MAIN, Table

if TYPE_CHECKING:
    from lance import LanceDataset

    from penstock.datasets.bridge import Bridge


# Each keeps a dataset open.
MAX_APPENDERS = 256


@dataclass(frozen=True, slots=True)
class Appended:
    """How many rows went in, and the version that contains them."""

    rows: int
    version: int
    transaction_id: str


@dataclass(slots=True)
class _Waiting:
    """Rows of one request: as they came, or written already."""

    body: bytes | Written
    origin: Origin
    done: "asyncio.Future[Appended]"


@dataclass(slots=True)
class _Ready:
    """Rows that fit the table; `stream` is still to be written."""

    waiting: _Waiting
    count: int
    stream: RowStream | None = None
    written: Written | None = None


class Appender:
    """The commits of one branch of one table, one after the other."""

    def __init__(self, catalog: Catalog, table: Table, branch: str) -> None:
        self._catalog = catalog
        self._table = table
        self._branch = branch
        self._queue: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None
        self._base: LanceDataset | None = None

    @property
    def is_idle(self) -> bool:
        return not self._queue and (self._task is None or self._task.done())

    async def append(self, body: bytes | Written, origin: Origin) -> Appended:
        """Commit rows, together with those that wait as well."""
        done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(body, origin, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await asyncio.shield(done)

    async def _drain(self) -> None:
        while self._queue:
            batch, self._queue = self._queue, []
            try:
                await self._commit(batch)
            except PenstockError as error:
                if len(batch) == 1:
                    _fail(batch[0], error)
                    continue
                # One of them may be at fault: let each stand for itself.
                for one in batch:
                    await self._commit_alone(one)
            except Exception as error:
                for one in batch:
                    _fail(one, error)

    async def _commit_alone(self, one: _Waiting) -> None:
        try:
            await self._commit([one])
        except Exception as error:
            _fail(one, error)

    async def _commit(self, batch: list[_Waiting]) -> None:
        waiting = [one for one in batch if not one.done.done()]
        if not waiting:
            return
        newest = await data.find_newest(self._catalog, self._table, self._branch)
        bridge = data.make_bridge(self._catalog, self._table)
        run = self._catalog.workers.run_admitted
        try:
            outcomes = await run(self._write_and_commit, waiting, newest, bridge)
        except Exception:
            self._base = None
            raise
        for one, outcome in outcomes:
            if isinstance(outcome, Appended):
                if not one.done.done():
                    one.done.set_result(outcome)
            else:
                _fail(one, outcome)

    def _write_and_commit(
        self, batch: list[_Waiting], newest: int | None, bridge: "Bridge"
    ) -> list[tuple[_Waiting, Appended | PenstockError]]:
        """Write what is not written yet and commit all that fits; blocks."""
        with translated(bridge):
            outcomes: list[tuple[_Waiting, Appended | PenstockError]] = []
            # Others may have committed since; then the handle is of no use any more. Compared with
            # None, because the truth of a dataset is a count of its rows.
            base = self._base
            dataset = base if base is not None and base.version == newest else None
            if newest is None and self._branch == MAIN:
                first, *batch = batch
                started = self._start(first, bridge)
                if started is None:
                    batch = [first, *batch]
                else:
                    dataset, done = started
                    outcomes.append((first, done))
            if batch:
                if dataset is None:
                    dataset = self._open(bridge)
                ready, refused = _sort(dataset, batch)
                outcomes += refused
                if ready:
                    bridge.commit_for(_join([each.waiting.origin for each in ready]))
                    fragments = _write(dataset, ready)
                    id = list(self._table.identifier)
                    dataset = rows.commit_append(dataset, fragments, bridge, id)
                    for each in ready:
                        done = Appended(each.count, dataset.version, bridge.transaction_id)
                        outcomes.append((each.waiting, done))
            self._base = dataset
            return outcomes

    def _start(self, first: _Waiting, bridge: "Bridge") -> "tuple[LanceDataset, Appended] | None":
        """Make the first version of a table; None when somebody else was first."""
        catalog = self._catalog
        place = catalog.lake.place(self._table.location)
        if isinstance(first.body, bytes):
            stream = RowStream(first.body)
            # Aside, because somebody else's rows may become the first version meanwhile.
            first.body = uploads.write_aside(place, MAIN, catalog.datasets, stream, None)
        id, options = list(self._table.identifier), catalog.lake.options
        bridge.commit_for(first.origin)
        try:
            dataset = rows.commit_overwrite(place.location, first.body, bridge, id, options)
        except ConcurrentCommit:
            return None
        done = Appended(first.body.rows, dataset.version, bridge.transaction_id)
        # Opened again when it is needed: this handle has a cache of its own.
        return self._open(bridge), done

    def _open(self, bridge: "Bridge") -> "LanceDataset":
        place = self._catalog.lake.place(self._table.location)
        id = list(self._table.identifier)
        return self._catalog.datasets.open_to_commit(place, self._branch, bridge, id)


def get_appender(catalog: Catalog, table: Table, branch: str) -> Appender:
    """The one appender of a branch; made when it is first needed."""
    key = (table.id, branch)
    found = catalog.appenders.pop(key, None)
    if not isinstance(found, Appender):
        found = Appender(catalog, table, branch)
    # Put back as the last one, so that the first is the one that was not used for longest.
    catalog.appenders[key] = found
    if len(catalog.appenders) > MAX_APPENDERS:
        oldest = next(iter(catalog.appenders))
        if getattr(catalog.appenders[oldest], "is_idle", False):
            del catalog.appenders[oldest]
    return found


def _sort(
    dataset: "LanceDataset", batch: list[_Waiting]
) -> tuple[list[_Ready], list[tuple[_Waiting, Appended | PenstockError]]]:
    """Tell rows that fit the table from those that don't."""
    ready: list[_Ready] = []
    refused: list[tuple[_Waiting, Appended | PenstockError]] = []
    for one in batch:
        try:
            if isinstance(one.body, bytes):
                stream = RowStream(one.body)
                check_rows(dataset.schema, stream)
                ready.append(_Ready(one, stream.count_rows(), stream=stream))
            else:
                _check_fields(dataset, one.body)
                ready.append(_Ready(one, one.body.rows, written=one.body))
        except PenstockError as error:
            refused.append((one, error))
    return ready, refused


def _write(dataset: "LanceDataset", ready: list[_Ready]) -> list[uploads.Fragment]:
    """The fragments of all rows; bodies of one schema share a file."""
    groups: list[list[RowStream]] = []
    fragments: list[uploads.Fragment] = []
    for each in ready:
        if each.written is not None:
            fragments += each.written.fragments
        elif each.stream is not None:
            alike = (group for group in groups if group[0].schema == each.stream.schema)
            if (group := next(alike, None)) is not None:
                group.append(each.stream)
            else:
                groups.append([each.stream])
    for group in groups:
        fragments += uploads.write_together(dataset, group).fragments
    return fragments


def _check_fields(dataset: "LanceDataset", written: Written) -> None:
    """Refuse fragments that were written for columns that are not these any more."""
    check_schema(dataset.schema, written.schema)
    fields = field_ids(dataset)
    fresh = tuple((name, number) for number, (name, _) in enumerate(fields))
    if fields != (fresh if written.fields is None else written.fields):
        raise ConcurrentCommit(
            "the table's columns were changed while the rows were on their way",
            detail="send the rows again",
        )


def _join(origins: list[Origin]) -> Origin:
    """Where a shared commit comes from: the first one's trace, everybody's keys."""
    keys = tuple(key for each in origins for key in each.keys)
    return replace(origins[0], keys=keys)


def _fail(one: _Waiting, error: Exception) -> None:
    if not one.done.done():
        one.done.set_exception(error)
