"""ListTables and ListAllTables: order, pages, and tables that hold nothing yet."""

import pytest

from tests.harness.data.manifests import commit_by_path
from tests.harness.data.tables import code, declare, pages
from tests.harness.processes.servers import Server

NAMES = ["a", "b", "c", "d", "e", "f", "g"]


def joined(found: list[list[str]]) -> list[str]:
    return [name for page in found for name in page]


def test_tables_directly_in_the_namespace_are_listed_in_order(
    server: Server, namespace: str
) -> None:
    server.post(f"/v1/namespace/{namespace}$sub/create").raise_for_status()
    for name in ("b", "a", "Z", "é", "sub$inner"):
        declare(server, f"{namespace}${name}")
    found = server.get(f"/v1/namespace/{namespace}/table/list").json()
    assert found == {"tables": ["Z", "a", "b", "é"]}


@pytest.mark.parametrize("limit", [1, 3, 7, 8])
def test_tables_come_in_pages(server: Server, namespace: str, limit: int) -> None:
    for name in NAMES:
        declare(server, f"{namespace}${name}")
    found = pages(server, f"/v1/namespace/{namespace}/table/list", "tables", limit=limit)
    assert found == [NAMES[at : at + limit] for at in range(0, 7, limit)]


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_declared_tables_are_left_out_on_request(
    server: Server, namespace: str, limit: int
) -> None:
    for number, name in enumerate(NAMES):
        table = declare(server, f"{namespace}${name}")
        if number in (1, 4, 5):
            table.commit(1)
    path = f"/v1/namespace/{namespace}/table/list"
    found = pages(server, path, "tables", include_declared="false", limit=limit)
    assert joined(found) == ["b", "e", "f"]
    assert all(len(page) <= limit for page in found)
    everything = pages(server, path, "tables", include_declared="true", limit=limit)
    assert joined(everything) == NAMES


def test_a_table_written_by_path_is_more_than_declared(server: Server, namespace: str) -> None:
    commit_by_path(declare(server, f"{namespace}$t").location, 1)
    path = f"/v1/namespace/{namespace}/table/list"
    assert server.get(path, include_declared="false").json()["tables"] == ["t"]


def test_a_flag_is_true_or_false(server: Server, namespace: str) -> None:
    path = f"/v1/namespace/{namespace}/table/list"
    assert code(server.get(path, include_declared="perhaps")) == (400, 13)


@pytest.fixture
def tree(server: Server, namespace: str) -> list[list[str]]:
    """Tables at several depths, in the order of their ids."""
    ids = [[namespace, "t"], [namespace, "a", "t"], [namespace, "a", "b", "t"]]
    for path in (f"{namespace}$a", f"{namespace}$a$b"):
        server.post(f"/v1/namespace/{path}/create").raise_for_status()
    for id in ids:
        declare(server, "$".join(id))
    return ids


@pytest.mark.parametrize("delimiter", ["$", ".", "::", "/"])
def test_all_tables_are_listed_with_their_full_ids(
    server: Server, namespace: str, tree: list[list[str]], delimiter: str
) -> None:
    found = server.get("/v1/table", delimiter=delimiter).json()["tables"]
    mine = [id for id in found if id.startswith(namespace)]
    assert sorted(mine) == sorted(delimiter.join(id) for id in tree)


def test_all_tables_come_in_pages(server: Server, tree: list[list[str]]) -> None:
    once = server.get("/v1/table").json()["tables"]
    limit = len(once) // 3 + 1
    found = pages(server, "/v1/table", "tables", limit=limit)
    assert joined(found) == once
    assert [len(page) for page in found[:-1]] == [limit, limit]
    assert {"$".join(id) for id in tree} <= set(once)


def test_all_tables_can_leave_declared_ones_out(
    server: Server, namespace: str, tree: list[list[str]]
) -> None:
    written = declare(server, f"{namespace}$a$written")
    written.commit(1)
    found = server.get("/v1/table", include_declared="false").json()["tables"]
    assert [id for id in found if id.startswith(namespace)] == [written.id]


def test_a_listing_of_all_tables_needs_no_id_and_takes_a_slash(server: Server) -> None:
    assert server.get("/v1/table/").json() == server.get("/v1/table").json()
