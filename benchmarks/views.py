"""Compare views with tables of the same server, in one run: loads, replaces, long histories.

A load is measured beside describe_table, a replace beside version/create: both do the same kind of
work, one durable commit and one durable file. docs/explanation/benchmarks.md tells what came out.
"""

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import command, servers
from benchmarks.load import Job, Measured, measure, prepare
from benchmarks.progress import Progress
from benchmarks.report import Sample, align, summarise
from benchmarks.servers import Server
from benchmarks.workload import CREATE_VERSION, DESCRIBE, Workload

LOAD, REPLACE = "load view", "replace view"
SHORT, LONG = 10, 1_000
LOAD_SHORT, LOAD_LONG = f"load, {SHORT} versions", f"load, {LONG:,} versions"
# Each is measured beside the other, which it has to reach to this part.
GOALS = ((LOAD, DESCRIBE, 0.6), (REPLACE, CREATE_VERSION, 0.3), (LOAD_LONG, LOAD_SHORT, 1 / 3))
CONNECTIONS = (1, 16)
VIEWS = "/iceberg/v1/namespaces/views/views"
TABLE_OPERATIONS = (DESCRIBE, CREATE_VERSION)
# More than this server can do in a second.
REPLACES_PER_SECOND = 3_000


@dataclass(frozen=True)
class Effort:
    rounds: int
    seconds: float
    count: int


FULL = Effort(rounds=3, seconds=1.5, count=200)
QUICK = Effort(rounds=1, seconds=0.4, count=50)


class Views:
    """The views of one server, and the requests for them."""

    def __init__(self, server: Server, count: int) -> None:
        self._server, self._count, self._replaced = server, count, 0
        server.call("POST", "/iceberg/v1/namespaces", {"namespace": ["views"], "properties": {}})
        for number in range(count):
            server.call("POST", VIEWS, _create(f"v{number:04d}", SHORT))
        for name, versions in (("short", SHORT), ("long", LONG)):
            server.call("POST", VIEWS, _create(name, versions))
            for number in range(2, versions + 1):
                made = server.call("POST", f"{VIEWS}/{name}", _replace(number))
            assert len(made["metadata"]["versions"]) == versions, name
        self._requests = {
            LOAD: [prepare("GET", f"{VIEWS}/v{n:04d}") for n in range(count)],
            LOAD_SHORT: [_load("short")],
            LOAD_LONG: [_load("long")],
        }

    def run(self, operation: str, connections: int, seconds: float) -> Measured:
        if operation == REPLACE:
            return self._replace(connections, seconds)
        requests = self._requests[operation]
        return measure(Job(self._server.port, connections, requests, seconds, repeat=True))

    def _replace(self, connections: int, seconds: float) -> Measured:
        """The views take turns, as the tables do for version/create."""
        start = self._replaced
        requests = [
            prepare(
                "POST",
                f"{VIEWS}/v{n % self._count:04d}",
                msgspec.json.encode(_replace(n // self._count + 2)),
            )
            for n in range(start, start + int(REPLACES_PER_SECOND * seconds))
        ]
        done = measure(Job(self._server.port, connections, requests, seconds))
        self._replaced += done.count
        last = self._server.call("GET", f"{VIEWS}/v{(start + done.count - 1) % self._count:04d}")
        wanted = (start + done.count - 1) // self._count + 2
        assert last["metadata"]["current-version-id"] == wanted, last
        return done


def run(effort: Effort, folder: Path) -> list[Sample]:
    samples = []
    with servers.penstock(folder / "penstock") as server:
        tables, views = Workload(server, effort.count), Views(server, effort.count)
        progress = Progress("views", effort.rounds * len(GOALS) * 2 * len(CONNECTIONS))
        for round in range(effort.rounds):
            for connections in CONNECTIONS:
                for ours, beside, _ in GOALS:
                    for operation in (ours, beside):
                        # What others left to write is not this measurement's to wait for.
                        os.sync()
                        source = tables if operation in TABLE_OPERATIONS else views
                        measured = source.run(operation, connections, effort.seconds)
                        sample = Sample(operation, connections, "penstock", round, measured)
                        samples.append(sample)
                        progress.step(f"{operation} x{connections} {measured.rate:,.0f}/s")
    return samples


def show(samples: list[Sample]) -> str:
    rows = [
        [
            "measure",
            "conns",
            "rate/s",
            "beside",
            "rate/s",
            "ratio",
            "goal",
            "p99 ms",
            "beside p99",
            "result",
        ]
    ]
    for ours, beside, goal in GOALS:
        for connections in CONNECTIONS:
            mine = summarise(samples, ours, connections, "penstock")
            other = summarise(samples, beside, connections, "penstock")
            ratio = mine.rate / other.rate
            rows.append(
                [
                    ours,
                    str(connections),
                    f"{mine.rate:,.0f}",
                    beside,
                    f"{other.rate:,.0f}",
                    f"{ratio:.2f}x",
                    f">= {goal:.2f}x",
                    f"{mine.p99_ms:.2f}",
                    f"{other.p99_ms:.2f}",
                    "ok" if ratio >= goal else "missed",
                ]
            )
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    return f"{machine}\n\n{align(rows, range(1, 9))}"


def _load(name: str) -> bytes:
    """As clients load: they accept compressed answers."""
    return prepare("GET", f"{VIEWS}/{name}", accept="gzip")


def _create(name: str, versions: int) -> dict[str, Any]:
    return {
        "name": name,
        "schema": {"type": "struct", "schema-id": 0, "fields": [_field(n) for n in range(1, 6)]},
        "view-version": _version(1),
        "properties": {"version.history.num-entries": str(versions)},
    }


def _replace(number: int) -> dict[str, Any]:
    return {
        "requirements": [],
        "updates": [
            {"action": "add-view-version", "view-version": _version(number)},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }


def _version(number: int) -> dict[str, Any]:
    sql = f"SELECT id, name, city, age, {number} AS edition FROM people WHERE age > {number}"
    return {
        "version-id": number,
        "schema-id": 0,
        "timestamp-ms": 1_700_000_000_000 + number,
        "summary": {"engine-name": "benchmark"},
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
        "default-namespace": ["views"],
    }


def _field(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"column_{number}", "type": "string", "required": False}


if __name__ == "__main__":
    command.start(__doc__, FULL, QUICK, run, show)
