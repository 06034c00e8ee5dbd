"""Types of virtual columns: declared in the protocol's words, kept by Lance, and told again."""

import json
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.lance.columns.schemas import to_arrow_type
from penstock.lance.read.details import to_json_type
from tests.harness.data.functions import add_function, make_output, virtual_column
from tests.harness.jobs.fake_runner import make_table
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

CODE = b"\x80\x05N."
TYPES = [
    pa.bool_(),
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.binary(16),
    pa.date32(),
    pa.date64(),
    pa.timestamp("us"),
    pa.timestamp("ns", "UTC"),
    pa.timestamp("s", "Europe/Berlin"),
    pa.time32("s"),
    pa.time64("ns"),
    pa.duration("ms"),
    pa.decimal128(20, 3),
    pa.decimal256(40, 0),
    pa.list_(pa.string()),
    pa.large_list(pa.int16()),
    pa.list_(pa.float32(), 128),
    pa.list_(pa.float16(), 8),
    pa.list_(pa.list_(pa.int8(), 2), 2),
    pa.struct([pa.field("a", pa.int32(), False), pa.field("b", pa.list_(pa.timestamp("ms")))]),
    pa.map_(pa.string(), pa.int64()),
]
BLOB = {"lance-encoding:blob": "true"}


def describe(server: Server, table: str) -> dict[str, Any]:
    body = {"load_detailed_metadata": True}
    answer = server.post(f"/v1/table/{table}/describe", body).raise_for_status().json()
    return {field["name"]: field for field in answer["schema"]["fields"]} | {"": answer}


def test_every_type_is_declared_and_told_as_it_was(server: Server) -> None:
    table = make_table(server)
    columns = [
        virtual_column(CODE, ["text"], [make_output(f"c{n}", to_json_type(kind))])
        for n, kind in enumerate(TYPES)
    ]
    assert add_function(server, table, *columns).raise_for_status().json() == {"version": 2}
    told = describe(server, table)
    kept = lance.dataset(told[""]["location"]).schema
    for n, kind in enumerate(TYPES):
        assert kept.field(f"c{n}").type == kind
        assert to_arrow_type(told[f"c{n}"]["type"]) == kind
        function = json.loads(told[f"c{n}"]["metadata"]["penstock.function"])
        assert to_arrow_type(function["outputs"][0]["data_type"]) == kind


@pytest.mark.parametrize("by", ["output", "field"])
def test_a_blob_is_declared_by_its_metadata(server: Server, by: str) -> None:
    table = make_table(server)
    output = make_output("b", "large_binary", **({"metadata": BLOB} if by == "output" else {}))
    column = virtual_column(CODE, ["text"], [output])
    column |= {"field_metadata": BLOB} if by == "field" else {}
    add_function(server, table, column).raise_for_status()
    dataset = lance.dataset(describe(server, table)[""]["location"])
    assert dataset.schema.field("b").metadata[b"lance-encoding:blob"] == b"true"
    more_rows = pa.table({"id": [4], "text": ["d"], "b": pa.array([b"abc"], pa.large_binary())})
    rows = more_rows.cast(dataset.schema)
    dataset = lance.write_dataset(rows, dataset.uri, mode="append")
    (blob,) = dataset.take_blobs("b", indices=[3])
    assert blob is not None
    assert blob.readall() == b"abc"
    assert dataset.to_table(columns=["b"], blob_handling="all_binary")["b"].to_pylist()[3] == b"abc"


def test_a_column_is_null_until_it_is_filled_whatever_was_promised(server: Server) -> None:
    table = make_table(server)
    output = make_output("n", "int32", nullable=False)
    add_function(server, table, virtual_column(CODE, ["text"], [output])).raise_for_status()
    field = describe(server, table)["n"]
    assert field["nullable"] is True
    assert json.loads(field["metadata"]["penstock.function"])["outputs"][0]["nullable"] is False
