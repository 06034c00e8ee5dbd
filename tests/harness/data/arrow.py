"""Arrow bodies for tests: streams in, and reading a table back as plain Python."""

import io
from collections.abc import Iterator
from typing import Any

import httpx
import lance
import pyarrow as pa

from tests.harness.processes.servers import Server

HEADERS = {"content-type": "application/vnd.apache.arrow.stream"}


def to_stream(rows: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def send(
    server: Server,
    path: str,
    rows: "pa.Table | bytes | Iterator[bytes]",
    headers: Any = None,
    **params: Any,
) -> httpx.Response:
    """POST rows, or exactly these bytes, to an operation that takes an Arrow stream."""
    content = to_stream(rows) if isinstance(rows, pa.Table) else rows
    return server.client.post(
        path, content=content, params=params, headers={**HEADERS, **(headers or {})}, timeout=120
    )


def people(*ids: int, name: str = "n") -> pa.Table:
    """Rows with an id and a name."""
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"{name}{i}" for i in ids]})


def read_back(server: Server, table: str, branch: str | None = None) -> list[dict[str, Any]]:
    """What a table holds, read by path with pylance, in the order of its ids."""
    location = server.post(f"/v1/table/{table}/describe").raise_for_status().json()["location"]
    dataset = lance.dataset(location)
    if branch:
        dataset = dataset.checkout_version((branch, None))
    return sorted(dataset.to_table().to_pylist(), key=lambda row: row["id"])


def versions(server: Server, table: str, **params: Any) -> list[int]:
    """The versions that the catalog lists."""
    answer = server.post(f"/v1/table/{table}/version/list", **params).raise_for_status()
    return [v["version"] for v in answer.json()["versions"]]
