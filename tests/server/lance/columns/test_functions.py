"""Virtual columns: declared with a function, without values, and bound to what they read."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.data.calls import pickled
from tests.harness.data.functions import (
    add_function,
    alter_function,
    b64,
    envelope,
    make_output,
    new_column,
    pack,
    virtual_column,
)
from tests.harness.data.tables import ask, code, metadata, open_by_path
from tests.harness.jobs.fake_runner import make_table
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "text": ["a", "bb", "ccc"],
        "st": pa.array([{"x": 1, "y.z": {"w`v": 2}}] * 3),
        "items": pa.array([[{"n": 1}]] * 3),
    }
)
PAYLOAD = b"\x80\x05N."
# The envelope of another client.
FOREIGN = pack({"udf_pickle": b64(PAYLOAD)})


@pytest.fixture
def table(server: Server) -> str:
    return make_table(server, ROWS)


@pytest.fixture(scope="module")
def shared(server: Server) -> str:
    """A table for requests that change nothing."""
    return make_table(server, ROWS)


def length(text: str) -> int:
    return len(text)


def simple(**more: Any) -> dict[str, Any]:
    return virtual_column(PAYLOAD, ["text"], {"len": "int32"}, name="length") | more


def test_a_virtual_column_has_no_values_yet(server: Server, table: str) -> None:
    answer = add_function(server, table, virtual_column(length, ["text"], {"len": "int32"}))
    assert (answer.status_code, answer.json()) == (200, {"version": 2})
    found = open_by_path(server, table).to_table()["len"]
    assert (found.type, found.to_pylist()) == (pa.int32(), [None] * 3)


def test_the_binding_is_in_the_fields_metadata(server: Server, table: str) -> None:
    column = simple(
        image="img:1",
        auto_backfill=True,
        manifest='{"pip": []}',
        field_metadata={"owner": "me"},
        udf=virtual_column(PAYLOAD, [], {}, knobs={"env": {"system": "Linux"}})["udf"],
    )
    add_function(server, table, column).raise_for_status()
    found = metadata(server, table, "len")
    function = json.loads(found.pop("penstock.function"))
    sha256 = function["sha256"]
    assert len(found.pop("penstock.binding")) == 32
    assert found.pop("virtual_column.platform.python_version")
    assert found == {
        "owner": "me",
        "virtual_column": "true",
        "virtual_column.udf": f"_udfs/{sha256}",
        "virtual_column.udf_backend": "penstock/1",
        "virtual_column.udf_inputs": '["text"]',
        "virtual_column.udf_name": "length",
        "virtual_column.image": "img:1",
        "virtual_column.auto_backfill": "true",
        "virtual_column.manifest": '{"pip": []}',
        "virtual_column.manifest_checksum": hashlib.sha256(b'{"pip": []}').hexdigest(),
        "virtual_column.platform.system": "Linux",
    }
    assert (function["name"], function["version"], function["kind"]) == ("length", "1", "scalar")
    assert function["inputs"] == ["text"]
    assert [output["column"] for output in function["outputs"]] == ["len"]


def test_the_code_lies_beside_the_table_by_its_hash(server: Server, table: str) -> None:
    column = virtual_column(length, ["text"], {"len": "int32"})
    add_function(server, table, column).raise_for_status()
    location = Path(ask(server, table, "describe").json()["location"])
    path = location / metadata(server, table, "len")["virtual_column.udf"]
    assert b64(path.read_bytes()) == column["udf"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_on_a_branch_the_code_lies_beside_the_table_too(server: Server, table: str) -> None:
    ask(server, table, "branches/create", {"name": "dev"}).raise_for_status()
    add_function(server, table, simple(), branch="dev").raise_for_status()
    location = Path(ask(server, table, "describe").json()["location"])
    assert len(list((location / "_udfs").iterdir())) == 1
    assert "len" in open_by_path(server, table, "dev").schema.names
    assert "len" not in open_by_path(server, table).schema.names


@pytest.mark.parametrize(
    ("udf", "form", "kind"),
    [
        (virtual_column(PAYLOAD, [], {}, "arrow")["udf"], "penstock/1", "arrow"),
        (pack({"udf_pickle": b64(PAYLOAD), "image": "x"}), "udf_pickle", None),
        (b64(PAYLOAD), "pickle", None),
        (b64(pickled(length)), "pickle", None),
        (b64(b"anything that is no JSON"), "pickle", None),
        ("\n".join(b64(PAYLOAD)), "pickle", None),
    ],
)
def test_a_function_comes_in_three_forms(
    server: Server, table: str, udf: str, form: str, kind: str | None
) -> None:
    add_function(server, table, simple(udf=udf)).raise_for_status()
    function = json.loads(metadata(server, table, "len")["penstock.function"])
    assert (function["form"], function["kind"]) == (form, kind)


def test_without_a_version_the_hash_is_the_version(server: Server, table: str) -> None:
    add_function(server, table, simple(udf_version=None)).raise_for_status()
    function = json.loads(metadata(server, table, "len")["penstock.function"])
    assert function["version"] == function["sha256"]


def test_the_knobs_of_the_envelope_are_known(server: Server, table: str) -> None:
    knobs = {
        "batch_size": 7,
        "timeout_seconds": 2.5,
        "on_error": {"action": "retry", "max_attempts": 5, "match": ["ValueError"]},
        "needs": {"num_gpus": 1, "memory": 1024},
    }
    column = virtual_column(PAYLOAD, ["text"], {"len": "int32"}, knobs=knobs)
    add_function(server, table, column).raise_for_status()
    function = json.loads(metadata(server, table, "len")["penstock.function"])
    assert (function["batch_size"], function["timeout_seconds"]) == (7, 2.5)
    assert function["on_error"]["action"] == "retry"
    assert function["on_error"]["match"] == ["ValueError"]
    assert function["needs"] == {"num_cpus": None, "num_gpus": 1, "memory": 1024}


@pytest.mark.parametrize(
    ("paths", "kept"),
    [
        (["text", "id"], ["text", "id"]),
        (["st.x"], ["st.x"]),
        (["`st`.`y.z`.`w``v`"], ["st.`y.z`.`w``v`"]),
        (["st", "items"], ["st", "items"]),
    ],
)
def test_inputs_are_field_paths(
    server: Server, table: str, paths: list[str], kept: list[str]
) -> None:
    add_function(server, table, simple(input_columns=paths)).raise_for_status()
    assert json.loads(metadata(server, table, "len")["virtual_column.udf_inputs"]) == kept


def test_one_function_fills_several_columns(server: Server, table: str) -> None:
    outputs = {"a": "int32", "b": {"type": "utf8"}}
    column = virtual_column(PAYLOAD, ["text"], outputs, "batch")
    answer = add_function(server, table, column).raise_for_status()
    assert answer.json() == {"version": 2}
    first, second = metadata(server, table, "a"), metadata(server, table, "b")
    assert first["penstock.binding"] == second["penstock.binding"]
    assert first["virtual_column.unpack"] == "true"
    assert len(first["virtual_column.unpack_group"]) == 16
    assert (first["virtual_column.unpack_field"], second["virtual_column.unpack_field"]) == (
        "a",
        "b",
    )
    parts = [{"field": "a", "column": "a"}, {"field": "b", "column": "b"}]
    assert json.loads(first["virtual_column.unpack_fields"]) == parts


def test_what_a_client_says_of_several_columns_once_more_is_left_out(
    server: Server, table: str
) -> None:
    told = {"virtual_column.unpack": "true", "virtual_column.unpack_group": "0" * 16, "who": "me"}
    outputs = [make_output(name, "int64", struct_field=name, metadata=told) for name in "ab"]
    column = virtual_column(PAYLOAD, ["id"], outputs, udf=FOREIGN)
    add_function(server, table, column).raise_for_status()
    found = metadata(server, table, "a")
    assert (found["virtual_column.unpack_field"], found["who"]) == ("a", "me")
    assert found["virtual_column.unpack_group"] == found["penstock.binding"][:16]


def test_another_clients_function_that_names_no_inputs_reads_all_columns(
    server: Server, table: str
) -> None:
    names = open_by_path(server, table).schema.names
    add_function(server, table, simple(udf=FOREIGN, input_columns=[])).raise_for_status()
    altered = {"udf": FOREIGN, "udf_version": "2", "input_columns": []}
    for change in ({}, altered, {"udf": FOREIGN, "udf_version": "3"}):
        if change:
            alter_function(server, table, "len", **change).raise_for_status()
        found = metadata(server, table, "len")
        assert json.loads(found["penstock.function"])["inputs"] == names
        # That client checks that none are named, and cannot write down an empty list.
        assert found["virtual_column.udf_inputs"] == "null"
    body = {"alterations": [{"path": "text", "rename": "words"}]}
    server.post(f"/v1/table/{table}/alter_columns?cascade=true", body).raise_for_status()
    found = metadata(server, table, "len")
    assert "words" in json.loads(found["penstock.function"])["inputs"]
    assert found["virtual_column.udf_inputs"] == "null"
    refused = add_function(server, table, simple(outputs=[OUT], input_columns=[]))
    assert code(refused) == (400, 13)


def test_a_checksum_of_what_a_manifest_says_is_right_too(server: Server, table: str) -> None:
    says = {"conda": {}, "env_vars": {"A": "ü"}, "pip": ["numpy==2.4.6"], "zips": [[]]}
    text = json.dumps(says, sort_keys=True, separators=(",", ":"))
    checksum = hashlib.sha256(text.encode()).hexdigest()
    manifest = json.dumps({**says, "checksum": checksum, "name": "m", "created_by": "me"})
    column = simple(udf=FOREIGN, manifest=manifest, manifest_checksum=checksum)
    add_function(server, table, column).raise_for_status()
    assert metadata(server, table, "len")["virtual_column.manifest"] == manifest
    other = simple(outputs=[OUT], manifest=manifest, manifest_checksum="0" * 64)
    assert code(add_function(server, table, other)) == (400, 13)


def test_bound_columns_of_one_request_take_one_version(server: Server, table: str) -> None:
    columns = [{"name": "c", "computed": "id * 3"}, new_column(simple())]
    answer = ask(server, table, "add_columns", {"new_columns": columns}).raise_for_status()
    assert answer.json() == {"version": 2}
    columns = [{"name": "p", "expression": "id"}, new_column(simple(outputs=[OUT]))]
    answer = ask(server, table, "add_columns", {"new_columns": columns}).raise_for_status()
    assert answer.json() == {"version": 4}


OUT = make_output("out", "int32")
# Lance can't read what it writes of this.
STRUCTS = {
    "type": "fixed_size_list",
    "length": 2,
    "fields": [
        {
            "name": "item",
            "type": {"type": "struct", "fields": [{"name": "a", "type": "int8"}]},
        }
    ],
}
TEXTS = [make_output("a", "int32", struct_field="x"), make_output("b", "int32", struct_field="x")]


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"input_columns": ["nope"]}, (404, 12), "nope"),
        ({"input_columns": ["st.nope"]}, (404, 12), "st.nope"),
        ({"input_columns": []}, (400, 13), "input_columns"),
        ({"input_columns": ["text", "`text`"]}, (400, 13), "twice"),
        ({"input_columns": ["items.n"]}, (400, 13), "list"),
        ({"input_columns": ["a..b"]}, (400, 13), "path"),
        ({"input_columns": [5]}, (400, 13), "input_columns"),
        ({"input_columns": "text"}, (400, 13), "input_columns"),
        ({"outputs": []}, (400, 13), "outputs"),
        ({"outputs": [OUT, OUT]}, (400, 13), "outputs"),
        ({"outputs": TEXTS}, (400, 13), "struct_field"),
        (
            {"outputs": [OUT, make_output("b", "int32")], "udf": envelope(PAYLOAD, "arrow")},
            (400, 13),
            "batch",
        ),
        ({"outputs": [make_output("text", "int32")]}, (400, 20), "exists"),
        ({"outputs": [make_output("_rowid", "int32")]}, (400, 13), "_rowid"),
        ({"outputs": [make_output("a.b", "int32")]}, (400, 13), "a.b"),
        ({"outputs": [make_output("x", "strange")]}, (400, 13), "strange"),
        ({"outputs": [make_output("x", "null")]}, (400, 13), "null"),
        ({"outputs": [make_output("x", STRUCTS)]}, (400, 13), "fixed_size_list"),
        ({"outputs": [make_output("x", {"type": "list", "fields": [5]})]}, (400, 13), "list"),
        ({"outputs": [{"column": "x", "data_type": 5}]}, (400, 13), "data_type"),
        ({"outputs": [{"column": "x"}]}, (400, 13), "data_type"),
        ({"udf": "?"}, (400, 13), "udf is not base64"),
        ({"udf": ""}, (400, 13), "udf is empty"),
        ({"udf": None}, (400, 13), "udf"),
        ({"udf_name": ""}, (400, 13), "udf_name"),
        ({"udf_name": "a\x00"}, (400, 13), "udf_name"),
        ({"udf_version": 3}, (400, 13), "udf_version"),
        ({"manifest": "{"}, (400, 13), "manifest"),
        ({"manifest": '{"pip": 5}'}, (400, 13), "manifest"),
        ({"manifest": "{}", "manifest_checksum": "00"}, (400, 13), "manifest_checksum"),
        ({"manifest": "{}", "manifest_checksum": 5}, (400, 13), "manifest_checksum"),
        ({"manifest_checksum": "00"}, (400, 13), "manifest_checksum"),
        ({"field_metadata": {"a": 5}}, (400, 13), "field_metadata"),
        ({"field_metadata": {"virtual_column.udf": "x"}}, (400, 13), "virtual_column.udf"),
        ({"field_metadata": {"penstock.binding": "x"}}, (400, 13), "penstock.binding"),
        ({"outputs": [OUT | {"metadata": {"computed_column": "x"}}]}, (400, 13), "computed_column"),
        ({"auto_backfill": "yes"}, (400, 13), "auto_backfill"),
    ],
)
def test_what_cannot_be_declared_is_refused(
    server: Server, shared: str, more: dict[str, Any], error: tuple[int, int], says: str
) -> None:
    column = simple(**more)
    name = column["outputs"][0]["column"] if column["outputs"] else "x"
    body = {"new_columns": [{"name": name, "virtual_column": column}]}
    answer = ask(server, shared, "add_columns", body)
    assert code(answer) == error, answer.text
    assert says in answer.json()["error"] + answer.json().get("detail", "")
    assert open_by_path(server, shared).version == 1
    assert not (Path(open_by_path(server, shared).uri) / "_udfs").exists()


def test_the_column_is_one_of_its_outputs(server: Server, shared: str) -> None:
    body = {"new_columns": [{"name": "other", "virtual_column": simple()}]}
    answer = ask(server, shared, "add_columns", body)
    assert code(answer) == (400, 13)
    assert "'other'" in answer.json()["error"]


def test_a_wrong_checksum_names_both(server: Server, shared: str) -> None:
    right = hashlib.sha256(PAYLOAD).hexdigest()
    for udf in (
        virtual_column(PAYLOAD, [], {}, knobs={"sha256": "ab" * 32})["udf"],
        pack({"udf_pickle": b64(PAYLOAD), "udf_checksum": "ab" * 32}),
    ):
        answer = add_function(server, shared, simple(udf=udf))
        assert code(answer) == (400, 13)
        assert right in answer.json()["error"]
        assert "ab" * 32 in answer.json()["error"]


@pytest.mark.parametrize("kind", ["expression", "computed"])
def test_two_new_columns_have_two_names(server: Server, shared: str, kind: str) -> None:
    columns = [{"name": "len", kind: "id"}, new_column(simple())]
    answer = ask(server, shared, "add_columns", {"new_columns": columns})
    assert code(answer) == (400, 13)


def test_a_refused_function_keeps_plain_columns_back_too(server: Server, shared: str) -> None:
    columns = [{"name": "p", "expression": "id"}, new_column(simple(input_columns=["nope"]))]
    assert code(ask(server, shared, "add_columns", {"new_columns": columns})) == (404, 12)
    assert open_by_path(server, shared).version == 1
