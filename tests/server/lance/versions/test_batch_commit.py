"""BatchCommitTables: operations of four types, all or nothing, results in order."""

from typing import Any

import pytest

from tests.harness.data.manifests import commit_by_path, stage
from tests.harness.data.tables import Table, code, declare, new_name
from tests.harness.processes.servers import Server

BATCH_COMMIT = "/v1/table/batch-commit"
ALL = {"ranges": [{"start_version": 0, "end_version": -1}]}


def test_an_operation_is_one_thing(server: Server, namespace: str) -> None:
    both = {
        "declare_table": {"id": [namespace, "new"]},
        "deregister_table": {"id": [namespace, "new"]},
    }
    assert code(server.post(BATCH_COMMIT, {"operations": [both]})) == (400, 13)


def mixed(namespace: str, tables: list[Table]) -> list[dict[str, Any]]:
    """One operation of each type."""
    return [
        {"declare_table": {"id": [namespace, "new"], "properties": {"a": "b"}}},
        {"create_table_version": tables[0].entry(2)},
        {"delete_table_versions": {"id": tables[1].parts} | ALL},
        {"deregister_table": {"id": tables[2].parts}},
    ]


def test_the_four_types_mix_and_answer_in_order(
    server: Server, namespace: str, tables: list[Table]
) -> None:
    operations = mixed(namespace, tables)[::-1]
    answer = server.post(BATCH_COMMIT, {"operations": operations}).json()
    assert [list(r) for r in answer["results"]] == [list(op) for op in operations]
    deregistered, deleted, created, declared = (next(iter(r.values())) for r in answer["results"])
    assert deregistered["id"] == tables[2].parts
    assert deleted["deleted_count"] == 1
    assert created["version"]["version"] == 2
    assert declared["properties"] == {"a": "b"}
    assert declared["managed_versioning"] is True
    assert answer["transaction_id"]


def test_the_four_types_have_their_effect(
    server: Server, namespace: str, tables: list[Table]
) -> None:
    server.post(BATCH_COMMIT, {"operations": mixed(namespace, tables)}).raise_for_status()
    names = server.get(f"/v1/namespace/{namespace}/table/list").json()["tables"]
    assert names == ["new", "t0", "t1"]
    assert tables[0].listed() == [1, 2]
    assert tables[1].listed() == []
    assert tables[2].file(1).exists()


@pytest.mark.parametrize("position", range(5))
@pytest.mark.parametrize("bad", ["declare", "create", "delete", "deregister", "by path"])
def test_nothing_happens_when_one_operation_fails(
    server: Server, namespace: str, tables: list[Table], bad: str, position: int
) -> None:
    missing = {"id": [namespace, "missing"]}
    fourth = declare(server, f"{namespace}$t3")
    fourth.commit(1)
    if bad == "by path":
        commit_by_path(fourth.location, 2)
    failing: dict[str, dict[str, Any]] = {
        "declare": {"declare_table": {"id": fourth.parts}},
        "create": {"create_table_version": fourth.entry(1)},
        "delete": {"delete_table_versions": missing | ALL},
        "deregister": {"deregister_table": missing},
        "by path": {"create_table_version": fourth.entry(2)},
    }
    operations = mixed(namespace, tables)
    operations.insert(position, failing[bad])
    answer = server.post(BATCH_COMMIT, {"operations": operations})
    wanted = {"declare": (409, 5), "create": (409, 14), "by path": (409, 14)}
    assert code(answer) == wanted.get(bad, (404, 4))
    names = server.get(f"/v1/namespace/{namespace}/table/list").json()["tables"]
    assert names == ["t0", "t1", "t2", "t3"]
    assert [t.listed() for t in tables] == [[1]] * 3
    assert not tables[0].file(2).exists()


def test_a_table_is_declared_and_written_in_one_batch(server: Server, namespace: str) -> None:
    location = server.lake / f"{new_name()}.lance"
    id = [namespace, "both"]
    version = {"id": id, "version": 1, "manifest_path": stage(location, 1)}
    operations = [
        {"declare_table": {"id": id, "location": str(location)}},
        {"create_table_version": version},
    ]
    answer = server.post(BATCH_COMMIT, {"operations": operations})
    assert answer.status_code == 200, answer.text
    table = Table(server, "$".join(id), location)
    assert table.listed() == [1]
    assert table.file(1).exists()


def test_a_table_is_replaced_in_one_batch(server: Server, tables: list[Table]) -> None:
    location, id = server.lake / f"{new_name()}.lance", tables[0].parts
    operations = [
        {"deregister_table": {"id": id}},
        {"declare_table": {"id": id, "location": str(location)}},
        {
            "create_table_version": {
                "id": id,
                "version": 1,
                "manifest_path": stage(location, 1),
                "metadata": {"is": "new"},
            }
        },
    ]
    answer = server.post(BATCH_COMMIT, {"operations": operations})
    assert answer.status_code == 200, answer.text
    assert tables[0].describe(1).json()["version"]["metadata"] == {"is": "new"}
    assert tables[0].ask("describe").json()["location"] == str(location)


def test_later_operations_see_what_earlier_ones_did(server: Server, tables: list[Table]) -> None:
    table = tables[0]
    operations = [
        {"create_table_version": table.entry(2)},
        {"delete_table_versions": {"id": table.parts} | ALL},
        {"create_table_version": table.entry(3)},
    ]
    results = server.post(BATCH_COMMIT, {"operations": operations}).json()["results"]
    assert results[1]["delete_table_versions"]["deleted_count"] == 2
    assert table.listed() == [3]


def test_a_table_that_left_takes_no_versions(server: Server, tables: list[Table]) -> None:
    operations = [
        {"deregister_table": {"id": tables[0].parts}},
        {"create_table_version": tables[0].entry(2)},
    ]
    assert code(server.post(BATCH_COMMIT, {"operations": operations})) == (404, 4)
    assert tables[0].listed() == [1]
    server.post(BATCH_COMMIT, {"operations": operations[::-1]}).raise_for_status()
    assert tables[0].file(2).exists()
    assert code(tables[0].ask("exists")) == (404, 4)


def test_a_batch_names_existing_tables_and_namespaces(server: Server, namespace: str) -> None:
    declared = {"declare_table": {"id": ["no", "t"]}}
    assert code(server.post(BATCH_COMMIT, {"operations": [declared]})) == (404, 1)
    for id in ([], [""], None):
        bad = {"deregister_table": {"id": id}}
        assert code(server.post(BATCH_COMMIT, {"operations": [bad]})) == (400, 13)
