"""Iceberg tables of a server that is asked by HTTP, with requests prepared beforehand."""

import msgspec

from benchmarks.iceberg import requests, writers
from benchmarks.iceberg.requests import APPEND, CREATE, LOAD, Contended
from benchmarks.load import Job, Measured, measure, prepare
from benchmarks.servers import Server

# More than any server here can do in a second.
CHANGES_PER_SECOND = 3_000


class ServedTables:
    """The tables of one server below `prefix`."""

    def __init__(self, name: str, server: Server, prefix: str, count: int) -> None:
        self.name, self._server, self._count = name, server, count
        self._tables = f"{prefix}/namespaces/ns/tables"
        self._done = dict.fromkeys(requests.OPERATIONS, 0)
        self._contended = 0
        body = {"namespace": ["ns"], "properties": {}}
        server.call("POST", f"{prefix}/namespaces", body)
        for number in range(count):
            server.call("POST", self._tables, requests.create(f"t{number:04d}"))
        # As clients load: they accept compressed answers.
        self._loads = [prepare("GET", self._path(n), accept="gzip") for n in range(count)]

    def run(self, operation: str, connections: int, seconds: float) -> Measured:
        """Measure one operation for a while; the tables take turns."""
        port = self._server.port
        if operation == LOAD:
            return measure(Job(port, connections, self._loads, seconds, repeat=True))
        start = self._done[operation]
        end = start + int(CHANGES_PER_SECOND * seconds)
        asked = [self._change(operation, n) for n in range(start, end)]
        done = measure(Job(port, connections, asked, seconds))
        assert done.count < len(asked), "more requests are needed"
        self._done[operation] += done.count
        self._check(operation)
        return done

    def contend(self, count: int, each: int, seconds: float) -> Contended:
        """So many writers make so many commits each to one new table, or what they can in time."""
        self._contended += 1
        name = f"contended{self._contended}"
        self._server.call("POST", self._tables, requests.create(name))
        return writers.contend(self._server.port, f"{self._tables}/{name}", count, each, seconds)

    def _change(self, operation: str, number: int) -> bytes:
        if operation == CREATE:
            body = requests.create(f"made{number:06d}")
            return prepare("POST", self._tables, msgspec.json.encode(body))
        turn = number // self._count
        if operation == APPEND:
            parent = requests.snapshot_id(0, turn - 1) if turn else None
            body = requests.append(requests.snapshot_id(0, turn), parent, turn + 1)
        else:
            body = requests.set_property(number)
        return prepare("POST", self._path(number), msgspec.json.encode(body))

    def _check(self, operation: str) -> None:
        """What is fast must also be right: the last change is there."""
        last = self._done[operation] - 1
        path = f"{self._tables}/made{last:06d}" if operation == CREATE else self._path(last)
        metadata = self._server.call("GET", path)["metadata"]
        if operation == APPEND:
            wanted = requests.snapshot_id(0, last // self._count)
            assert metadata["current-snapshot-id"] == wanted, metadata
        elif operation != CREATE:
            assert metadata["properties"]["edition"] == str(last), metadata

    def _path(self, number: int) -> str:
        return f"{self._tables}/t{number % self._count:04d}"
