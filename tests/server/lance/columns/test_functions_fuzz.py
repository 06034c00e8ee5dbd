"""Nothing that a client declares as a function makes the server fail."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.data.functions import b64, envelope, make_output, pack, virtual_column
from tests.harness.data.tables import new_name
from tests.harness.fuzzing.values import fuzzed, values_of
from tests.harness.jobs.fake_runner import make_table
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

CODE = b"\x80\x05N."
WORDS = st.sampled_from(
    (
        *("", ".", "`", "text", "text.x", "int32", "struct", "list", "fixed_size_list", "map"),
        *("\x00", "\x1f", "é", "_rowid", "len", "true", "{}", "[]", "decimal128", "x" * 5000),
    )
)
KEYS = st.sampled_from(
    (
        *("type", "fields", "length", "name", "nullable", "metadata", "column", "data_type"),
        *("struct_field", "format", "payload", "sha256", "on_error", "action", "udf_pickle"),
        *("lance-encoding:blob", "ARROW:extension:name", "ARROW:extension:metadata"),
    )
)
VALUES = values_of(WORDS, KEYS)
FIELDS = (
    *sorted(virtual_column(CODE, ["text"], {"x": "int32"})),
    *("manifest", "manifest_checksum", "field_metadata", "auto_backfill"),
)


@pytest.fixture(scope="module")
def table(server: Server) -> str:
    return make_table(server)


def declare(server: Server, table: str, column: Any, operation: str = "add_columns") -> int:
    body = (
        {"new_columns": [{"name": "x", "virtual_column": column}]}
        if operation == "add_columns"
        else {"alterations": [{"path": "x", "virtual_column": column}]}
    )
    text = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    answer = server.client.post(f"/v1/table/{table}/{operation}", content=text)
    assert answer.status_code in (200, 400, 404, 413), (body, answer.text)
    assert answer.status_code == 200 or answer.json()["code"] in (12, 13, 20)
    return answer.status_code


@fuzzed(25)
@given(field=st.sampled_from(FIELDS), value=VALUES)
def test_any_value_of_a_field(server: Server, table: str, field: str, value: Any) -> None:
    name = new_name("c")
    column = virtual_column(CODE, ["text"], {name: "int32"}) | {field: value}
    body = {"new_columns": [{"name": name, "virtual_column": column}]}
    answer = server.post(f"/v1/table/{table}/add_columns", body)
    assert answer.status_code in (200, 400, 404), (body, answer.text)
    change = {"alterations": [{"path": name, "virtual_column": {field: value}}]}
    answer = server.post(f"/v1/table/{table}/alter_columns", change)
    assert answer.status_code in (200, 400, 404), (change, answer.text)
    server.post(f"/v1/table/{table}/count_rows", {"predicate": "true"}).raise_for_status()


@fuzzed(25)
@given(kind=st.dictionaries(KEYS, VALUES, max_size=4), metadata=st.dictionaries(KEYS, WORDS))
def test_any_type_and_metadata(
    server: Server, table: str, kind: dict[str, Any], metadata: dict[str, str]
) -> None:
    name = new_name("c")
    for data_type in (kind, {"type": "list", "fields": [{"name": "item", "type": kind}]}, "utf8"):
        output = make_output(name, data_type, metadata=metadata)
        column = virtual_column(CODE, ["text"], [output])
        body = {"new_columns": [{"name": name, "virtual_column": column}]}
        answer = server.post(f"/v1/table/{table}/add_columns", body)
        assert answer.status_code in (200, 400), (body, answer.text)
    detailed = {"load_detailed_metadata": True}
    server.post(f"/v1/table/{table}/describe", detailed).raise_for_status()


@pytest.mark.parametrize(
    "column",
    [
        *(5, "x", [], {}, {"udf": {}}),
        virtual_column(CODE, ["text"], {"x": "int32"}) | {"udf": "A" * 3_000_001},
        virtual_column(CODE, ["text"], {"x": "int32"}) | {"udf": pack([[[[{}]]]])},
        virtual_column(CODE, ["\ud800"], {"x": "int32"}),
        virtual_column(CODE, ["text"], {"x": "int32"}, name="\ud800"),
        virtual_column(CODE, ["text"], {"x": "int32"}, field_metadata={"\ud800": "\udfff"}),
        virtual_column(CODE, ["text"] * 1001, {"x": "int32"}),
        virtual_column(CODE, ["text"], {f"x{n}": "int8" for n in range(1001)}, "batch"),
        virtual_column(CODE, ["text"], [make_output("x", "int8", metadata={"a": None})]),
    ],
    ids=range(13),
)
def test_odd_declarations_are_refused(server: Server, table: str, column: Any) -> None:
    assert declare(server, table, column) in (400, 413)
    assert declare(server, table, column, "alter_columns") in (400, 404, 413)


def test_a_lone_surrogate_in_the_envelope_is_refused_or_taken(server: Server, table: str) -> None:
    sent = json.loads(base64.b64decode(envelope(CODE)))
    for key in (*sent, "on_error"):
        value = {"match": ["\ud800"]} if key == "on_error" else "\ud800"
        text = json.dumps(sent | {key: value}).encode()
        column = virtual_column(CODE, ["text"], {"x": "int8"}) | {"udf": b64(text)}
        declare(server, table, column)


def test_a_large_function_is_kept(server: Server) -> None:
    table = make_table(server)
    column = virtual_column(CODE + b"\x00" * 3_000_000, ["text"], {"x": "int32"})
    assert declare(server, table, column) == 200
