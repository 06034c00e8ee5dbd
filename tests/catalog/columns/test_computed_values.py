"""A computed column takes no values from clients, whichever way rows come in."""

from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.harness.data.arrow import send
from tests.harness.data.tables import code, new_name, open_by_path
from tests.harness.jobs.fake_runner import add_computed, make_table
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


def make_bound(server: Server) -> str:
    """A table with the computed column `len`, in its second version."""
    table = make_table(server)
    add_computed(server, table, len="length(text)").raise_for_status()
    return table


def update(server: Server, table: str, column: str, sql: str) -> httpx.Response:
    return server.post(f"/v1/table/{table}/update", {"updates": [[column, sql]]})


def rows(value: Any) -> pa.Table:
    return pa.table({"id": [4], "text": ["d"], "len": pa.array([value], pa.int32())})


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("insert", {}),
        ("merge_insert", {"on": "id", "when_not_matched_insert_all": "true"}),
        ("merge_insert", {"on": "id", "when_matched_update_all": "true"}),
    ],
)
def test_a_value_of_a_computed_column_is_refused_and_null_is_not(
    server: Server, operation: str, params: dict[str, str]
) -> None:
    table = make_bound(server)
    path = f"/v1/table/{table}/{operation}"
    answer = send(server, path, rows(5), **params)
    assert code(answer) == (400, 13), answer.text
    assert "'len' is computed" in answer.json()["error"]
    assert open_by_path(server, table).version == 2
    assert send(server, path, rows(None), **params).status_code == 200


def test_a_value_in_a_long_stream_is_refused(server: Server) -> None:
    table = make_bound(server)
    count = 300_000
    values = pa.array([None] * (count - 1) + [7], pa.int32())
    long = pa.table({"id": range(count), "text": ["some text"] * count, "len": values})
    answer = send(server, f"/v1/table/{table}/insert", long)
    assert code(answer) == (400, 13), answer.text
    assert open_by_path(server, table).count_rows() == 3


def test_an_update_can_only_take_a_value_away(server: Server) -> None:
    table = make_bound(server)
    for sql, status in (("5", 400), ("id", 400), ("NULL", 200), (" null ", 200)):
        answer = update(server, table, "len", sql)
        assert answer.status_code == status, answer.text
    assert update(server, table, "text", "'x'").status_code == 200


def test_rows_that_bring_a_binding_are_refused(server: Server) -> None:
    field = pa.field(
        "len",
        pa.int32(),
        metadata={"computed_column": "true", "computed_column.expression": "length(text)"},
    )
    schema = pa.schema([pa.field("text", pa.string()), field])
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    path = f"/v1/table/{namespace}$t/create"
    filled = pa.table([["a"], [1]], schema=schema)
    assert code(send(server, path, filled)) == (400, 13)
    assert code(send(server, path, pa.table([["a"], [None]], schema=schema))) == (400, 13)
