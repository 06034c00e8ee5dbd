"""Iceberg's compatibility kit for views, as Java sends it: names, renames, registering, tables.

Each test's docstring has the number and the name that it has in the kit. Where the kit has an
Iceberg table, there is a Lance table: it takes the name just as well.
"""

import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace, View
from tests.harness.clients.iceberg_views import SCHEMA, local
from tests.harness.data.tables import declare

NEW_TABLE = {"name": "view", "schema": SCHEMA, "stage-create": False, "properties": {}}


@pytest.fixture
def table(iceberg: Iceberg, ns: Namespace) -> View:
    """The name of a table, where a view could have been."""
    declare(iceberg.server, f"{ns.lance_id}$table")
    return ns.view("table")


def test_a_table_is_no_view(table: View) -> None:
    """2 loadViewThatAlreadyExistsAsTable"""
    assert not table.exists()
    message = f"View does not exist: {table.full_name}"
    table.try_load().refused(404, "NoSuchViewException", message)
    table.drop().refused(404, "NoSuchViewException", message)
    table.try_replace().refused(404, "NoSuchViewException", message)


def test_a_view_cannot_have_the_name_of_a_table(ns: Namespace, table: View) -> None:
    """11 createViewThatAlreadyExistsAsTable, 17 createOrReplaceViewThatAlreadyExistsAsTable"""
    message = f"Table with same name already exists: {table.full_name}"
    ns.try_create_view("table").refused(409, "AlreadyExistsException", message)


@pytest.mark.parametrize("staged", [False, True])
def test_a_table_cannot_have_the_name_of_a_view(ns: Namespace, staged: bool) -> None:
    """12 createTableThatAlreadyExistsAsView, 13 the staged way"""
    view = ns.create_view()
    answer = ns.client.post(f"{ns.path}/tables", {**NEW_TABLE, "stage-create": staged})
    message = f"View with same name already exists: {view.full_name}"
    answer.refused(409, "AlreadyExistsException", message)


def test_a_client_finds_the_view_before_it_replaces_a_table(ns: Namespace) -> None:
    """14 replaceTableViaTransaction…, 15 createOrReplaceTableViaTransaction…AsView"""
    view = ns.create_view()
    assert view.exists()
    answer = ns.client.post(f"{ns.path}/tables/view", {"requirements": [], "updates": []})
    answer.refused(404, "NoSuchTableException", f"Table does not exist: {view.full_name}")


@pytest.mark.parametrize("leaves", [False, True])
def test_a_renamed_view_keeps_its_metadata(iceberg: Iceberg, ns: Namespace, leaves: bool) -> None:
    """18 renameView, 19 renameViewUsingDifferentNamespace"""
    view = ns.create_view()
    original = view.load()
    target = (iceberg.new_namespace() if leaves else ns).view("renamedView")
    iceberg.rename(view, target).done()
    assert (view.exists(), target.exists()) == (False, True)
    assert target.load() == original
    view.drop().refused(404, "NoSuchViewException")
    target.drop().done()
    assert not target.exists()


def test_a_view_cannot_be_renamed_into_a_missing_namespace(iceberg: Iceberg, ns: Namespace) -> None:
    """20 renameViewNamespaceMissing"""
    view = ns.create_view()
    answer = iceberg.rename(view, iceberg.namespace("non_existing").view("renamedView"))
    message = "Namespace does not exist: non_existing"
    answer.refused(404, "NoSuchNamespaceException", message)
    assert view.exists()


def test_a_missing_view_cannot_be_renamed(iceberg: Iceberg, ns: Namespace) -> None:
    """21 renameViewSourceMissing"""
    view = ns.view("non_existing")
    answer = iceberg.rename(view, ns.view("renamedView"))
    answer.refused(404, "NoSuchViewException", f"View does not exist: {view.full_name}")


def test_a_view_cannot_be_renamed_onto_a_view(iceberg: Iceberg, ns: Namespace) -> None:
    """22 renameViewTargetAlreadyExistsAsView"""
    one, two = ns.create_view("viewOne"), ns.create_view("viewTwo")
    message = f"Cannot rename {one.full_name} to {two.full_name}. View already exists"
    iceberg.rename(one, two).refused(409, "AlreadyExistsException", message)


def test_a_view_cannot_be_renamed_onto_a_table(
    iceberg: Iceberg, ns: Namespace, table: View
) -> None:
    """23 renameViewTargetAlreadyExistsAsTable"""
    view = ns.create_view()
    message = f"Cannot rename {view.full_name} to {table.full_name}. Table already exists"
    iceberg.rename(view, table).refused(409, "AlreadyExistsException", message)


def test_lance_tables_are_not_listed_as_iceberg_tables(ns: Namespace, table: View) -> None:
    """27 listViewsAndTables, where no table is an Iceberg table"""
    ns.create_view()
    assert ns.view_names() == ["view"]
    listed = ns.client.get(f"{ns.path}/tables", pageToken="").ok()
    assert listed == {"identifiers": [], "next-page-token": None}
    message = f"Table does not exist: {table.full_name}"
    answer = ns.client.get(f"{ns.path}/tables/{table.name}")
    answer.refused(404, "NoSuchTableException", message)


def test_a_namespace_with_a_table_or_a_view_cannot_be_dropped(ns: Namespace, table: View) -> None:
    """46 dropNonEmptyNamespace"""
    message = f"Namespace {ns.name} is not empty"
    view = ns.create_view()
    ns.drop().refused(409, "NamespaceNotEmptyException", message)
    ns.client.server.post(f"/v1/table/{ns.lance_id}$table/drop").raise_for_status()
    ns.drop().refused(409, "NamespaceNotEmptyException", message)
    view.drop().done()
    ns.drop().done()


def test_a_table_cannot_be_registered_under_the_name_of_a_view(ns: Namespace) -> None:
    """47 registerTableThatAlreadyExistsAsView"""
    view = ns.create_view()
    body = {"name": "view", "metadata-location": "file:/tmp/00000.metadata.json"}
    answer = ns.client.post(f"{ns.path}/register", body)
    message = f"View with same name already exists: {view.full_name}"
    answer.refused(409, "AlreadyExistsException", message)


def test_a_dropped_view_that_kept_its_files_can_be_registered(ns: Namespace) -> None:
    """48 registerView"""
    view = ns.create_view(properties={"gc.enabled": "false"})
    original = view.load()
    view.drop().done()
    assert local(original.location).is_file()
    registered = ns.try_register("view", original.location).ok()
    assert registered["metadata-location"] == original.location
    assert registered["metadata"] == original.metadata
    assert view.load() == original
    view.drop().done()


def test_a_view_cannot_be_registered_under_the_name_of_a_view(ns: Namespace) -> None:
    """49 registerExistingView"""
    view = ns.create_view()
    answer = ns.try_register("view", view.load().location)
    answer.refused(409, "AlreadyExistsException", f"View already exists: {view.full_name}")


def test_a_view_cannot_be_registered_under_the_name_of_a_table(ns: Namespace, table: View) -> None:
    """50 registerViewThatAlreadyExistsAsTable"""
    location = ns.create_view().load().location
    message = f"Table with same name already exists: {table.full_name}"
    ns.try_register("table", location).refused(409, "AlreadyExistsException", message)
