"""Namespaces: their names in paths, their properties, and that Lance has the very same ones."""

import uuid
from typing import Any

import pytest

from tests.harness.clients import iceberg_tables as tables
from tests.harness.clients.iceberg import Iceberg, Namespace
from tests.harness.data.manifests import commit_by_path
from tests.harness.data.tables import code, declare

ODD_NAMES = [
    *("with space", "a+b", "100%", "a%20b", "%1F", "q?x=1&y", "#hash", "a/b", "a.b", "$", "a$b"),
    *("~tilde*", "ünï", "日本語", "😀", "e\u0301", "'\"", "\\", "..a", "namespaces", "views"),
    *("UPPER", "-", "x" * 255),
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_survives_the_way_through_paths(ns: Namespace, name: str) -> None:
    odd = ns.child(name)
    assert odd.create({"k": "v"}).ok()["namespace"] == [*ns.levels, name]
    assert odd.load().ok()["namespace"] == [*ns.levels, name]
    assert odd.properties() == {"k": "v"}
    view = odd.create_view(name)
    assert odd.view_names() == [name]
    assert view.load().metadata["view-uuid"] == view.uuid
    view.drop().done()
    odd.drop().done()


@pytest.mark.parametrize("name", ["", ".", "..", "a\x1fb", "a\nb", "\x00", "x" * 256])
def test_a_name_that_no_path_can_carry_is_refused(ns: Namespace, name: str) -> None:
    ns.child(name).create().refused(400, "BadRequestException")
    ns.try_create_view(name).refused(400, "BadRequestException")


@pytest.mark.parametrize("body", [{"namespace": []}, {"namespace": "a"}, {"namespace": [1]}, {}])
def test_a_namespace_is_a_list_of_names(iceberg: Iceberg, body: Any) -> None:
    iceberg.post("namespaces", body).refused(400, "BadRequestException")


def test_names_that_look_alike_are_different(ns: Namespace) -> None:
    for name in ("é", "e\u0301", "E", "e"):
        ns.child(name).create().ok()
    listed = ns.client.get("namespaces", parent=ns.name).ok()["namespaces"]
    assert len(listed) == 4


def test_a_namespace_needs_its_parent(iceberg: Iceberg, ns: Namespace) -> None:
    deep = ns.child("a").child("b")
    message = f"Namespace does not exist: {ns.name}.a"
    deep.create().refused(404, "NoSuchNamespaceException", message)


def test_levels_are_separated_by_the_unit_separator(iceberg: Iceberg, ns: Namespace) -> None:
    deep = ns.child("b.c").child("d e")
    ns.child("b.c").create().ok()
    deep.create().ok()
    for path in (f"{ns.name}%1Fb.c%1Fd%20e", f"{ns.name}%1fb%2Ec%1Fd+e"):
        assert iceberg.get(f"namespaces/{path}").ok()["namespace"] == list(deep.levels)
    listed = iceberg.get("namespaces", parent="\x1f".join((*ns.levels, "b.c"))).ok()
    assert listed["namespaces"] == [list(deep.levels)]


def test_nothing_is_in_a_namespace_with_an_empty_level(iceberg: Iceberg, ns: Namespace) -> None:
    # As engines ask for a name without a namespace, to say that they know no such table.
    for path in ("", f"{ns.name}%1F", f"%1F{ns.name}", f"{ns.name}%1F%1Fa", "%1F"):
        if path:
            iceberg.get(f"namespaces/{path}").refused(404, "NoSuchNamespaceException")
        for inside, kind in {
            "tables": "NoSuchNamespaceException",
            "views": "NoSuchNamespaceException",
            "tables/x": "NoSuchTableException",
            "tables/x/credentials": "NoSuchTableException",
            "views/x": "NoSuchViewException",
        }.items():
            iceberg.get(f"namespaces/{path}/{inside}").refused(404, kind)
        made = iceberg.post(f"namespaces/{path}/tables", {"name": "x", "schema": {}})
        made.refused(404, "NoSuchNamespaceException")


def test_a_namespace_tells_where_its_tables_are_made(iceberg: Iceberg, ns: Namespace) -> None:
    lake = str(iceberg.server.lake.resolve())
    told = ns.load().ok()["properties"]
    assert told == {"location": f"file://{lake}"}
    # As Trino does: a place of its choice, and a commit that makes the table.
    place = f"{told['location']}/orders-{uuid.uuid4().hex}"
    staged = tables.make(iceberg.server, ns.name, "orders", stage=True, location=place)
    done = tables.finish(ns.name, "orders", staged["metadata"]).send(iceberg.server)
    assert done.raise_for_status().json()["metadata"]["location"] == place
    own = ns.child("own")
    own.create({"location": f"{lake}/own-{ns.name}"}).ok()
    assert own.load().ok()["properties"] == {"location": f"{lake}/own-{ns.name}"}
    # It is no property.
    path = f"namespaces/{ns.name}/properties"
    removed = iceberg.post(path, {"removals": ["location"]}).ok()
    assert removed["missing"] == ["location"]


def test_a_path_must_be_utf8(iceberg: Iceberg) -> None:
    iceberg.get("namespaces/%FF").refused(400, "BadRequestException")
    answer = iceberg.send("GET", "/iceberg/v1/penstock/namespaces?parent=%FF")
    answer.refused(400, "BadRequestException")


def test_an_empty_parent_is_the_top(iceberg: Iceberg) -> None:
    assert iceberg.get("namespaces", parent="").ok() == iceberg.get("namespaces").ok()


def test_children_of_a_missing_namespace_are_not_found(iceberg: Iceberg) -> None:
    answer = iceberg.get("namespaces", parent="nowhere\x1finside", pageToken="")
    answer.refused(404, "NoSuchNamespaceException", "Namespace does not exist: nowhere.inside")


def test_only_direct_children_are_listed(iceberg: Iceberg, ns: Namespace) -> None:
    ns.child("a").create().ok()
    ns.child("a").child("b").create().ok()
    listed = iceberg.get("namespaces", parent=ns.name).ok()
    assert listed == {"namespaces": [[*ns.levels, "a"]], "next-page-token": None}


def test_a_namespace_with_a_child_cannot_be_dropped(ns: Namespace) -> None:
    ns.child("a").create().ok()
    message = f"Namespace {ns.name} is not empty"
    ns.drop().refused(409, "NamespaceNotEmptyException", message)


def test_an_update_of_properties_tells_what_it_did(iceberg: Iceberg) -> None:
    ns = iceberg.new_namespace(a="1", b="2")
    body = {"removals": ["a", "nothing"], "updates": {"b": "3", "c": "4"}}
    told = iceberg.post(f"{ns.path}/properties", body).ok()
    assert told == {"updated": ["b", "c"], "removed": ["a"], "missing": ["nothing"]}
    assert ns.properties() == {"b": "3", "c": "4"}


def test_a_property_cannot_be_set_and_removed_at_once(iceberg: Iceberg) -> None:
    ns = iceberg.new_namespace(a="1")
    body = {"removals": ["a"], "updates": {"a": "2"}}
    answer = iceberg.post(f"{ns.path}/properties", body)
    answer.refused(422, "UnprocessableEntityException")
    assert ns.properties() == {"a": "1"}


def test_an_update_may_leave_out_either_part(iceberg: Iceberg) -> None:
    ns = iceberg.new_namespace(a="1")
    iceberg.post(f"{ns.path}/properties", {"updates": {"b": "2"}}).ok()
    iceberg.post(f"{ns.path}/properties", {"removals": ["a"]}).ok()
    assert ns.properties() == {"b": "2"}


@pytest.mark.parametrize("body", [{"updates": {"a": 1}}, {"removals": "a"}, {"updates": ["a"]}])
def test_properties_are_strings(ns: Namespace, body: Any) -> None:
    ns.client.post(f"{ns.path}/properties", body).refused(400, "BadRequestException")


def test_lance_shows_what_iceberg_created(iceberg: Iceberg) -> None:
    ns = iceberg.new_namespace(owner="me")
    ns.child("inner").create().ok()
    server = iceberg.server
    described = server.post(f"/v1/namespace/{ns.lance_id}/describe").json()
    assert described["properties"] == {"owner": "me"}
    listed = server.get(f"/v1/namespace/{ns.lance_id}/list").json()
    assert listed["namespaces"] == ["inner"]


def test_iceberg_shows_what_lance_created(iceberg: Iceberg, namespace: str) -> None:
    ns = iceberg.namespace(namespace)
    iceberg.server.post(f"/v1/namespace/{namespace}$inner/create", {"properties": {"a": "b"}})
    assert ns.load().ok()["namespace"] == [namespace]
    assert ns.properties() == {}
    assert ns.child("inner").properties() == {"a": "b"}
    ns.create().refused(409, "AlreadyExistsException")
    ns.child("inner").drop().done()
    assert iceberg.server.post(f"/v1/namespace/{namespace}$inner/exists").status_code == 404


def test_views_are_not_tables_of_lance(ns: Namespace) -> None:
    ns.create_view()
    server = ns.client.server
    assert server.get(f"/v1/namespace/{ns.lance_id}/table/list").json()["tables"] == []
    assert code(server.post(f"/v1/table/{ns.lance_id}$view/describe")) == (404, 4)
    assert code(server.post(f"/v1/table/{ns.lance_id}$view/drop")) == (400, 19)
    assert server.post(f"/v1/table/{ns.lance_id}$view/exists").status_code == 404
    assert ns.view().exists()


def test_lance_tables_cannot_take_the_name_of_a_view(ns: Namespace) -> None:
    ns.create_view()
    server, taken = ns.client.server, f"{ns.lance_id}$view"
    assert code(server.post(f"/v1/table/{taken}/declare", {})) == (409, 5)
    table = declare(server, f"{ns.lance_id}$t")
    renamed = table.ask("rename", {"new_table_name": "view"})
    assert code(renamed) == (409, 5)
    place = server.lake / f"{ns.name}-registered.lance"
    commit_by_path(place, 1)
    registered = server.post(f"/v1/table/{taken}/register", {"location": str(place)})
    assert code(registered) == (409, 5)
    assert ns.view().load().version_ids == [1]


def test_a_view_takes_the_name_that_a_lance_table_gave_up(ns: Namespace) -> None:
    table = declare(ns.client.server, f"{ns.lance_id}$view")
    ns.try_create_view().refused(409, "AlreadyExistsException")
    table.ask("drop").raise_for_status()
    view = ns.create_view()
    view.drop().done()
    declare(ns.client.server, f"{ns.lance_id}$view")


def test_a_namespace_may_have_the_name_of_a_view(ns: Namespace) -> None:
    view = ns.create_view("both")
    ns.child("both").create().ok()
    assert view.exists()
    assert ns.child("both").exists()
