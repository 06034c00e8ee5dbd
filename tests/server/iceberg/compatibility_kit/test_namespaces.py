"""Iceberg's compatibility kit for catalogs, as Java sends it: namespaces, and tables that are not.

Each test's docstring has the name that it has in the kit's CatalogTests.
"""

import uuid

import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace


@pytest.fixture
def new(iceberg: Iceberg) -> Namespace:
    """A namespace that does not exist yet."""
    return iceberg.namespace(f"newdb{uuid.uuid4().hex[:8]}")


def children(client: Iceberg, **query: str) -> list[list[str]]:
    """The namespaces that Java's listNamespaces() gives."""
    found: list[list[str]] = client.get("namespaces", pageToken="", **query).ok()["namespaces"]
    return found


def test_a_created_namespace_is_listed(iceberg: Iceberg, new: Namespace) -> None:
    """testCreateNamespace"""
    assert not new.exists()
    assert new.create().ok() == {"namespace": list(new.levels), "properties": {}}
    assert list(new.levels) in children(iceberg)
    assert new.exists()


def test_a_namespace_cannot_be_created_twice(ns: Namespace) -> None:
    """testCreateExistingNamespace"""
    message = f"Namespace already exists: {ns.name}"
    ns.create().refused(409, "AlreadyExistsException", message)
    assert ns.exists()


def test_a_namespace_can_be_created_with_properties(new: Namespace) -> None:
    """testCreateNamespaceWithProperties"""
    assert new.create({"prop": "val"}).ok()["properties"] == {"prop": "val"}
    assert new.properties() == {"prop": "val"}


def test_a_missing_namespace_cannot_be_loaded(new: Namespace) -> None:
    """testLoadNamespaceMetadata"""
    message = f"Namespace does not exist: {new.name}"
    new.load().refused(404, "NoSuchNamespaceException", message)
    new.create().ok()
    assert new.load().ok()["namespace"] == list(new.levels)
    assert new.properties() == {}


def test_properties_are_set_and_updated(ns: Namespace) -> None:
    """testSetNamespaceProperties, testUpdateNamespaceProperties, testUpdateAndSet…"""
    path = f"{ns.path}/properties"
    ns.client.post(path, {"removals": [], "updates": {"owner": "user"}}).ok()
    assert ns.properties() == {"owner": "user"}
    updates = {"owner": "newuser", "last-modified-at": "now"}
    answer = ns.client.post(path, {"removals": [], "updates": updates}).ok()
    assert answer == {"updated": list(updates), "removed": [], "missing": []}
    assert ns.properties() == updates


def test_properties_are_removed(iceberg: Iceberg) -> None:
    """testRemoveNamespaceProperties"""
    ns = iceberg.new_namespace(owner="user", created="sometime")
    answer = ns.client.post(f"{ns.path}/properties", {"removals": ["created"], "updates": {}})
    assert answer.ok() == {"updated": [], "removed": ["created"], "missing": []}
    assert ns.properties() == {"owner": "user"}


@pytest.mark.parametrize(
    "body", [{"updates": {"test": "value"}, "removals": []}, {"updates": {}, "removals": ["a"]}]
)
def test_a_missing_namespace_takes_no_properties(new: Namespace, body: object) -> None:
    """testSetNamespacePropertiesNamespaceDoesNotExist, testRemoveNamespaceProperties…"""
    answer = new.client.post(f"{new.path}/properties", body)
    message = f"Namespace does not exist: {new.name}"
    answer.refused(404, "NoSuchNamespaceException", message)


def test_a_dropped_namespace_is_gone(ns: Namespace) -> None:
    """testDropNamespace, testDropNonexistentNamespace"""
    ns.drop().done()
    assert not ns.exists()
    message = f"Namespace does not exist: {ns.name}"
    ns.drop().refused(404, "NoSuchNamespaceException", message)


def test_namespaces_are_listed_while_they_come_and_go(iceberg: Iceberg) -> None:
    """testListNamespaces"""
    starting = children(iceberg)
    one, two = iceberg.new_namespace(), iceberg.new_namespace()
    assert sorted(children(iceberg)) == sorted([*starting, [*one.levels], [*two.levels]])
    one.drop().done()
    assert sorted(children(iceberg)) == sorted([*starting, [*two.levels]])
    two.drop().done()
    assert children(iceberg) == starting


def test_nested_namespaces_are_listed_below_their_parent(iceberg: Iceberg, ns: Namespace) -> None:
    """testListNestedNamespaces"""
    starting = children(iceberg)
    assert children(iceberg, parent=ns.name) == []
    one, two = ns.child("child1"), ns.child("child2")
    one.create().ok()
    two.create().ok()
    assert children(iceberg, parent=ns.name) == [[*one.levels], [*two.levels]]
    assert children(iceberg) == starting
    one.drop().done()
    assert children(iceberg, parent=ns.name) == [[*two.levels]]


@pytest.mark.parametrize("name", ["new/db", "new.db"])
def test_a_namespace_may_have_a_slash_or_a_dot(iceberg: Iceberg, ns: Namespace, name: str) -> None:
    """testNamespaceWithSlash, testNamespaceWithDot"""
    odd = ns.child(name)
    assert not odd.exists()
    odd.create().ok()
    assert odd.load().ok()["namespace"] == [*ns.levels, name]
    assert children(iceberg, parent=ns.name) == [[*ns.levels, name]]
    odd.drop().done()
    assert not odd.exists()


def test_a_missing_table_can_neither_be_loaded_nor_dropped(ns: Namespace) -> None:
    """testLoadMissingTable, testDropMissingTable"""
    path, message = f"{ns.path}/tables/tbl", f"Table does not exist: {ns.name}.tbl"
    assert ns.client.head(path).status == 404
    ns.client.get(path, snapshots="all").refused(404, "NoSuchTableException", message)
    ns.client.ask("DELETE", path, purgeRequested="false").refused(404, "NoSuchTableException")


def test_a_missing_table_cannot_be_renamed(ns: Namespace) -> None:
    """testRenameTableMissingSourceTable"""
    source = {"namespace": ns.levels, "name": "tbl"}
    names = {"source": source, "destination": {**source, "name": "renamed"}}
    answer = ns.client.post("tables/rename", names)
    answer.refused(404, "NoSuchTableException", f"Table does not exist: {ns.name}.tbl")
