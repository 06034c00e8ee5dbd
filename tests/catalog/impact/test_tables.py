"""Tables that views read, dropped and renamed: refused, with them, or although they break."""

import itertools

import httpx
import pytest

from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.data.arrow import send
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import TEXTS
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, ask_create, make_iceberg_view, make_view


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    return make_view(server, cluster)


@pytest.fixture
def space(server: Server, namespace: str) -> str:
    """A namespace with the table `t`."""
    send(server, f"/v1/table/{namespace}$t/create", TEXTS).raise_for_status()
    return namespace


def rename(server: Server, table: str, new: str, **params: str) -> httpx.Response:
    path = f"/v1/table/{table}/rename"
    return server.client.post(path, json={"new_table_name": new}, params=params)


def drop(server: Server, table: str, **params: str) -> httpx.Response:
    return server.client.post(f"/v1/table/{table}/drop", json={}, params=params)


def exists(server: Server, namespace: str, name: str) -> bool:
    return server.get(iceberg.path(namespace, name)).status_code == 200


NAMES = {
    "by its name": "SELECT id FROM t",
    "in full": "SELECT id FROM {ns}.t",
    "in another case": "SELECT id FROM `T`",
    "with an engine's catalog": "SELECT id FROM lake.{ns}.t",
    "below a CTE": "WITH a AS (SELECT * FROM t) SELECT id FROM a",
    "in a subquery": "SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM t)",
}


@pytest.mark.parametrize("sql", NAMES.values(), ids=NAMES.keys())
def test_a_table_that_an_iceberg_view_names_keeps_its_name(
    server: Server, space: str, sql: str
) -> None:
    make_iceberg_view(server, space, "i", sql.format(ns=space))
    for answer in (rename(server, f"{space}$t", "new"), drop(server, f"{space}$t")):
        assert code(answer) == (409, 19)
        assert f"{space}$i" in answer.json()["error"]
        assert "?force=true" in answer.json()["detail"]
    server.post(f"/v1/table/{space}$t/describe").raise_for_status()


def test_of_many_tables_that_differ_in_case_the_named_one_is_read(
    server: Server, namespace: str
) -> None:
    names = ["".join(each) for each in itertools.product("aA", "bB", "cC", "dD")]
    for name in names:
        send(server, f"/v1/table/{namespace}${name}/create", TEXTS).raise_for_status()
    make_iceberg_view(server, namespace, "i", f"SELECT id FROM {names[-1]}")
    for name in names:
        found = server.post(f"/v1/table/{namespace}${name}/dependents", {}).raise_for_status()
        assert len(found.json()["dependents"]) == (name == names[-1]), name


@pytest.mark.parametrize(
    "sql", ["SELECT 't' AS t", "WITH t AS (SELECT 1 AS id) SELECT id FROM t", "SELECT t FROM u"]
)
def test_a_name_that_stands_for_something_else_is_no_reader(
    server: Server, space: str, sql: str
) -> None:
    send(server, f"/v1/table/{space}$u/create", TEXTS).raise_for_status()
    make_iceberg_view(server, space, "i", sql)
    rename(server, f"{space}$t", "new").raise_for_status()
    drop(server, f"{space}$new").raise_for_status()


def test_any_dialect_of_an_iceberg_view_counts(server: Server, space: str) -> None:
    make_iceberg_view(server, space, "i", "SELECT 1 AS id", trino="SELECT id FROM t")
    assert code(drop(server, f"{space}$t")) == (409, 19)


def test_sql_that_cannot_be_read_counts_by_its_words(server: Server, space: str) -> None:
    make_iceberg_view(server, space, "i", "SELECT 1 AS id", klingon="nuqneH t Hegh")
    assert code(drop(server, f"{space}$t")) == (409, 19)
    send(server, f"/v1/table/{space}$other/create", TEXTS).raise_for_status()
    drop(server, f"{space}$other").raise_for_status()


def test_a_forced_rename_and_drop_leave_iceberg_views_as_they_are(
    server: Server, space: str
) -> None:
    make_iceberg_view(server, space, "i", "SELECT id FROM t")
    rename(server, f"{space}$t", "new", force="true").raise_for_status()
    drop(server, f"{space}$new").raise_for_status()
    assert exists(server, space, "i")


def test_a_cascading_drop_takes_views_of_both_kinds_along(view: View) -> None:
    server, ns = view.server, view.namespace
    make_iceberg_view(server, ns, "i", "SELECT id FROM v")
    make_iceberg_view(server, ns, "j", "SELECT id FROM i")
    ask_create(server, f"{ns}$w", source_query="SELECT id FROM j").raise_for_status()
    make_iceberg_view(server, ns, "k", "SELECT id FROM w")
    make_iceberg_view(server, ns, "other", "SELECT 1 AS id")
    told = drop(server, view.source).json()["error"]
    assert f"{ns}$v, {ns}$w" in told
    drop(server, view.source, cascade="true").raise_for_status()
    assert server.get(f"/v1/namespace/{ns}/table/list").json()["tables"] == []
    assert [exists(server, ns, name) for name in ("i", "j", "k", "other")] == [False] * 3 + [True]


def test_a_renamed_table_is_read_by_its_materialized_views_as_before(view: View) -> None:
    view.refresh()
    rename(view.server, view.source, "new").raise_for_status()
    view.request()
    (source,) = view.lease()["spec"]["definition"]["sources"]
    assert source["table"] == [view.namespace, "new"]


def test_a_materialized_view_whose_table_was_dropped_by_force_keeps_its_rows(view: View) -> None:
    view.refresh()
    drop(view.server, view.source, force="true").raise_for_status()
    assert view.tell()["kind"] == "query"
    view.ask_table("count_rows").raise_for_status()
    answer = view.ask("refresh", {"cluster": view.cluster})
    assert code(answer) == (400, 13)
    assert "t" in answer.json()["error"]
    view.ask("drop").raise_for_status()


def test_cascade_and_force_exclude_each_other(server: Server, space: str) -> None:
    for answer in (
        drop(server, f"{space}$t", cascade="true", force="true"),
        rename(server, f"{space}$t", "new", cascade="1", force="1"),
        drop(server, f"{space}$t", force="perhaps"),
    ):
        assert code(answer) == (400, 13)
        assert "force" in answer.json()["error"]


def test_a_namespace_goes_with_iceberg_views_elsewhere_that_read_it(
    server: Server, space: str
) -> None:
    other = f"{space}x"
    server.post(f"/v1/namespace/{other}/create").raise_for_status()
    make_iceberg_view(server, other, "far", f"SELECT id FROM {space}.t")
    make_iceberg_view(server, other, "free", f"SELECT id FROM {space}.absent")
    make_iceberg_view(server, space, "near", "SELECT id FROM t")
    path, body = f"/v1/namespace/{space}/drop", {"behavior": "Cascade"}
    answer = server.post(path, body)
    assert code(answer) == (409, 19)
    assert f"{other}$far" in answer.json()["error"]
    assert "free" not in answer.json()["error"]
    server.post(f"{path}?cascade=true", body).raise_for_status()
    assert [exists(server, other, name) for name in ("far", "free")] == [False, True]


def test_a_forced_drop_of_a_namespace_leaves_views_elsewhere(server: Server, space: str) -> None:
    other = f"{space}x"
    server.post(f"/v1/namespace/{other}/create").raise_for_status()
    make_iceberg_view(server, other, "far", f"SELECT id FROM {space}.t")
    body = {"behavior": "Cascade"}
    server.post(f"/v1/namespace/{space}/drop?force=true", body).raise_for_status()
    assert exists(server, other, "far")
