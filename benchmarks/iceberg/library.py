"""Iceberg tables of a catalog that pyiceberg is asked for, each client a process of its own.

The clients are forked, so that none has to import anything when the clock runs.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from multiprocessing.synchronize import Barrier
from typing import Any

# These are loaded here for the clients.
import pyiceberg.catalog.rest
import pyiceberg.catalog.sql
import pyiceberg.io.pyarrow  # noqa: F401
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.metadata import TableMetadataV1

from benchmarks.iceberg import requests
from benchmarks.iceberg.requests import APPEND, CREATE, LOAD, Contended
from benchmarks.load import Measured

NAMESPACE = "library"
START_SECONDS = 60
_fork = multiprocessing.get_context("fork")
_ready: list[Barrier] = []


@dataclass(frozen=True)
class _Share:
    """What one client does: its part of the tables, and of the names."""

    properties: dict[str, str]
    operation: str
    client: int
    tables: list[str]
    prefix: str
    seconds: float


class LibraryTables:
    """The tables of one catalog."""

    def __init__(self, name: str, properties: dict[str, str], count: int) -> None:
        self.name, self._properties = name, properties
        self._names = [f"t{n:04d}" for n in range(count)]
        self._runs = 0
        _in_processes(_make, [(properties, self._names)])

    def run(self, operation: str, connections: int, seconds: float) -> Measured:
        """Measure one operation for a while; each client has tables of its own."""
        self._runs += 1
        shares = [
            _Share(
                self._properties,
                operation,
                client,
                self._names[client::connections],
                f"made{self._runs}_{client}_",
                seconds,
            )
            for client in range(connections)
        ]
        found = _in_processes(_work, [(share,) for share in shares])
        started = min(each[0] for each in found)
        ended = max(each[1] for each in found)
        latencies = sorted(one for each in found for one in each[2])
        return Measured(
            len(latencies),
            len(latencies) / (ended - started),
            latencies[len(latencies) // 2] * 1000,
            latencies[len(latencies) * 99 // 100] * 1000,
        )

    def contend(self, count: int, each: int, seconds: float) -> Contended:
        """So many writers make so many commits each to one new table, or what they can in time."""
        self._runs += 1
        name = f"contended{self._runs}"
        _in_processes(_make, [(self._properties, [name])])
        asked = [(self._properties, name, writer, each, seconds) for writer in range(count)]
        found = _in_processes(_contend, asked)
        taken = max(one[1] for one in found) - min(one[0] for one in found)
        made = {id for one in found for id in one[2]}
        [there] = _in_processes(_list_snapshots, [(self._properties, name)])
        refused = sum(one[3] for one in found)
        return Contended(len(made), taken, refused, len(made - there))


def _in_processes(work: Callable[..., Any], asked: list[tuple[Any, ...]]) -> list[Any]:
    """Do this once in each of so many new processes, at once; returns what came of it."""
    barrier = _fork.Barrier(len(asked))
    with ProcessPoolExecutor(len(asked), _fork, _ready.append, (barrier,)) as pool:
        return [each.result() for each in [pool.submit(work, *one) for one in asked]]


def _begin() -> float:
    """Wait until all others are ready, too; the clock is the same in all processes."""
    _ready[0].wait(START_SECONDS)
    return time.perf_counter()


def _make(properties: dict[str, str], names: list[str]) -> None:
    catalog = load_catalog("bench", **properties)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    for name in names:
        catalog.create_table((NAMESPACE, name), _SCHEMA)


def _work(share: _Share) -> tuple[float, float, list[float]]:
    catalog = load_catalog("bench", **share.properties)
    calls = _calls(catalog, share)
    latencies = []
    started = before = _begin()
    while before - started < share.seconds:
        next(calls)
        after = time.perf_counter()
        latencies.append(after - before)
        before = after
    return started, before, latencies


def _calls(catalog: Catalog, share: _Share) -> Iterator[object]:
    """The calls of one client, one after the other."""
    tables = [catalog.load_table((NAMESPACE, name)) for name in share.tables]
    if share.operation == CREATE:
        return (catalog.create_table((NAMESPACE, f"{share.prefix}{n}"), _SCHEMA) for n in count())
    if share.operation == LOAD:
        return (
            catalog.load_table((NAMESPACE, share.tables[n % len(share.tables)])) for n in count()
        )
    return (
        _commit(
            catalog, tables[n % len(tables)], _change(share.operation, tables[n % len(tables)], n)
        )
        for n in count()
    )


def _change(operation: str, table: Table, number: int) -> requests.Json:
    if operation == APPEND:
        return _append(table, len(table.metadata.snapshots))
    return requests.set_property(time.monotonic_ns() + number)


def _append(table: Table, number: int, writer: int = 0) -> requests.Json:
    metadata = table.metadata
    assert not isinstance(metadata, TableMetadataV1)
    parent, id = metadata.current_snapshot_id, requests.snapshot_id(writer, number)
    return requests.append(id, parent, metadata.last_sequence_number + 1)


def _commit(catalog: Catalog, table: Table, change: requests.Json) -> Table:
    """One commit; returns the table, which is as it became."""
    identifier = {"namespace": [NAMESPACE], "name": table.name()[-1]}
    asked = CommitTableRequest.model_validate({"identifier": identifier, **change})
    made = catalog.commit_table(table, asked.requirements, asked.updates)
    table.metadata, table.metadata_location = made.metadata, made.metadata_location
    return table


def _contend(
    properties: dict[str, str], name: str, writer: int, each: int, seconds: float
) -> tuple[float, float, list[int], int]:
    catalog = load_catalog("bench", **properties)
    table = catalog.load_table((NAMESPACE, name))
    made: list[int] = []
    refused = 0
    started = _begin()
    while len(made) < each and time.perf_counter() - started < seconds:
        change = _append(table, len(made), writer)
        try:
            _commit(catalog, table, change)
            made.append(requests.snapshot_id(writer, len(made)))
        except CommitFailedException:
            refused += 1
            table = catalog.load_table((NAMESPACE, name))
    return started, time.perf_counter(), made, refused


def _list_snapshots(properties: dict[str, str], name: str) -> set[int]:
    table = load_catalog("bench", **properties).load_table((NAMESPACE, name))
    return {each.snapshot_id for each in table.metadata.snapshots}


_SCHEMA = Schema.model_validate(requests.create("")["schema"])
