"""Computed columns: declared by an expression, without values, and bound to what they read."""

import json
from typing import Any

import lancedb
import pyarrow as pa
import pytest

from tests.harness.data.tables import ask, code, metadata, open_by_path
from tests.harness.jobs.fake_runner import add_computed, make_table
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "text": ["a", "bb", "ccc"],
        "st": pa.array([{"x": 1, "y.z": 2}] * 3),
        "a, b": pa.array([1, 2, 3], pa.int32()),
        "now": pa.array([1, 2, 3], pa.int32()),
    }
)


@pytest.fixture
def table(server: Server) -> str:
    return make_table(server, ROWS)


def bindings(server: Server, table: str) -> dict[str, list[str]]:
    """The computed columns that a detailed description shows, and what they read."""
    schema = ask(server, table, "describe", {"load_detailed_metadata": True}).json()["schema"]
    return {
        field["name"]: json.loads(field["metadata"]["computed_column.inputs"])
        for field in schema["fields"]
        if field.get("metadata", {}).get("computed_column") == "true"
    }


def test_a_computed_column_has_no_values_yet(server: Server, table: str) -> None:
    answer = add_computed(server, table, len="length(text)")
    assert (answer.status_code, answer.json()) == (200, {"version": 2})
    dataset = open_by_path(server, table)
    assert dataset.to_table()["len"].to_pylist() == [None] * 3
    assert len(dataset.get_fragments()[0].data_files()) == 1


def test_the_binding_is_in_the_fields_metadata(server: Server, table: str) -> None:
    add_computed(server, table, len="length(text)").raise_for_status()
    found = metadata(server, table, "len")
    assert found["computed_column"] == "true"
    assert found["computed_column.kind"] == "sql"
    assert found["computed_column.expression"] == "length(text)"
    assert json.loads(found["computed_column.inputs"]) == ["text"]


@pytest.mark.parametrize(
    ("expression", "kind", "inputs"),
    [
        ("length(text)", pa.int32(), ["text"]),
        ("st.x + id", pa.int64(), ["id", "st.x"]),
        ("st['x'] + 1", pa.int64(), ["st.x"]),
        ("st.`y.z` * 2", pa.int64(), ["st.`y.z`"]),
        ("st", ROWS.schema.field("st").type, ["st"]),
        ("`a, b` + id", pa.int64(), ["id", "a, b"]),
        ("text || 'id'", pa.string(), ["text"]),
        ("text = 'id, text'", pa.bool_(), ["text"]),
        ("now + 1", pa.int32(), ["now"]),
        ("concat(text, ',', text)", pa.string(), ["text"]),
        ("CAST(id AS DOUBLE) / 2", pa.float64(), ["id"]),
        ("CAST(id AS TIMESTAMP)", pa.timestamp("us"), ["id"]),
        ("5", pa.int64(), []),
    ],
)
def test_type_and_inputs_are_inferred(
    server: Server, table: str, expression: str, kind: pa.DataType, inputs: list[str]
) -> None:
    answer = add_computed(server, table, new=expression)
    assert answer.status_code == 200, answer.text
    assert open_by_path(server, table).schema.field("new").type == kind
    assert sorted(bindings(server, table)["new"]) == sorted(inputs)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("nope + 1", (404, 12)),
        ("text >", (400, 13)),
        ("", (400, 13)),
        ("NULL", (400, 13)),
        ("id, text", (400, 13)),
        ("id; id", (400, 13)),
        ("random()", (400, 13)),
        ("id + random()", (400, 13)),
        ("now()", (400, 13)),
        ("CURRENT_DATE", (400, 13)),
        ("uuid()", (400, 13)),
        ("_rowid", (400, 13)),
        ("count(id)", (400, 13)),
        ("(SELECT 1)", (400, 13)),
        ("id + " * 3000 + "id", (400, 13)),
        ("no_such_function(id)", (400, 13)),
    ],
)
def test_what_cannot_be_computed_is_refused(
    server: Server, table: str, expression: str, error: tuple[int, int]
) -> None:
    answer = add_computed(server, table, new=expression)
    assert code(answer) == error, answer.text
    assert open_by_path(server, table).version == 1


def test_a_name_that_is_taken_is_refused(server: Server, table: str) -> None:
    assert code(add_computed(server, table, text="id")) == (400, 20)


@pytest.mark.parametrize("more", [{"expression": "1"}, {"virtual_column": {}}])
def test_a_column_has_one_definition(server: Server, table: str, more: dict[str, Any]) -> None:
    body = {"new_columns": [{"name": "n", "computed": "id"} | more]}
    assert code(ask(server, table, "add_columns", body)) == (400, 13)


def test_plain_and_computed_columns_in_one_request(server: Server, table: str) -> None:
    columns = [{"name": "p", "expression": "id * 2"}, {"name": "c", "computed": "id * 3"}]
    ask(server, table, "add_columns", {"new_columns": columns}).raise_for_status()
    found = open_by_path(server, table).to_table()
    assert (found["p"].to_pylist(), found["c"].to_pylist()) == ([2, 4, 6], [None] * 3)


def test_of_both_kinds_none_is_added_when_one_is_wrong(server: Server, table: str) -> None:
    columns = [{"name": "p", "expression": "id * 2"}, {"name": "c", "computed": "nope"}]
    assert code(ask(server, table, "add_columns", {"new_columns": columns})) == (404, 12)
    assert open_by_path(server, table).version == 1


def test_a_computed_column_may_read_another(server: Server, table: str) -> None:
    add_computed(server, table, len="length(text)").raise_for_status()
    add_computed(server, table, twice="len * 2").raise_for_status()
    assert bindings(server, table) == {"len": ["text"], "twice": ["len"]}


def test_lancedb_reads_our_binding_and_we_read_its(server: Server, table: str) -> None:
    add_computed(server, table, len="length(text)").raise_for_status()
    location = ask(server, table, "describe").json()["location"]
    folder, name = location.removesuffix(".lance").rsplit("/", 1)
    opened = lancedb.connect(folder).open_table(name)
    assert opened.refresh_column("len").rows_filled == 3
    opened.add_columns(computed={"up": "upper(text)"})
    assert bindings(server, table) == {"len": ["text"], "up": ["text"]}
    assert code(ask(server, table, "drop_columns", {"columns": ["text"]})) == (400, 13)
    answer = ask(server, table, "explain_backfill", {"column": "up"})
    assert (answer.status_code, answer.json()["rows_to_update"]) == (200, 3)


@pytest.mark.parametrize("path", ["text", "st", "st.x"])
def test_what_a_computed_column_reads_is_neither_renamed_nor_dropped(
    server: Server, table: str, path: str
) -> None:
    add_computed(server, table, joined="text || CAST(st.x AS string)").raise_for_status()
    before = open_by_path(server, table).version
    rename = {"alterations": [{"path": path, "rename": "other"}]}
    for answer in (
        ask(server, table, "alter_columns", rename),
        ask(server, table, "drop_columns", {"columns": [path]}),
    ):
        assert code(answer) == (400, 13)
        assert "'joined'" in answer.json()["error"]
    assert open_by_path(server, table).version == before


def test_what_nothing_reads_is_renamed_and_dropped(server: Server, table: str) -> None:
    add_computed(server, table, len="length(text)").raise_for_status()
    rename = {"alterations": [{"path": "id", "rename": "key"}]}
    ask(server, table, "alter_columns", rename).raise_for_status()
    ask(server, table, "drop_columns", {"columns": ["st.`y.z`", "key"]}).raise_for_status()


def test_an_input_goes_together_with_what_reads_it(server: Server, table: str) -> None:
    add_computed(server, table, len="length(text)").raise_for_status()
    ask(server, table, "drop_columns", {"columns": ["text", "len"]}).raise_for_status()
    assert bindings(server, table) == {}


def test_a_dropped_computed_column_sets_its_input_free(server: Server, table: str) -> None:
    add_computed(server, table, len="length(text)").raise_for_status()
    ask(server, table, "drop_columns", {"columns": ["len"]}).raise_for_status()
    ask(server, table, "drop_columns", {"columns": ["text"]}).raise_for_status()


def test_a_renamed_computed_column_stays_bound(server: Server, table: str) -> None:
    add_computed(server, table, len="length(text)").raise_for_status()
    rename = {"alterations": [{"path": "len", "rename": "length"}]}
    ask(server, table, "alter_columns", rename).raise_for_status()
    assert bindings(server, table) == {"length": ["text"]}
    assert ask(server, table, "backfill_column", {"column": "length"}).status_code == 202
    assert code(ask(server, table, "backfill_column", {"column": "len"})) == (404, 12)


def test_the_expression_decides_the_type(server: Server, table: str) -> None:
    add_computed(server, table, len="length(text)").raise_for_status()
    retype = {"alterations": [{"path": "len", "data_type": {"type": "int64"}}]}
    assert code(ask(server, table, "alter_columns", retype)) == (400, 13)


def test_metadata_beside_the_binding_can_be_changed(server: Server, table: str) -> None:
    add_computed(server, table, len="length(text)").raise_for_status()
    bound = metadata(server, table, "len")
    for replace in (False, True):
        update = {"path": "len", "metadata": {"note": "x"}, "replace": replace}
        ask(server, table, "update_field_metadata", {"updates": [update]}).raise_for_status()
        found = metadata(server, table, "len")
        assert found["note"] == "x"
        assert {k: v for k, v in found.items() if "column" in k or "binding" in k} == {
            k: v for k, v in bound.items() if "column" in k or "binding" in k
        }


@pytest.mark.parametrize("path", ["len", "id"])
@pytest.mark.parametrize("value", ["id", None])
def test_the_binding_itself_cannot_be_changed_as_metadata(
    server: Server, table: str, path: str, value: str | None
) -> None:
    add_computed(server, table, len="length(text)").raise_for_status()
    if path == "id" and value is None:
        return
    update = {"path": path, "metadata": {"computed_column.expression": value}}
    answer = ask(server, table, "update_field_metadata", {"updates": [update]})
    assert code(answer) == (400, 13)


def test_a_branch_has_its_own_columns(server: Server, table: str) -> None:
    ask(server, table, "branches/create", {"name": "dev"}).raise_for_status()
    add_computed(server, table, branch="dev", len="length(text)").raise_for_status()
    assert "len" in open_by_path(server, table, "dev").schema.names
    assert "len" not in open_by_path(server, table).schema.names
    body = {"column": "len", "branch": "dev"}
    assert ask(server, table, "backfill_column", body).status_code == 202
    assert code(ask(server, table, "backfill_column", {"column": "len"})) == (404, 12)
