"""Computed columns of a table on a server, filled in this process while columns are renamed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa

from tests.harness.data.arrow import send
from tests.harness.data.calls import recorded
from tests.harness.data.functions import add_function, virtual_column
from tests.harness.data.tables import open_by_path
from tests.harness.jobs.fake_runner import Column
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import run_here

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "text": ["a", "bb", "ccc"],
        "doc": [{"text": t, "n": n} for n, t in enumerate("xyz")],
    }
)


def rename(server: Server, table: str, old: str, new: str, **more: Any) -> httpx.Response:
    body = {"alterations": [{"path": old, "rename": new}], **more}
    return server.post(f"/v1/table/{table}/alter_columns?cascade=true", body)


def insert(server: Server, table: str, **columns: Any) -> None:
    rows = ROWS.slice(0, 1).rename_columns(columns) if columns else ROWS.slice(0, 1)
    send(server, f"/v1/table/{table}/insert", rows).raise_for_status()


def update(server: Server, table: str, where: str, **values: str) -> None:
    updates = [[name, text] for name, text in values.items()]
    body = {"predicate": where, "updates": updates}
    server.post(f"/v1/table/{table}/update", body).raise_for_status()


def fill(column: Column, **body: Any) -> int:
    """Backfill; returns how many rows were computed."""
    column.request(**body)
    (job,) = column.runner.lease()
    return int(run_here(column.server, job)["function_calls"])


def explain(column: Column, **body: Any) -> dict[str, Any]:
    found = column.ask("explain_backfill", {"column": column.name} | body).raise_for_status()
    return dict(found.json())


def values(column: Column, branch: str = "") -> list[Any]:
    found = open_by_path(column.server, column.table, branch).to_table(columns=["id", column.name])
    return [row[column.name] for row in sorted(found.to_pylist(), key=lambda row: row["id"])]


def mirrored(column: Column, **body: Any) -> dict[str, Any]:
    answer = column.ask("describe", body).raise_for_status().json()
    return dict(json.loads(answer["properties"]["penstock.columns"]))


def bind(column: Column, log: Path, compute: Callable[..., Any], **more: Any) -> None:
    """A function of `text` and `doc.n` fills the column, and leaves a line for each call."""

    def call(*values: Any) -> Any:
        recorded(log, "call")
        return compute(*values)

    inputs = more.pop("inputs", ["text", "doc.n"])
    outputs = more.pop("outputs", {column.name: "utf8"})
    kind = more.pop("kind", "scalar")
    new = virtual_column(call, inputs, outputs, kind, name="f", **more)
    add_function(column.server, column.table, new).raise_for_status()
