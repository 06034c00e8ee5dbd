"""What is asked of a server about rows: inserts into new tables, and reads of a large one."""

import time
from typing import Any

import lance
import msgspec
import pyarrow as pa
from lance.namespace import RestNamespace

from benchmarks.load import Job, Measured, finish, measure, prepare, start
from benchmarks.rows import (
    ARROW_STREAM,
    INSERTED_ROWS,
    query_vectors,
    small_rows,
    to_stream,
    vector_rows,
)
from benchmarks.servers import Server

INSERT, SCAN, NEAREST, COUNT = "insert 1,000", "query 10", "nearest 10", "count_rows"
OPERATIONS = (INSERT, SCAN, NEAREST, COUNT)
BUSY_DESCRIBE, ALL_ROWS = "describe, busy", "query all, meanwhile"

LARGE = "/v1/table/ns%24large"
FOUND_ROWS = 10
PARTITIONS = 64
SUB_VECTORS = 16
# Time for the large query to be well under way before describe is measured, and until its end.
LEAD_SECONDS = 0.8


class Tables:
    """The tables and requests of one server."""

    def __init__(self, server: Server, count: int) -> None:
        self.server, self._count, self._inserted = server, count, 0
        server.call("POST", "/v1/namespace/ns/create", {})
        self._body = to_stream(small_rows())
        self._make_large()
        self._requests = {
            SCAN: [_ask("query", _scan(FOUND_ROWS))],
            NEAREST: [_ask("query", _nearest(vector)) for vector in query_vectors(100)],
            COUNT: [_ask("count_rows", {})],
        }
        self._check()

    def run(self, operation: str, connections: int, seconds: float) -> Measured:
        """Measure an operation that changes nothing."""
        requests = self._requests[operation]
        return measure(Job(self.server.port, connections, requests, seconds, repeat=True))

    def insert(self, connections: int, count: int) -> Measured:
        """So many inserts into one new table; they are counted by the rows that are there then."""
        self._inserted += 1
        path = f"/v1/table/ns%24inserted{self._inserted}"
        self.server.fetch("POST", f"{path}/create", self._body)
        requests = [prepare("POST", f"{path}/insert", self._body, ARROW_STREAM)] * count
        # The reference gives up on some, for conflicts with the others; Penstock must not.
        may_be_refused = self.server.name == "reference"
        job = Job(self.server.port, connections, requests, 120, may_be_refused=may_be_refused)
        done = measure(job)
        rows = self.server.call("POST", f"{path}/count_rows", {})
        assert rows == (done.count + 1) * INSERTED_ROWS, (self.server.name, rows, done)
        self.server.call("POST", f"{path}/drop", {})
        return done

    def describe_while_busy(self, connections: int, seconds: float) -> tuple[Measured, Measured]:
        """Describes while one more connection asks for all rows over and over; then that one."""
        everything, describe = [_ask("query", _scan(self._count))], [_ask("describe", {})]
        busy_seconds = seconds + 2 * LEAD_SECONDS
        busy = start(Job(self.server.port, 1, everything, busy_seconds, repeat=True))
        time.sleep(LEAD_SECONDS)
        described = measure(Job(self.server.port, connections, describe, seconds, repeat=True))
        return described, finish(busy)

    def _make_large(self) -> None:
        connect: Any = RestNamespace
        target = {
            "namespace_client": connect(uri=f"http://127.0.0.1:{self.server.port}"),
            "table_id": ["ns", "large"],
        }
        made = lance.write_dataset(vector_rows(self._count), **target)
        made.create_index(
            "vector", "IVF_PQ", num_partitions=PARTITIONS, num_sub_vectors=SUB_VECTORS
        )

    def _check(self) -> None:
        """What is fast must also be right."""
        assert self.server.call("POST", f"{LARGE}/count_rows", {}) == self._count
        assert self._find(_scan(self._count)).num_rows == self._count
        assert self._find(_scan(FOUND_ROWS))["id"].to_pylist() == list(range(10))
        nearest = self._find(_nearest(query_vectors(1)[0]))
        assert nearest.num_rows == FOUND_ROWS, nearest
        assert "_distance" in nearest.column_names, nearest
        question = {"query": _nearest(query_vectors(1)[0]), "verbose": False}
        plan = self.server.call("POST", f"{LARGE}/explain_plan", question)
        assert "ANNSubIndex" in plan, plan

    def _find(self, body: object) -> pa.Table:
        found = self.server.fetch("POST", f"{LARGE}/query", msgspec.json.encode(body))
        return pa.ipc.open_file(found).read_all()


def _nearest(vector: list[float]) -> dict[str, object]:
    return {"k": FOUND_ROWS, "vector": {"single_vector": vector}, "vector_column": "vector"}


def _scan(count: int) -> dict[str, object]:
    # The reference wants a vector even where none is looked for.
    return {"k": count, "vector": {}}


def _ask(verb: str, body: object) -> bytes:
    return prepare("POST", f"{LARGE}/{verb}", msgspec.json.encode(body))
