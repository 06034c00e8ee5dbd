"""Namespaces over HTTP, on both databases: create, describe, exists, list."""

from typing import Any

import pytest

from tests.harness.data.tables import code, declare, pages
from tests.harness.processes.servers import Server


def test_a_created_namespace_is_described_and_listed(server: Server, namespace: str) -> None:
    made = server.post(f"/v1/namespace/{namespace}$child/create", {"properties": {"owner": "ann"}})
    assert made.json()["properties"] == {"owner": "ann"}
    described = server.post(f"/v1/namespace/{namespace}$child/describe")
    assert described.json() == {"properties": {"owner": "ann"}}
    assert server.get(f"/v1/namespace/{namespace}/list").json() == {"namespaces": ["child"]}


def test_create_refuses_what_exists(server: Server, namespace: str) -> None:
    for body in (None, {"mode": "Create"}, {"mode": "create"}):
        assert code(server.post(f"/v1/namespace/{namespace}/create", body)) == (409, 2)


@pytest.mark.parametrize("mode", ["ExistOk", "exist_ok", "EXISTOK", "existOk", "EXIST_OK"])
def test_exist_ok_keeps_the_existing(server: Server, namespace: str, mode: str) -> None:
    body = {"mode": mode, "properties": {"new": "yes"}}
    assert server.post(f"/v1/namespace/{namespace}/create", body).json() == {"properties": {}}
    assert server.post(f"/v1/namespace/{namespace}/describe").json() == {"properties": {}}


@pytest.mark.parametrize("mode", ["Create", "ExistOk", "Overwrite"])
def test_every_mode_creates_what_is_missing(server: Server, namespace: str, mode: str) -> None:
    body = {"mode": mode, "properties": {"new": "yes"}}
    made = server.post(f"/v1/namespace/{namespace}$child/create", body).json()
    assert made["properties"] == {"new": "yes"}
    assert made["transaction_id"]


@pytest.mark.parametrize("mode", ["Overwrite", "overwrite", "OVERWRITE"])
def test_overwrite_makes_it_empty_and_new(server: Server, namespace: str, mode: str) -> None:
    table = declare(server, f"{namespace}$t")
    table.commit(1)
    deep = declare_deep(server, namespace)
    body = {"mode": mode, "properties": {"new": "yes"}}
    server.post(f"/v1/namespace/{namespace}/create", body).raise_for_status()
    described = server.post(f"/v1/namespace/{namespace}/describe").json()
    assert described == {"properties": {"new": "yes"}}
    assert server.get(f"/v1/namespace/{namespace}/table/list").json()["tables"] == []
    assert server.get(f"/v1/namespace/{namespace}/list").json()["namespaces"] == []
    assert not table.location.exists()
    assert not deep.exists()


def declare_deep(server: Server, namespace: str) -> Any:
    """A table two namespaces further down, with a file; returns its location."""
    for path in (f"{namespace}$a", f"{namespace}$a$b"):
        server.post(f"/v1/namespace/{path}/create").raise_for_status()
    table = declare(server, f"{namespace}$a$b$t")
    table.commit(1)
    return table.location


def test_overwrite_leaves_a_neighbour_whose_name_begins_alike(
    server: Server, namespace: str
) -> None:
    for name in ("a", "a b", "a.b", "ab"):
        server.post(f"/v1/namespace/{namespace}${name}/create").raise_for_status()
        declare(server, f"{namespace}${name}$t")
    server.post(f"/v1/namespace/{namespace}$a/create", {"mode": "Overwrite"}).raise_for_status()
    left = [server.get(f"/v1/namespace/{namespace}${n}/table/list").json() for n in ("a b", "ab")]
    assert left == [{"tables": ["t"]}] * 2


def test_an_unknown_mode_is_refused(server: Server, namespace: str) -> None:
    for mode in ("Replace", "", "exist ok"):
        answer = server.post(f"/v1/namespace/{namespace}$child/create", {"mode": mode})
        assert code(answer) == (400, 13)
    assert server.get(f"/v1/namespace/{namespace}/list").json()["namespaces"] == []


def test_a_missing_parent_is_said(server: Server, namespace: str) -> None:
    assert code(server.post(f"/v1/namespace/{namespace}$no$child/create")) == (404, 1)


@pytest.mark.parametrize("properties", [{"a": 1}, ["a"], "a", {"a": None}])
def test_properties_are_strings(server: Server, namespace: str, properties: Any) -> None:
    answer = server.post(f"/v1/namespace/{namespace}$x/create", {"properties": properties})
    assert code(answer) == (400, 13)


def test_properties_keep_every_character(server: Server, namespace: str) -> None:
    properties = {'é "quoted"': "line\nline\t日本\U0001f600", "": ""}
    body = {"properties": properties}
    server.post(f"/v1/namespace/{namespace}$x/create", body).raise_for_status()
    assert server.post(f"/v1/namespace/{namespace}$x/describe").json()["properties"] == properties


def test_namespaces_nest_deeply(server: Server, namespace: str) -> None:
    path = namespace
    for depth in range(30):
        path += f"$level{depth}"
        server.post(f"/v1/namespace/{path}/create").raise_for_status()
    assert server.post(f"/v1/namespace/{path}/exists").status_code == 200
    table = declare(server, f"{path}$t")
    table.commit(1)
    assert table.listed() == [1]


def test_exists_answers_with_an_empty_body(server: Server, namespace: str) -> None:
    answer = server.post(f"/v1/namespace/{namespace}/exists")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("operation", ["describe", "exists", "drop"])
def test_a_missing_namespace_is_said(server: Server, operation: str) -> None:
    assert code(server.post(f"/v1/namespace/no/{operation}")) == (404, 1)


def test_a_missing_namespace_cannot_be_listed(server: Server) -> None:
    assert code(server.get("/v1/namespace/no/list")) == (404, 1)
    assert code(server.get("/v1/namespace/no/table/list")) == (404, 1)


def test_the_root_exists_and_cannot_be_made_or_dropped(server: Server, namespace: str) -> None:
    assert server.post("/v1/namespace/$/exists").status_code == 200
    assert server.post("/v1/namespace/$/describe").status_code == 200
    assert server.post("/v1/namespace/$/create", {"mode": "ExistOk"}).status_code == 200
    assert code(server.post("/v1/namespace/$/create")) == (409, 2)
    assert code(server.post("/v1/namespace/$/create", {"mode": "Overwrite"})) == (400, 13)
    assert code(server.post("/v1/namespace/$/drop", {"behavior": "Cascade"})) == (400, 13)
    assert namespace in server.get("/v1/namespace/$/list").json()["namespaces"]


def test_only_children_are_listed_in_order(server: Server, namespace: str) -> None:
    for name in ("b", "a", "a$deep", "é", "Z"):
        server.post(f"/v1/namespace/{namespace}${name}/create").raise_for_status()
    found = server.get(f"/v1/namespace/{namespace}/list").json()["namespaces"]
    assert found == ["Z", "a", "b", "é"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 100])
def test_namespaces_come_in_pages(server: Server, namespace: str, limit: int) -> None:
    names = ["a", "b", "c", "d", "e", "f", "g"]
    for name in names:
        server.post(f"/v1/namespace/{namespace}${name}/create").raise_for_status()
    found = pages(server, f"/v1/namespace/{namespace}/list", "namespaces", limit=limit)
    assert found == [names[at : at + limit] for at in range(0, 7, limit)]


def test_a_page_token_survives_the_loss_of_its_entry(server: Server, namespace: str) -> None:
    for name in "abc":
        server.post(f"/v1/namespace/{namespace}${name}/create").raise_for_status()
    path = f"/v1/namespace/{namespace}/list"
    token = server.get(path, limit=2).json()["page_token"]
    server.post(f"/v1/namespace/{namespace}$b/drop").raise_for_status()
    assert server.get(path, page_token=token).json() == {"namespaces": ["c"]}


def test_an_empty_token_is_the_first_page(server: Server, namespace: str) -> None:
    path = f"/v1/namespace/{namespace}/list"
    assert server.get(path, page_token="").json() == {"namespaces": []}


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1.5", "", "99999999999999999999"])
def test_a_bad_limit_is_refused(server: Server, namespace: str, limit: str) -> None:
    for listing in ("list", "table/list"):
        path = f"/v1/namespace/{namespace}/{listing}"
        assert code(server.get(path, limit=limit)) == (400, 13)
    assert code(server.get("/v1/table", limit=limit)) == (400, 13)


@pytest.mark.parametrize("token", ["x", "a", "!!!", "AAAA", "W10", "bnVsbA", "é", "a" * 5000])
def test_a_forged_token_is_refused(server: Server, namespace: str, token: str) -> None:
    for path in (
        f"/v1/namespace/{namespace}/list",
        f"/v1/namespace/{namespace}/table/list",
        "/v1/table",
    ):
        assert code(server.get(path, page_token=token)) == (400, 13)


def test_a_token_of_another_listing_is_refused(server: Server, namespace: str) -> None:
    for name in "abc":
        server.post(f"/v1/namespace/{namespace}${name}/create").raise_for_status()
        declare(server, f"{namespace}${name}")
    listings = [f"/v1/namespace/{namespace}/{kind}" for kind in ("list", "table/list")]
    listings += ["/v1/namespace/$/list", "/v1/table"]
    tokens = {path: server.get(path, limit=1).json().get("page_token") for path in listings}
    for path in listings:
        for other, token in tokens.items():
            if token and other != path:
                assert code(server.get(path, page_token=token)) == (400, 13)
