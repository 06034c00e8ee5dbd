"""Every type of Arrow's through every way in and out: REST, our SDK, lancedb and pylance."""

import io
from typing import Any

import lance
import lancedb
import polars
import pyarrow as pa
import pytest

import penstock
from penstock.lance.write.layout import to_stored_schema, to_values_schema
from tests.harness.data.arrow import send
from tests.harness.data.arrow_types import list_cases
from tests.harness.processes.servers import Server

SIZES = (0, 1, 2, 5, 7, 10, 100, 1001)
# What nobody but Lance refuses: see tests/lance/write/test_layout.py.
FIXED = ("null", "string", "binary", "large", "dictionary", "view", "run")


def make_rows(rows: int, first: int = 0) -> pa.Table:
    """A column of each type, flat and in each kind of nest, behind an id and a text."""
    cases = [
        case
        for case in [*list_cases(0), *list_cases(1)]
        if not (case.name.startswith("fixed<") and any(word in case.name for word in FIXED))
        or case.name == "fixed<binary3>"
    ]
    columns = {f"c{n}": case.make(rows) for n, case in enumerate(cases)}
    ids = pa.array(range(first, first + rows), pa.int64())
    return pa.table({"id": ids, "s": pa.array(["abc"] * rows, pa.string()), **columns})


def to_answer(schema: pa.Schema) -> pa.Schema:
    """What a query gives for these columns: plain layouts, and values instead of dictionaries."""
    return to_values_schema(to_stored_schema(schema))


def check(back: pa.Table, sent: pa.Table) -> None:
    """Equal, value by value, in the layout that Lance stores."""
    assert back.num_rows == sent.num_rows
    back = back.sort_by("id")
    for name in sent.column_names:
        assert pa.schema([back.field(name)]) == to_answer(sent.select([name]).schema), name
        assert back[name].to_pylist() == sent[name].to_pylist(), (name, sent[name].type)


def read(server: Server, table: str) -> pa.Table:
    body = {"k": 10_000, "vector": {"single_vector": []}}
    answer = server.client.post(f"/v1/table/{table}/query", json=body)
    assert answer.status_code == 200, answer.text
    # Aligned, because other clients of Lance panic like Lance itself.
    options = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
    return pa.ipc.open_file(io.BytesIO(answer.content), options=options).read_all()


def test_rows_of_every_type_are_created_inserted_merged_and_read(
    server: Server, namespace: str
) -> None:
    table, first = f"{namespace}$t", 0
    send(server, f"/v1/table/{table}/create", make_rows(3)).raise_for_status()
    sent = [make_rows(3)]
    for rows in SIZES:
        first = 1000 * len(sent)
        sent.append(make_rows(rows, first))
        send(server, f"/v1/table/{table}/insert", sent[-1]).raise_for_status()
    how = {"on": "id", "when_matched_update_all": True, "when_not_matched_insert_all": True}
    send(server, f"/v1/table/{table}/merge_insert", make_rows(5, first), **how).raise_for_status()
    check(read(server, table), pa.concat_tables(sent))


def test_the_sdk_sends_and_reads_every_type(server: Server, namespace: str) -> None:
    lake = penstock.connect(server.url)
    table = lake.create_table(f"{namespace}.t", make_rows(7))
    table.append(make_rows(5, 7))
    check(table.to_arrow(), pa.concat_tables([make_rows(7), make_rows(5, 7)]))


def test_lancedb_and_pylance_read_and_add_every_type(server: Server, namespace: str) -> None:
    # The client reads the types of a table from its description, and knows no maps there.
    sent = make_rows(7)
    sent = sent.select([f.name for f in sent.schema if "map<" not in str(f.type)])
    send(server, f"/v1/table/{namespace}$t/create", sent).raise_for_status()
    stored = read(server, f"{namespace}$t")
    database: Any = lancedb.connect("db://dev", api_key="k", host_override=server.url)
    table = database.open_table("t", namespace_path=[namespace])
    table.add(stored.set_column(0, "id", pa.array(range(7, 14), pa.int64())))
    location = server.post(f"/v1/table/{namespace}$t/describe").json()["location"]
    found = lance.dataset(location).to_table()
    assert found.schema.remove_metadata() == to_stored_schema(sent.schema)
    for half in (found.slice(0, 7), found.slice(7)):
        assert half.drop(["id"]).to_pylist() == sent.drop(["id"]).to_pylist()


@pytest.mark.parametrize("rows", [2, 5, 7, 100])
def test_decimals_come_from_pandas_polars_and_dicts(
    server: Server, namespace: str, rows: int
) -> None:
    decimals = pa.array(["1.20"] * rows).cast(pa.decimal128(5, 2))
    plain = pa.table({"s": ["abc"] * rows, "d": decimals})
    lake = penstock.connect(server.url)
    for n, data in enumerate((plain.to_pandas(), polars.from_arrow(plain), plain.to_pylist())):
        table = lake.create_table(f"{namespace}.t{n}", data)
        table.append(data)
        assert table.to_arrow()["d"].to_pylist() == plain["d"].to_pylist() * 2
