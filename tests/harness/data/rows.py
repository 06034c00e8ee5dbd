"""Tables with rows in them, and what queries of them return."""

from typing import Any

import lance
import numpy as np
import pyarrow as pa

from tests.harness.data.tables import Table, declare, new_name
from tests.harness.processes.servers import Server

FRUITS = ("apple", "banana", "cherry", "date", "elder")


def documents(count: int = 200, dimension: int = 8, seed: int = 7) -> pa.Table:
    """Rows with a number, a vector, two texts and a nested value."""
    numbers = np.random.default_rng(seed).random((count, dimension), dtype=np.float32)
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "vector": vectors(numbers),
            "body": [f"{FRUITS[i % 5]} pie number{i} with {FRUITS[i % 3]}" for i in range(count)],
            "title": [f"a {FRUITS[(i + 1) % 5]} recipe" for i in range(count)],
            "info": pa.array([{"x": i, "y": -i} for i in range(count)]),
        }
    )


def vectors(numbers: Any, kind: Any = None) -> pa.Array:
    """A column of vectors from a two-dimensional array."""
    flat = pa.array(numbers.ravel()) if kind is None else pa.array(numbers.ravel(), kind)
    return pa.FixedSizeListArray.from_arrays(flat, numbers.shape[1])


def put(server: Server, rows: pa.Table) -> tuple[Table, lance.LanceDataset]:
    """A new table with these rows, as the server knows it and as pylance opens it."""
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    table = declare(server, f"{namespace}$t")
    return table, lance.write_dataset(rows, str(table.location), enable_stable_row_ids=True)


def query(table: Table, **body: Any) -> pa.Table:
    """The rows that a query returns, which must work."""
    answer = table.ask("query", body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.file"
    return pa.ipc.open_file(answer.content).read_all()


def ids(found: pa.Table) -> list[int]:
    return list(found["id"].to_pylist())
