"""Iceberg views that views read, dropped and renamed: refused, with them, or by force."""

import httpx
import pytest

from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.data.arrow import send
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import TEXTS
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import ask_create, make_iceberg_view


@pytest.fixture
def space(server: Server, namespace: str) -> str:
    """A namespace with the table `t`, the Iceberg view `a` of it, `b` of `a`, and `c` of `b`."""
    send(server, f"/v1/table/{namespace}$t/create", TEXTS).raise_for_status()
    make_iceberg_view(server, namespace, "a", "SELECT id FROM t")
    make_iceberg_view(
        server, namespace, "b", "SELECT a.id FROM a", trino=f"SELECT 1 FROM {namespace}.a"
    )
    make_iceberg_view(server, namespace, "c", "SELECT id FROM b")
    return namespace


def rename(server: Server, view: str, new: str, **params: str) -> httpx.Response:
    path = f"/v1/table/{view}/rename"
    return server.client.post(path, json={"new_table_name": new}, params=params)


def drop(server: Server, view: str, **params: str) -> httpx.Response:
    return server.client.post(f"/v1/view/{view}/drop", json={}, params=params)


def list_views(server: Server, space: str) -> list[str]:
    found = server.get(f"/v1/namespace/{space}/view/list").raise_for_status().json()["views"]
    return [str(each) for each in found]


def sql_of(server: Server, space: str, name: str) -> str:
    answer = server.post(f"/v1/view/{space}${name}/describe").raise_for_status()
    return str(answer.json()["query"])


def test_a_view_that_views_name_is_neither_dropped_nor_renamed(server: Server, space: str) -> None:
    for answer in (drop(server, f"{space}$a"), rename(server, f"{space}$a", "new")):
        assert code(answer) == (409, 19)
        told = answer.json()
        assert f"view {space}$a" in told["error"]
        assert f"{space}$b, {space}$c" in told["error"]
        assert "?cascade=true" in told["detail"]
    assert list_views(server, space) == ["a", "b", "c"]
    # Nobody reads it, and a name that stays breaks nothing.
    rename(server, f"{space}$c", "new").raise_for_status()
    rename(server, f"{space}$a", "a").raise_for_status()
    drop(server, f"{space}$new").raise_for_status()
    both = drop(server, f"{space}$a", cascade="true", force="true")
    assert code(both) == (400, 13)


def test_views_follow_a_renamed_view_on_request(server: Server, space: str) -> None:
    rename(server, f"{space}$a", "new", cascade="true").raise_for_status()
    assert sql_of(server, space, "b") == "SELECT a.id FROM `new` AS `a`"
    assert sql_of(server, space, "c") == "SELECT id FROM b"
    assert list_views(server, space) == ["b", "c", "new"]
    metadata = iceberg.load(server, space, "b")["metadata"]
    assert len(metadata["versions"]) == 2
    taken = rename(server, f"{space}$new", "c", cascade="true")
    assert taken.status_code == 409
    assert sql_of(server, space, "b") == "SELECT a.id FROM `new` AS `a`"


def test_a_cascading_drop_takes_the_views_of_a_view_along(server: Server, space: str) -> None:
    ask_create(server, f"{space}$m", source_query="SELECT id FROM c").raise_for_status()
    make_iceberg_view(server, space, "d", "SELECT id FROM m")
    told = drop(server, f"{space}$a").json()["error"]
    assert f"{space}$m" in told
    drop(server, f"{space}$a", cascade="true").raise_for_status()
    assert list_views(server, space) == []
    tables = server.get(f"/v1/namespace/{space}/table/list").json()["tables"]
    assert tables == ["t"]


def test_a_forced_change_leaves_the_views_of_a_view_as_they_are(server: Server, space: str) -> None:
    ask_create(server, f"{space}$m", source_query="SELECT id FROM a").raise_for_status()
    rename(server, f"{space}$a", "new", force="true").raise_for_status()
    assert sql_of(server, space, "b") == "SELECT a.id FROM a"
    # A materialized view knows it by its id, also when nobody else does.
    assert code(drop(server, f"{space}$new")) == (409, 19)
    drop(server, f"{space}$new", force="true").raise_for_status()
    assert list_views(server, space) == ["b", "c"]
    answer = server.post(f"/v1/materialized_view/{space}$m/refresh", {})
    assert code(answer) == (400, 13)
    assert f"table {space}.a is not in the catalog" in answer.json()["error"]


def test_icebergs_own_routes_ask_only_materialized_views(server: Server, space: str) -> None:
    iceberg.rename(space, "a", "new").send(server).raise_for_status()
    iceberg.drop(space, "new").send(server).raise_for_status()
    assert list_views(server, space) == ["b", "c"]
