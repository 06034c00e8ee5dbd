"""Appends: rows that wait for the same branch are written and committed together.

All requests that wait when a worker starts share its commit: small bodies of one schema share a
file, long ones bring the fragments they were written into. So sixteen writers cost a few commits
and never conflict with each other.
"""

import asyncio
from dataclasses import dataclass, replace

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.errors import ConcurrentCommit, PenstockError
from penstock.lance.doors import lance
from penstock.lance.errors import translated
from penstock.lance.write import row_changes, uploads
from penstock.lance.write.uploads import (
    RowStream,
    WrittenFragments,
    check_rows,
    check_schema,
    field_ids,
)
from penstock.model.origins import Origin
from penstock.model.tables import MAIN, Table

# Each one keeps a dataset open.
MAX_APPENDERS = 256


@dataclass(frozen=True, slots=True)
class AppendResult:
    """How many rows went in, and the version that contains them.

    When they replaced others, also how many those were.
    """

    rows: int
    version: int
    transaction_id: str
    replaced: int = 0


@dataclass(slots=True)
class _PendingRows:
    """Rows of one request: as received, or already written."""

    body: bytes | WrittenFragments
    origin: Origin
    done: "asyncio.Future[AppendResult]"


@dataclass(slots=True)
class _ReadyRows:
    """Rows that fit the table; `stream` still has to be written."""

    waiting: _PendingRows
    count: int
    stream: RowStream | None = None
    written: WrittenFragments | None = None


class Appender:
    """The commits of one branch of one table, one after the other."""

    def __init__(self, catalog: Catalog, table: Table, branch: str) -> None:
        self._catalog = catalog
        self.table = table
        self._branch = branch
        self._bridge = datasets.make_bridge(catalog, table)
        self._queue: list[_PendingRows] = []
        self._task: asyncio.Task[None] | None = None
        # The version committed last, whose handle commits through that bridge.
        self._base: lance.LanceDataset | None = None

    @property
    def is_idle(self) -> bool:
        return not self._queue and (self._task is None or self._task.done())

    async def append(self, body: bytes | WrittenFragments, origin: Origin) -> AppendResult:
        """Commit rows, together with those of other waiting requests."""
        done: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
        self._queue.append(_PendingRows(body, origin, done))
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
                # One of them may be at fault: commit each on its own.
                for one in batch:
                    await self._commit_alone(one)
            except Exception as error:
                for one in batch:
                    _fail(one, error)

    async def _commit_alone(self, one: _PendingRows) -> None:
        try:
            await self._commit([one])
        except Exception as error:
            _fail(one, error)

    async def _commit(self, batch: list[_PendingRows]) -> None:
        waiting = [one for one in batch if not one.done.done()]
        if not waiting:
            return
        newest = await datasets.find_newest(self._catalog, self.table, self._branch)
        run = self._catalog.workers.run_admitted
        try:
            outcomes = await run(self._write_and_commit, waiting, newest)
        except Exception:
            self._base = None
            raise
        for one, outcome in outcomes:
            if isinstance(outcome, AppendResult):
                if not one.done.done():
                    one.done.set_result(outcome)
            else:
                _fail(one, outcome)

    def _write_and_commit(
        self, batch: list[_PendingRows], newest: int | None
    ) -> list[tuple[_PendingRows, AppendResult | PenstockError]]:
        """Write what is not written yet and commit everything that fits; blocks."""
        bridge = self._bridge
        with translated(bridge):
            outcomes: list[tuple[_PendingRows, AppendResult | PenstockError]] = []
            # Others may have committed since, which makes the handle useless. Compare with None:
            # the truth value of a dataset counts its rows.
            base = self._base
            dataset = base if base is not None and base.version == newest else None
            if newest is None and self._branch == MAIN:
                first, *batch = batch
                started = self._start(first)
                if started is None:
                    batch = [first, *batch]
                else:
                    dataset, done = started
                    outcomes.append((first, done))
            if batch:
                if dataset is None:
                    dataset = self._open()
                ready, refused = _sort(dataset, batch, self._catalog.max_batch_bytes)
                outcomes += refused
                if ready:
                    bridge.commit_for(_join([each.waiting.origin for each in ready]))
                    dataset = self._append(dataset, ready)
                    for each in ready:
                        done = AppendResult(each.count, dataset.version, bridge.transaction_id)
                        outcomes.append((each.waiting, done))
            self._base = dataset
            return outcomes

    def _append(
        self, dataset: "lance.LanceDataset", ready: list[_ReadyRows]
    ) -> "lance.LanceDataset":
        """Commit all rows at once; bodies of one schema share a file."""
        written = [each.written for each in ready if each.written is not None]
        groups = _group([each.stream for each in ready if each.stream is not None])
        if not written and len(groups) == 1:
            # pylance does both in one call, which is faster.
            return uploads.append_together(dataset, groups[0])
        written += [uploads.write_together(dataset, group) for group in groups]
        fragments = [fragment for each in written for fragment in each.fragments]
        return row_changes.commit_append(
            dataset, fragments, self._bridge, list(self.table.identifier)
        )

    def _start(self, first: _PendingRows) -> "tuple[lance.LanceDataset, AppendResult] | None":
        """Make the first version of a table; None when another writer was first."""
        catalog, bridge = self._catalog, self._bridge
        place = catalog.lake.place(self.table.location)
        if isinstance(first.body, bytes):
            stream = RowStream(first.body, catalog.max_batch_bytes)
            # Into a folder aside, because another writer's rows may become the first version
            # meanwhile.
            first.body = uploads.write_aside(place, MAIN, catalog.datasets, stream, None)
        id, options = list(self.table.identifier), catalog.lake.options
        bridge.commit_for(first.origin)
        try:
            dataset = row_changes.commit_overwrite(place.location, first.body, bridge, id, options)
        except ConcurrentCommit:
            return None
        done = AppendResult(first.body.rows, dataset.version, bridge.transaction_id)
        # Reopened when needed: this handle has a cache of its own.
        return self._open(), done

    def _open(self) -> "lance.LanceDataset":
        place = self._catalog.lake.place(self.table.location)
        id = list(self.table.identifier)
        return self._catalog.datasets.open_to_commit(place, self._branch, self._bridge, id)


def get_appender(catalog: Catalog, table: Table, branch: str) -> Appender:
    """The appender of a branch, created on first use."""
    key = (table.id, branch)
    found = catalog.appenders.pop(key, None)
    # An appender from before a rename would commit under the old name.
    if not isinstance(found, Appender) or found.table != table:
        found = Appender(catalog, table, branch)
    # Moved to the end, so that the first one is the least recently used.
    catalog.appenders[key] = found
    if len(catalog.appenders) > MAX_APPENDERS:
        oldest = next(iter(catalog.appenders))
        if getattr(catalog.appenders[oldest], "is_idle", False):
            del catalog.appenders[oldest]
    return found


def _sort(
    dataset: "lance.LanceDataset", batch: list[_PendingRows], max_bytes: int
) -> tuple[list[_ReadyRows], list[tuple[_PendingRows, AppendResult | PenstockError]]]:
    """Separate rows that fit the table from those that don't."""
    ready: list[_ReadyRows] = []
    refused: list[tuple[_PendingRows, AppendResult | PenstockError]] = []
    for one in batch:
        try:
            if isinstance(one.body, bytes):
                stream = RowStream(one.body, max_bytes)
                check_rows(dataset.schema, stream)
                ready.append(_ReadyRows(one, stream.count_rows(), stream=stream))
            else:
                _check_fields(dataset, one.body)
                ready.append(_ReadyRows(one, one.body.rows, written=one.body))
        except PenstockError as error:
            refused.append((one, error))
    return ready, refused


def _group(streams: list[RowStream]) -> list[list[RowStream]]:
    """Group streams by schema."""
    groups: list[list[RowStream]] = []
    for stream in streams:
        alike = (group for group in groups if group[0].schema == stream.schema)
        if (group := next(alike, None)) is not None:
            group.append(stream)
        else:
            groups.append([stream])
    return groups


def _check_fields(dataset: "lance.LanceDataset", written: WrittenFragments) -> None:
    """Refuse fragments that were written for columns that have changed since."""
    check_schema(dataset.schema, written.schema)
    fields = field_ids(dataset)
    fresh = tuple((name, number) for number, (name, _) in enumerate(fields))
    if fields != (fresh if written.fields is None else written.fields):
        raise ConcurrentCommit(
            "the table's columns were changed while the rows were on their way",
            detail="send the rows again",
        )


def _join(origins: list[Origin]) -> Origin:
    """The origin of a shared commit: the first request's trace, and everyone's keys."""
    keys = tuple(key for each in origins for key in each.keys)
    return replace(origins[0], keys=keys)


def _fail(one: _PendingRows, error: Exception) -> None:
    if not one.done.done():
        one.done.set_exception(error)
