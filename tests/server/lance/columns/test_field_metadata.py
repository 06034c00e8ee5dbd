"""UpdateFieldMetadata and UpdateTableSchemaMetadata."""

from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.harness.clients.generated import Client as Generated
from tests.harness.clients.generated import generated, models
from tests.harness.clients.pylance import Client, connect
from tests.harness.data.tables import Table, code, get_table
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

DATA = pa.table(
    {"n": [1, 2], "s": ["a", "b"], "st": pa.array([{"x.y": 1}] * 2)},
    schema=pa.schema(
        [
            pa.field("n", pa.int64(), metadata={"old": "1"}),
            pa.field("s", pa.string(), metadata={"old": "1"}),
            pa.field("st", pa.struct([pa.field("x.y", pa.int64())])),
        ],
        metadata={"owner": "me"},
    ),
)


@pytest.fixture
def table(server: Server, namespace: str) -> Table:
    """A table with one version, with metadata, and a branch `dev` of it."""
    client = Client(connect(server), [namespace, "t"])
    lance.write_dataset(DATA, mode="create", **client.target)
    table = get_table(server, f"{namespace}$t")
    assert table.ask("branches/create", {"name": "dev"}).status_code == 200
    return table


def update(table: Table, *updates: dict[str, Any], branch: str | None = None) -> Any:
    return table.ask("update_field_metadata", {"updates": list(updates), "branch": branch})


def set_schema(table: Table, values: Any, **params: Any) -> Any:
    return table.ask("schema_metadata/update", values, **params)


def fields(table: Table, branch: str | None = None) -> dict[str, Any]:
    body = {"load_detailed_metadata": True, "branch": branch}
    found = table.ask("describe", body).json()["schema"]
    return {field["name"]: field.get("metadata", {}) for field in found["fields"]}


def test_values_are_merged(table: Table) -> None:
    answer = update(table, {"path": "n", "metadata": {"a": "1"}})
    assert answer.json() == {"version": 2, "fields": {"n": {"old": "1", "a": "1"}}}
    assert fields(table) == {"n": {"old": "1", "a": "1"}, "s": {"old": "1"}, "st": {}}
    assert table.listed() == [1, 2]


def test_null_removes_a_key(table: Table) -> None:
    answer = update(table, {"path": "n", "metadata": {"old": None, "a": "1", "absent": None}})
    assert answer.json()["fields"] == {"n": {"a": "1"}}


def test_replace_leaves_nothing_else(table: Table) -> None:
    answer = update(table, {"path": "n", "metadata": {"a": "1", "b": None}, "replace": True})
    assert answer.json()["fields"] == {"n": {"a": "1"}}


def test_each_field_has_its_own_way_in_one_version(table: Table) -> None:
    answer = update(
        table,
        {"path": "n", "metadata": {"a": "1"}, "replace": True},
        {"path": "s", "metadata": {"a": "1", "b": None}},
        {"path": "st.`x.y`", "metadata": {"unit": "m"}},
    )
    assert answer.json() == {
        "version": 2,
        "fields": {"n": {"a": "1"}, "s": {"old": "1", "a": "1"}, "st.`x.y`": {"unit": "m"}},
    }


def test_updates_of_one_field_follow_each_other(table: Table) -> None:
    answer = update(
        table,
        {"path": "n", "metadata": {"a": "1", "b": "1"}},
        {"path": "`n`", "metadata": {"a": "2"}},
    )
    assert answer.json()["fields"] == {"n": {"old": "1", "a": "2", "b": "1"}}


def test_the_published_client_reads_the_answer(table: Table, server: Server) -> None:
    entry = models.UpdateFieldMetadataEntry(path="n", metadata={"a": "1"}, replace=True)
    request = models.UpdateFieldMetadataRequest(updates=[entry])
    answer = Generated(server.url).update_field_metadata(table.id, request)
    assert (answer.version, answer.fields) == (2, {"n": {"a": "1"}})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"updates": []}, (400, 13)),
        ({"updates": [{"path": "n"}]}, (400, 13)),
        ({"updates": [{"path": "n", "metadata": {"a": 1}}]}, (400, 13)),
        ({"updates": [{"path": "", "metadata": {}}]}, (400, 13)),
        ({"updates": [{"path": "`n", "metadata": {}}]}, (400, 13)),
        ({"updates": [{"path": "missing", "metadata": {"a": "1"}}]}, (404, 12)),
        ({"updates": [{"path": "n", "metadata": {}}], "branch": "missing"}, (404, 22)),
    ],
)
def test_bad_updates_are_refused(
    table: Table, body: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert code(table.ask("update_field_metadata", body)) == expected
    assert table.listed() == [1]


def test_the_schemas_metadata_is_replaced(table: Table) -> None:
    answer = set_schema(table, {"a": "1", "ü": "ö"})
    assert answer.json() == {"a": "1", "ü": "ö"}
    found = table.ask("describe", {"load_detailed_metadata": True}).json()
    assert found["metadata"] == {"a": "1", "ü": "ö"}
    assert table.listed() == [1, 2]


def test_the_published_client_sends_a_bare_map(table: Table, server: Server) -> None:
    client = generated.ApiClient(generated.Configuration(host=server.url))
    answer = generated.TableApi(client).update_table_schema_metadata(table.id, {"k": "v"})
    assert answer == {"k": "v"}


@pytest.mark.parametrize("body", [None, [], "x", {"a": 1}, {"metadata": {"a": "1"}}])
def test_what_is_no_map_of_strings_is_refused(table: Table, body: Any) -> None:
    assert code(set_schema(table, body)) == (400, 13)
    assert table.listed() == [1]


def test_a_branch_changes_alone(table: Table) -> None:
    assert update(table, {"path": "s", "metadata": {"b": "1"}}, branch="dev").json() == {
        "version": 2,
        "fields": {"s": {"old": "1", "b": "1"}},
    }
    assert set_schema(table, {"of": "dev"}, branch="dev").json() == {"of": "dev"}
    assert fields(table)["s"] == {"old": "1"}
    assert fields(table, "dev")["s"] == {"old": "1", "b": "1"}
    main = table.ask("describe", {"load_detailed_metadata": True}).json()
    assert main["metadata"] == {"owner": "me"}
    assert (table.listed(), table.listed(branch="dev")) == ([1], [1, 2, 3])


def test_what_is_missing_is_named(table: Table, server: Server, namespace: str) -> None:
    assert code(set_schema(table, {}, branch="missing")) == (404, 22)
    for operation, body in (
        ("update_field_metadata", {"updates": [{"path": "n", "metadata": {}}]}),
        ("schema_metadata/update", {}),
    ):
        assert code(server.post(f"/v1/table/{namespace}$gone/{operation}", body)) == (404, 4)
        assert code(server.post(f"/v1/table/nowhere$gone/{operation}", body)) == (404, 1)
