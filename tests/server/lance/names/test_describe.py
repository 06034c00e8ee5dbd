"""DescribeTable: every option, as a query parameter and in the body."""

from typing import Any

import httpx
import lance
import pyarrow as pa
import pytest

from tests.harness.data.manifests import commit_by_path
from tests.harness.data.tables import Table, code

DETAILS = {"schema", "stats", "metadata", "version", "table", "namespace"}


@pytest.fixture
def written(table: Table) -> Table:
    """Two versions on main, a branch `dev` with a third, the tags `one` and `of-dev`."""
    place = str(table.location)
    first = pa.table({"n": pa.array([1, 2, 3], pa.int64())}).replace_schema_metadata({"k": "v"})
    dataset = lance.write_dataset(first, place)
    dataset.tags.create("one", 1)
    dataset.add_columns({"m": "n + 1"})
    branch = dataset.create_branch("dev")
    branch.delete("n = 1")
    dataset.tags.create("of-dev", ("dev", branch.version))
    return table


def ask(table: Table, how: str, **options: Any) -> httpx.Response:
    """Describe with options as `query` or `body`."""
    if how == "query":
        return table.ask("describe", **{k: str(v).lower() for k, v in options.items()})
    return table.ask("describe", options)


both_ways = pytest.mark.parametrize("how", ["query", "body"])


def test_nothing_is_opened_without_being_asked(written: Table) -> None:
    found = written.ask("describe").json()
    assert found["location"] == str(written.location)
    assert found["properties"] == {}
    assert not (DETAILS | {"table_uri", "is_only_declared"}) & found.keys()


@both_ways
def test_the_uri_is_complete(table: Table, how: str) -> None:
    found = ask(table, how, with_table_uri=True).json()
    assert found["table_uri"] == f"file://{table.location}"
    assert "table_uri" not in ask(table, how, with_table_uri=False).json()


@both_ways
def test_a_declared_table_is_known_as_such(table: Table, how: str) -> None:
    assert ask(table, how, check_declared=True).json()["is_only_declared"] is True
    assert "is_only_declared" not in ask(table, how, check_declared=False).json()
    table.commit(1)
    assert ask(table, how, check_declared=True).json()["is_only_declared"] is False


@both_ways
def test_details_are_read_from_the_dataset(written: Table, how: str) -> None:
    found = ask(written, how, load_detailed_metadata=True).json()
    assert (found["table"], found["namespace"]) == ("t", written.parts[:1])
    assert found["version"] == 2
    assert [field["name"] for field in found["schema"]["fields"]] == ["n", "m"]
    assert found["stats"] == {"num_deleted_rows": 0, "num_fragments": 1}
    assert found["metadata"]["k"] == "v"
    assert found["is_only_declared"] is False


@both_ways
def test_details_of_a_declared_table_say_that_it_is_one(table: Table, how: str) -> None:
    found = ask(table, how, load_detailed_metadata=True).json()
    assert found["is_only_declared"] is True
    assert found["location"] == str(table.location)
    assert "schema" not in found


def test_an_older_version_has_its_own_schema(written: Table) -> None:
    body = {"version": 1, "load_detailed_metadata": True}
    found = written.ask("describe", body).json()
    assert found["version"] == 1
    assert [field["name"] for field in found["schema"]["fields"]] == ["n"]


def test_a_tag_leads_to_its_version(written: Table) -> None:
    found = written.ask("describe", {"tag": "one", "load_detailed_metadata": True}).json()
    assert found["version"] == 1
    assert len(found["schema"]["fields"]) == 1


def test_a_branch_has_its_own_newest_version(written: Table) -> None:
    found = written.ask("describe", {"branch": "dev", "load_detailed_metadata": True}).json()
    assert found["version"] == 3
    assert found["stats"]["num_deleted_rows"] == 1


def test_main_is_a_branch_too(written: Table) -> None:
    body = {"branch": "main", "load_detailed_metadata": True}
    assert written.ask("describe", body).json()["version"] == 2


def test_a_version_of_a_branch_is_found(written: Table) -> None:
    body = {"branch": "dev", "version": 3, "load_detailed_metadata": True}
    assert written.ask("describe", body).json()["version"] == 3
    assert code(written.ask("describe", {"version": 3})) == (404, 11)


def test_a_tag_may_lead_to_a_branch(written: Table) -> None:
    found = written.ask("describe", {"tag": "of-dev", "load_detailed_metadata": True}).json()
    assert found["version"] == 3
    assert found["stats"]["num_deleted_rows"] == 1


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"version": 99}, (404, 11)),
        ({"version": 99, "load_detailed_metadata": True}, (404, 11)),
        ({"version": 0}, (404, 11)),
        ({"version": -1}, (400, 13)),
        ({"version": "1"}, (400, 13)),
        ({"tag": "none"}, (404, 8)),
        ({"tag": "../x"}, (400, 13)),
        ({"tag": "a/b"}, (400, 13)),
        ({"branch": "none"}, (404, 22)),
        ({"branch": "none", "version": 1}, (404, 22)),
        ({"branch": "dev", "version": 99}, (404, 11)),
        ({"branch": "../x"}, (400, 13)),
        ({"tag": "one", "version": 1}, (400, 13)),
        ({"tag": "one", "branch": "dev"}, (400, 13)),
        ({"with_table_uri": "yes"}, (400, 13)),
    ],
)
def test_what_is_not_there_is_said(
    written: Table, body: dict[str, Any], wanted: tuple[int, int]
) -> None:
    assert code(written.ask("describe", body)) == wanted


def test_a_version_of_a_declared_table_is_not_there(table: Table) -> None:
    assert code(table.ask("describe", {"version": 1})) == (404, 11)


def test_a_flag_is_true_or_false(table: Table) -> None:
    for flag in ("with_table_uri", "load_detailed_metadata", "check_declared"):
        assert code(table.ask("describe", **{flag: "perhaps"})) == (400, 13)


@pytest.mark.parametrize("vend", [True, False, None])
def test_credentials_need_no_store_to_be_asked_for(table: Table, vend: bool | None) -> None:
    found = table.ask("describe", {"vend_credentials": vend})
    assert found.status_code == 200
    assert not found.json().get("storage_options")


def test_a_damaged_table_is_no_fault_of_the_server(table: Table) -> None:
    commit_by_path(table.location, 1).write_bytes(b"no manifest at all")
    answer = table.ask("describe", {"load_detailed_metadata": True})
    assert answer.is_error
    assert answer.json()["code"] != 18
    assert table.ask("describe").status_code == 200
