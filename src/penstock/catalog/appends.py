"""Appends: rows that wait for the same table go into it with one commit.

Each writer has written its own fragments; whoever waits when a commit begins is part of it, so
sixteen writers cost a few commits, and none of them meets a conflict with the others.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.catalog import data
from penstock.catalog.catalog import Catalog
from penstock.datasets import rows
from penstock.datasets.uploads import Written, check_schema, field_ids
from penstock.errors import ConcurrentCommit, PenstockError
from penstock.model.tables import MAIN, Table

if TYPE_CHECKING:
    from lance import LanceDataset


@dataclass(frozen=True, slots=True)
class Appended:
    version: int
    transaction_id: str


@dataclass(slots=True)
class _Waiting:
    written: Written
    trace_id: str
    done: "asyncio.Future[Appended]"


class Appender:
    """The commits of one branch of one table, one after the other."""

    def __init__(self, catalog: Catalog, table: Table, branch: str) -> None:
        self._catalog = catalog
        self._table = table
        self._branch = branch
        self._queue: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None
        self._base: LanceDataset | None = None

    async def append(self, written: Written, trace_id: str) -> Appended:
        """Commit written rows, together with those that wait as well."""
        done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(written, trace_id, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await asyncio.shield(done)

    async def _drain(self) -> None:
        while self._queue:
            batch, self._queue = self._queue, []
            try:
                done = await self._commit(batch)
            except PenstockError as error:
                if len(batch) == 1:
                    _fail(batch[0], error)
                    continue
                # One of them may be at fault: let each stand for itself.
                for one in batch:
                    await self._commit_alone(one)
                continue
            except Exception as error:
                for one in batch:
                    _fail(one, error)
                continue
            for one in batch:
                if not one.done.cancelled():
                    one.done.set_result(done)

    async def _commit_alone(self, one: _Waiting) -> None:
        try:
            done = await self._commit([one])
        except Exception as error:
            _fail(one, error)
            return
        if not one.done.cancelled():
            one.done.set_result(done)

    async def _commit(self, batch: list[_Waiting]) -> Appended:
        newest = await data.find_newest(self._catalog, self._table, self._branch)
        bridge = data.make_bridge(self._catalog, self._table, batch[0].trace_id)
        catalog, id = self._catalog, list(self._table.identifier)
        place = catalog.lake.place(self._table.location)

        def run() -> Appended:
            waiting = list(batch)
            # Others may have committed since; then the handle is of no use any more.
            dataset = self._base if self._base and self._base.version == newest else None
            if newest is None and self._branch == MAIN:
                first = waiting.pop(0)
                try:
                    dataset = rows.commit_overwrite(
                        place.location, first.written, bridge, id, catalog.lake.options
                    )
                except ConcurrentCommit:
                    waiting.insert(0, first)
                    dataset = None
            if waiting:
                if dataset is None:
                    dataset = catalog.datasets.open_to_commit(place, self._branch, bridge, id)
                for one in waiting:
                    _check_fields(dataset, one.written)
                fragments = [f for one in waiting for f in one.written.fragments]
                dataset = rows.commit_append(dataset, fragments, bridge, id)
            assert dataset is not None
            self._base = dataset
            return Appended(dataset.version, bridge.transaction_id)

        try:
            return await catalog.workers.run_admitted(run)
        except Exception:
            self._base = None
            raise


def get_appender(catalog: Catalog, table: Table, branch: str) -> Appender:
    """The one appender of a branch; made when it is first needed."""
    key = (table.id, branch)
    found = catalog.appenders.get(key)
    if not isinstance(found, Appender):
        found = catalog.appenders[key] = Appender(catalog, table, branch)
    return found


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


def _fail(one: _Waiting, error: Exception) -> None:
    if not one.done.cancelled():
        one.done.set_exception(error)
