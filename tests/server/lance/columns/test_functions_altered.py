"""Virtual columns after their declaration: new versions of a function, renames, drops, values."""

import hashlib
import json
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.data.arrow import send
from tests.harness.data.functions import (
    add_function,
    alter_function,
    b64,
    envelope,
    make_output,
    virtual_column,
)
from tests.harness.data.tables import ask, code, metadata, open_by_path
from tests.harness.jobs.fake_runner import make_table
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "text": ["a", "bb"], "other": ["x", "y"]})
OLD, NEW = b"\x80\x05N.", b"\x80\x05K\x01."


@pytest.fixture
def table(server: Server) -> str:
    return with_functions(server)


@pytest.fixture(scope="module")
def shared(server: Server) -> str:
    """A table for requests that change nothing."""
    return with_functions(server)


def with_functions(server: Server) -> str:
    """A table with `len` by one function, and `a` and `b` by another."""
    id = make_table(server, ROWS)
    one = virtual_column(OLD, ["text"], {"len": "int32"}, name="length")
    both = virtual_column(OLD, ["text"], {"a": "int32", "b": "utf8"}, "batch", name="pair")
    add_function(server, id, one, both).raise_for_status()
    return id


def function(server: Server, table: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(metadata(server, table, name)["penstock.function"])
    return found


def spec(server: Server, table: str, column: str) -> dict[str, Any]:
    """What a runner would get now; the job is left to wait."""
    id = ask(server, table, "backfill_column", {"column": column}).raise_for_status().json()
    found = server.post("/v1/jobs/describe", {"job_id": id["job_id"]}).raise_for_status().json()
    made: dict[str, Any] = found["spec"]
    return made if isinstance(made, dict) else json.loads(made)


def rename(server: Server, table: str, **names: str) -> Any:
    alterations = [{"path": old, "rename": new} for old, new in names.items()]
    return ask(server, table, "alter_columns", {"alterations": alterations})


def test_a_column_gets_another_version_of_its_function(server: Server, table: str) -> None:
    before = metadata(server, table, "len")
    answer = alter_function(server, table, "len", udf=envelope(NEW), udf_version="2")
    assert (answer.status_code, answer.json()) == (200, {"version": 3})
    after = metadata(server, table, "len")
    found = function(server, table, "len")
    assert (found["version"], found["name"], found["inputs"]) == ("2", "length", ["text"])
    assert found["sha256"] in after["virtual_column.udf"] != before["virtual_column.udf"]
    assert after["penstock.binding"] == before["penstock.binding"]


def test_other_code_of_the_same_version_is_no_other_function(server: Server, table: str) -> None:
    before = function(server, table, "len")
    alter_function(server, table, "len", udf=envelope(NEW), udf_version="1").raise_for_status()
    after = function(server, table, "len")
    assert after["version"] == before["version"]
    assert after["sha256"] != before["sha256"]


def test_code_without_a_version_is_told_by_its_hash(server: Server, table: str) -> None:
    udf = b64(NEW)
    alter_function(server, table, "len", udf=udf).raise_for_status()
    assert function(server, table, "len")["version"] == hashlib.sha256(NEW).hexdigest()


def test_the_columns_of_a_function_change_together(server: Server, table: str) -> None:
    udf = envelope(NEW, "batch", batch_size=5)
    answer = alter_function(server, table, "b", udf=udf, udf_version="2", auto_backfill=True)
    assert answer.json() == {"version": 3}
    first, second = metadata(server, table, "a"), metadata(server, table, "b")
    assert first["penstock.function"] == second["penstock.function"]
    assert json.loads(first["penstock.function"])["batch_size"] == 5
    assert first["virtual_column.auto_backfill"] == "true"
    assert (first["virtual_column.unpack_field"], second["virtual_column.unpack_field"]) == (
        "a",
        "b",
    )


def test_what_is_not_named_stays(server: Server, table: str) -> None:
    before = metadata(server, table, "len")
    fields: dict[str, Any] = {
        "auto_backfill": True,
        "image": "i",
        "udf_backend": "B",
        "manifest": "{}",
    }
    alter_function(
        server, table, "len", **fields, field_metadata={"owner": "me"}
    ).raise_for_status()
    alter_function(server, table, "len", udf_name="size").raise_for_status()
    after = metadata(server, table, "len")
    assert after["virtual_column.udf"] == before["virtual_column.udf"]
    assert after["virtual_column.manifest"] == "{}"
    assert after["virtual_column.image"] == "i"
    assert after["virtual_column.udf_backend"] == "B"
    assert after["virtual_column.auto_backfill"] == "true"
    assert (after["owner"], after["virtual_column.udf_name"]) == ("me", "size")


def test_with_other_inputs_it_is_another_function(server: Server, table: str) -> None:
    before = metadata(server, table, "len")
    alter_function(server, table, "len", input_columns=["other"]).raise_for_status()
    found = function(server, table, "len")
    assert found["inputs"] == ["other"]
    assert found["version"].startswith("1+")
    assert metadata(server, table, "len")["penstock.binding"] != before["penstock.binding"]
    assert code(rename(server, table, other="more")) == (400, 13)


@pytest.mark.parametrize(
    ("path", "column", "error", "says"),
    [
        ("nope", {"udf_version": "2"}, (404, 12), "nope"),
        ("text", {"udf_version": "2"}, (400, 13), "not computed"),
        ("len", {}, (400, 13), "changes nothing"),
        ("len", {"outputs": []}, (400, 13), "outputs"),
        ("len", {"udf": "?"}, (400, 13), "udf"),
        ("len", {"udf_version": ""}, (400, 13), "udf_version"),
        ("len", {"input_columns": []}, (400, 13), "input_columns"),
        ("len", {"input_columns": ["nope"]}, (404, 12), "nope"),
        ("len", {"input_columns": ["len"]}, (400, 13), "itself"),
        ("a", {"input_columns": ["b"]}, (400, 13), "itself"),
        ("a", {"udf": envelope(NEW, "arrow")}, (400, 13), "arrow"),
        ("len", {"manifest": "[]"}, (400, 13), "manifest"),
        ("len", {"manifest": "{}", "manifest_checksum": "1"}, (400, 13), "manifest_checksum"),
        ("len", {"field_metadata": {"penstock.function": "{}"}}, (400, 13), "penstock.function"),
    ],
)
def test_what_cannot_be_altered_is_refused(
    server: Server,
    shared: str,
    path: str,
    column: dict[str, Any],
    error: tuple[int, int],
    says: str,
) -> None:
    answer = alter_function(server, shared, path, **column)
    assert code(answer) == error, answer.text
    assert says in answer.json()["error"] + answer.json()["detail"]
    assert open_by_path(server, shared).version == 2


def test_a_circle_through_another_column_is_refused(server: Server, table: str) -> None:
    on_len = virtual_column(OLD, ["len"], {"twice": "int32"})
    add_function(server, table, on_len).raise_for_status()
    answer = alter_function(server, table, "len", input_columns=["twice"])
    assert code(answer) == (400, 13)
    assert "itself" in answer.json()["error"]


def test_a_column_computed_by_sql_has_no_function_to_alter(server: Server, table: str) -> None:
    new = {"new_columns": [{"name": "c", "computed": "id + 1"}]}
    ask(server, table, "add_columns", new).raise_for_status()
    answer = alter_function(server, table, "c", udf_version="2")
    assert code(answer) == (400, 13)
    assert "virtual_column" in answer.json()["detail"]


def test_a_function_and_a_name_change_in_one_request(server: Server, table: str) -> None:
    change = {"path": "len", "rename": "size", "virtual_column": {"udf_version": "2"}}
    ask(server, table, "alter_columns", {"alterations": [change]}).raise_for_status()
    assert function(server, table, "size")["version"] == "2"
    change = {
        "path": "size",
        "data_type": {"type": "int64"},
        "virtual_column": {"udf_version": "3"},
    }
    answer = ask(server, table, "alter_columns", {"alterations": [change]})
    assert code(answer) == (400, 13)
    assert "drop it" in answer.json()["detail"]
    assert function(server, table, "size")["version"] == "2"


def test_one_function_is_altered_in_one_way(server: Server, table: str) -> None:
    changes = [
        {"path": "a", "virtual_column": {"udf_version": "2"}},
        {"path": "b", "virtual_column": {"udf_version": "3"}},
    ]
    answer = ask(server, table, "alter_columns", {"alterations": changes})
    assert code(answer) == (400, 13)
    changes[1]["virtual_column"] = {"udf_version": "2"}
    ask(server, table, "alter_columns", {"alterations": changes}).raise_for_status()
    assert function(server, table, "b")["version"] == "2"


def test_the_columns_of_a_function_are_dropped_together(server: Server, table: str) -> None:
    answer = ask(server, table, "drop_columns", {"columns": ["a"]})
    assert code(answer) == (400, 13)
    assert "together with b" in answer.json()["error"]
    ask(server, table, "drop_columns", {"columns": ["a", "b"]}).raise_for_status()
    assert open_by_path(server, table).schema.names == ["id", "text", "other", "len"]


@pytest.mark.parametrize("column", ["size", "len", "b"])
def test_a_renamed_column_stays_bound(server: Server, table: str, column: str) -> None:
    rename(server, table, a="size").raise_for_status()
    if column == "b":
        rename(server, table, size="b", b="a").raise_for_status()
    found = spec(server, table, column)
    columns = {"size": ["size", "b"], "len": ["len"], "b": ["b", "a"]}[column]
    assert found["columns"] == columns
    assert [output["column"] for output in found["function"]["outputs"]] == columns


def test_what_a_function_reads_is_neither_renamed_nor_dropped(server: Server, shared: str) -> None:
    for answer in (
        rename(server, shared, text="t"),
        ask(server, shared, "drop_columns", {"columns": ["text", "len"]}),
    ):
        assert code(answer) == (400, 13)
        assert "reads text" in answer.json()["error"]


def test_a_functions_column_takes_no_values(server: Server, table: str) -> None:
    rows = pa.table({"id": [3], "text": ["c"], "len": pa.array([5], pa.int32())})
    assert code(send(server, f"/v1/table/{table}/insert", rows)) == (400, 13)
    update = {"updates": [["len", "5"]]}
    assert code(ask(server, table, "update", update)) == (400, 13)
    update = {"updates": [["len", "NULL"], ["id", "9"]]}
    ask(server, table, "update", update).raise_for_status()


@pytest.mark.parametrize(
    "change", [{"data_type": {"type": "int64"}}, {"nullable": False}, {"rename": "text"}]
)
def test_the_function_decides_type_and_nulls(
    server: Server, shared: str, change: dict[str, Any]
) -> None:
    answer = ask(server, shared, "alter_columns", {"alterations": [{"path": "len"} | change]})
    assert answer.status_code == 400


def test_a_part_of_a_computed_struct_is_left_alone(server: Server, table: str) -> None:
    kind = {
        "type": "struct",
        "fields": [{"name": "x", "type": "int8"}, {"name": "y", "type": "int8"}],
    }
    column = virtual_column(OLD, ["text"], [make_output("st", kind)])
    add_function(server, table, column).raise_for_status()
    assert code(ask(server, table, "drop_columns", {"columns": ["st.x"]})) == (400, 13)
    change = {"alterations": [{"path": "st.x", "rename": "z"}]}
    assert code(ask(server, table, "alter_columns", change)) == (400, 13)


def test_the_binding_is_no_metadata_to_change(server: Server, table: str) -> None:
    before = metadata(server, table, "len")
    for key in ("virtual_column.udf", "penstock.function", "penstock.binding"):
        update = {"path": "len", "metadata": {key: "x"}}
        answer = ask(server, table, "update_field_metadata", {"updates": [update]})
        assert code(answer) == (400, 13)
    note = {"path": "len", "metadata": {"note": "x"}, "replace": True}
    ask(server, table, "update_field_metadata", {"updates": [note]}).raise_for_status()
    assert metadata(server, table, "len") == before | {"note": "x"}
