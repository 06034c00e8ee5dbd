"""Branches, tags and versions that are not there, in every operation that takes one."""

from typing import Any

import pytest

from tests.harness.data.arrow import people, send
from tests.harness.processes.servers import Server

STAGED = {"version": 1, "manifest_path": "tree/nope/_versions/1.manifest-x"}
RANGES = [{"start_version": 1, "end_version": 2}]
BRANCHED: dict[str, dict[str, Any]] = {
    "describe": {},
    "exists": {},
    "count_rows": {},
    "query": {"k": 1},
    "explain_plan": {"query": {"k": 1}},
    "analyze_plan": {"k": 1},
    "stats": {},
    "index/list": {},
    "index/x/stats": {},
    "index/x/drop": {},
    "create_index": {"column": "id", "index_type": "BTREE"},
    "create_scalar_index": {"column": "id", "index_type": "BTREE"},
    "update": {"updates": [["name", "'z'"]]},
    "delete": {"predicate": "id = 1"},
    "add_columns": {"new_columns": [{"name": "d", "expression": "id"}]},
    "alter_columns": {"alterations": [{"path": "name", "rename": "n"}]},
    "drop_columns": {"columns": ["name"]},
    "schema_metadata/update": {"a": "b"},
    "tags/create": {"tag": "x", "version": 1},
    "tags/update": {"tag": "there", "version": 1},
    "restore": {"version": 1},
    "branches/create": {"name": "n2", "from_branch": "nope"},
    "branches/delete": {"name": "nope"},
    "version/list": {},
    "version/describe": {},
    "version/create": STAGED,
    "version/delete": {"ranges": RANGES},
}
VERSIONED: dict[str, dict[str, Any]] = {
    "describe": {},
    "exists": {},
    "count_rows": {},
    "query": {"k": 1},
    "explain_plan": {"query": {"k": 1, "version": 999}},
    "analyze_plan": {"k": 1},
    "index/list": {},
    "tags/create": {"tag": "x"},
    "tags/update": {"tag": "there"},
    "restore": {},
    "branches/create": {"name": "n3", "from_version": 999},
    "version/describe": {},
}


@pytest.fixture
def id(server: Server, namespace: str) -> str:
    """A table with one version and a tag."""
    id = f"{namespace}$t"
    send(server, f"/v1/table/{id}/create", people(1, 2)).raise_for_status()
    server.post(f"/v1/table/{id}/tags/create", {"tag": "there", "version": 1}).raise_for_status()
    return id


def test_a_branch_that_is_not_there_is_404_everywhere(server: Server, id: str) -> None:
    for path, body in BRANCHED.items():
        # Some take it from the body, some from the query.
        in_body = {} if path == "schema_metadata/update" else {"branch": "nope"}
        answer = server.post(f"/v1/table/{id}/{path}", {**body, **in_body}, branch="nope")
        assert (answer.status_code, answer.json()["code"]) == (404, 22), (path, answer.text)
    for path in ("insert", "merge_insert"):
        params = {"on": "id", "when_not_matched_insert_all": "true"} if "merge" in path else {}
        answer = send(server, f"/v1/table/{id}/{path}", people(3), branch="nope", **params)
        assert (answer.status_code, answer.json()["code"]) == (404, 22), (path, answer.text)


def test_so_it_is_in_batches(server: Server, id: str) -> None:
    there, nope = id.split("$"), {"id": id.split("$"), "branch": "nope"}
    ends = {"id": there, "ranges": RANGES}
    for path, body in (
        ("batch-commit", {"operations": [{"delete_table_versions": {**nope, "ranges": RANGES}}]}),
        ("batch-commit", {"operations": [{"create_table_version": {**nope, **STAGED}}]}),
        ("version/batch-create", {"entries": [{**nope, **STAGED}]}),
        (
            "batch-commit",
            {
                "operations": [
                    {"delete_table_versions": ends},
                    {"delete_table_versions": {**nope, "ranges": RANGES}},
                ]
            },
        ),
    ):
        answer = server.post(f"/v1/table/{path}", body)
        assert (answer.status_code, answer.json()["code"]) == (404, 22), answer.text
    # And nothing of it was done.
    found = server.post(f"/v1/table/{id}/version/list").json()["versions"]
    assert [version["version"] for version in found] == [1]


def test_a_version_or_tag_that_is_not_there_is_404_everywhere(server: Server, id: str) -> None:
    for path, body in VERSIONED.items():
        answer = server.post(f"/v1/table/{id}/{path}", {**body, "version": 999})
        assert (answer.status_code, answer.json()["code"]) == (404, 11), (path, answer.text)
    for path in ("describe", "tags/version", "tags/delete"):
        answer = server.post(f"/v1/table/{id}/{path}", {"tag": "nope"})
        assert (answer.status_code, answer.json()["code"]) == (404, 8), (path, answer.text)
    answer = server.post(f"/v1/table/{id}/tags/update", {"tag": "nope", "version": 1})
    assert (answer.status_code, answer.json()["code"]) == (404, 8)


def test_a_branch_whose_versions_were_all_deleted_is_still_there(server: Server, id: str) -> None:
    server.post(f"/v1/table/{id}/branches/create", {"name": "b"}).raise_for_status()
    every = {"branch": "b", "ranges": [{"start_version": 0, "end_version": -1}]}
    server.post(f"/v1/table/{id}/version/delete", every).raise_for_status()
    answer = server.post(f"/v1/table/{id}/version/list", branch="b")
    assert (answer.status_code, answer.json()) == (200, {"versions": []})
