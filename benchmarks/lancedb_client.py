"""LanceDB's own client: the same work through Penstock and on a local path, in turn.

docs/explanation/benchmarks.md tells what is measured, and what came out.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import lancedb
import msgspec
import numpy as np
import pyarrow as pa
from lancedb.index import FTS, IvfPq

from benchmarks import servers
from benchmarks.command import start

ADD, SEARCH, TEXT = "add 1,000", "nearest 10", "full text 10"
OPERATIONS = (ADD, SEARCH, TEXT)
CLIENTS = (1, 16)
LOCAL, SERVED = "local", "penstock"
DIMENSIONS = 64
WORDS = ("river", "gate", "wheel", "mill", "stone", "water", "sluice", "pond", "field", "bridge")
PROBES = 100


@dataclass(frozen=True)
class Effort:
    rows: int
    rounds: int
    calls: int


class Figure(msgspec.Struct):
    """Calls in a second, of each round."""

    operation: str
    clients: int
    rates: dict[str, list[float]]

    @property
    def ratio(self) -> float:
        pairs = zip(self.rates[SERVED], self.rates[LOCAL], strict=True)
        return statistics.median(served / local for served, local in pairs)


class Figures(msgspec.Struct):
    load_before: float
    figures: list[Figure]


def main() -> None:
    start(__doc__, Effort(50_000, 5, 160), Effort(5_000, 1, 32), run, show)


def run(effort: Effort, folder: Path) -> Figures:
    found = Figures(os.getloadavg()[0], [])
    with servers.penstock(folder / "served") as server:
        databases = {
            LOCAL: lancedb.connect(folder / "local"),
            SERVED: lancedb.connect(
                "db://x", api_key="none", host_override=f"http://127.0.0.1:{server.port}"
            ),
        }
        tables = {name: fill(database, effort.rows) for name, database in databases.items()}
        check(tables)
        for operation in OPERATIONS:
            for clients in CLIENTS:
                rates: dict[str, list[float]] = {LOCAL: [], SERVED: []}
                for number in range(effort.rounds):
                    for name, database in databases.items():
                        table = tables[name]
                        if operation == ADD:
                            # Each time a new one, because tables slow down with their fragments.
                            title = f"add_{clients}_{number}"
                            table = database.create_table(title, some_rows(10, 0))
                        rates[name].append(measure(operation, table, clients, effort.calls))
                found.figures.append(Figure(operation, clients, rates))
    return found


def measure(operation: str, table: Any, clients: int, calls: int) -> float:
    """Calls in a second, by so many threads of one process."""
    call = CALLS[operation]
    each = calls // clients
    if operation == ADD:
        each = max(each // 4, 2)

    def work(client: int) -> None:
        for number in range(each):
            call(table, client * each + number)

    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(lambda client: call(table, client), range(clients)))
        began = time.perf_counter()
        list(threads.map(work, range(clients)))
        return clients * each / (time.perf_counter() - began)


def fill(database: Any, rows: int) -> Any:
    """A table of texts and vectors with an index of each."""
    table = database.create_table("searched", some_rows(rows, 1))
    table.create_index("vector", config=IvfPq(num_partitions=32, num_sub_vectors=16))
    table.create_index("text", config=FTS())
    return table


def some_rows(count: int, seed: int) -> pa.Table:
    chosen = np.random.default_rng(seed)
    vectors = pa.array(chosen.random(count * DIMENSIONS, np.float32))
    words = chosen.choice(WORDS, (count, 8))
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "text": [" ".join((*row, f"word{n % 1000}")) for n, row in enumerate(words)],
            "vector": pa.FixedSizeListArray.from_arrays(vectors, DIMENSIONS),
        }
    )


def add(table: Any, number: int) -> None:
    table.add(ROWS)


def search(table: Any, number: int) -> list[Any]:
    query = table.search(VECTORS[number % PROBES]).limit(10).select(["id", "_distance"])
    found: list[Any] = query.to_list()
    assert len(found) == 10, found
    return found


def search_text(table: Any, number: int) -> list[Any]:
    query = table.search(f"word{number % 1000}", query_type="fts").limit(10)
    found: list[Any] = query.select(["id", "_score"]).to_list()
    assert found, number
    return found


def check(tables: dict[str, Any]) -> None:
    """What is fast must also be right: both find the same texts."""
    found = [{row["id"] for row in search_text(table, 7)} for table in tables.values()]
    assert found[0] == found[1], found


def show(found: Figures) -> str:
    lines = [
        f"load average at the start: {found.load_before:.2f}",
        "",
        f"| operation | clients | {LOCAL}, a second | {SERVED}, a second | {SERVED} / {LOCAL} |",
        "| --- | --- | --- | --- | --- |",
    ]
    for each in found.figures:
        local, served = (statistics.median(each.rates[name]) for name in (LOCAL, SERVED))
        lines.append(
            f"| {each.operation} | {each.clients} | {local:,.0f} | {served:,.0f} "
            f"| {each.ratio:.2f} |"
        )
    return "\n".join(lines)


ROWS = some_rows(1000, 2)
VECTORS = np.random.default_rng(3).random((PROBES, DIMENSIONS), np.float32)
CALLS: dict[str, Callable[[Any, int], object]] = {ADD: add, SEARCH: search, TEXT: search_text}

if __name__ == "__main__":
    main()
