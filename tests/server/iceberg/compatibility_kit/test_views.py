"""Iceberg's compatibility kit for views, as Java sends it: load, create, list.

Each test's docstring has the number and the name that it has in the kit.
"""

from tests.harness.clients.iceberg import Iceberg, Namespace, View
from tests.harness.clients.iceberg_views import (
    OTHER_SCHEMA,
    SCHEMA,
    SPARK,
    TRINO,
    local,
    sql,
    version,
)

USING_X = sql("trino", "select * from ns.tbl using X")


def test_a_view_of_a_missing_namespace_does_not_exist(iceberg: Iceberg) -> None:
    """1 loadViewWithNonExistingNamespace"""
    view = iceberg.namespace("non-existing").view()
    assert not view.exists()
    message = "View does not exist: non-existing.view"
    view.try_load().refused(404, "NoSuchViewException", message)


def test_a_view_is_no_table(iceberg: Iceberg, ns: Namespace) -> None:
    """3 loadTableThatAlreadyExistsAsView"""
    view = ns.create_view()
    table = f"{ns.path}/tables/{view.name}"
    assert iceberg.head(table).status == 404
    message = f"Table does not exist: {view.full_name}"
    iceberg.get(table).refused(404, "NoSuchTableException", message)


def test_a_created_view_has_the_first_ids_and_can_be_dropped(ns: Namespace) -> None:
    """4 basicCreateView"""
    assert not ns.view().exists()
    view = ns.create_view(view_version=version(SPARK, default_namespace=ns.levels))
    loaded = view.load()
    assert local(loaded.location).is_file()
    assert (loaded.logged_ids, loaded.version_ids, loaded.schema_ids) == ([1], [1], [0])
    assert loaded.metadata["schemas"] == [{**SCHEMA, "schema-id": 0}]
    assert loaded.current == version(SPARK, default_namespace=list(ns.levels))
    view.drop().done()
    assert not view.exists()


def test_properties_that_the_client_adds_are_kept(ns: Namespace) -> None:
    """5 defaultViewProperties, 6 overrideViewProperties: the client merges, the server stores"""
    merged = {
        "key1": "catalog-default-key1",
        "key2": "catalog-overridden-key2",
        "key3": "catalog-override-key3",
        "prop1": "val1",
    }
    view = ns.create_view(properties=merged)
    assert view.load().properties == merged


def test_a_view_keeps_all_that_it_was_created_with(iceberg: Iceberg, ns: Namespace) -> None:
    """7 completeCreateView"""
    location = f"file:{iceberg.server.lake}/{ns.name}/view"
    sent = version(SPARK, USING_X, default_catalog="rest", default_namespace=list(ns.levels))
    properties = {"prop1": "val1", "prop2": "val2"}
    view = ns.create_view(view_version=sent, properties=properties, location=location)
    loaded = view.load()
    assert loaded.metadata["location"] == location
    assert loaded.location.startswith(f"{location}/metadata/00000-")
    assert loaded.properties.items() >= properties.items()
    assert loaded.current == sent
    assert (loaded.logged_ids, loaded.version_ids, loaded.schema_ids) == ([1], [1], [0])


def test_a_property_says_where_the_metadata_goes(iceberg: Iceberg, ns: Namespace) -> None:
    """8 createViewWithCustomMetadataLocation"""
    location = f"file:{iceberg.server.lake}/{ns.name}"
    custom = f"{location}/custom-location"
    view = ns.create_view(properties={"write.metadata.path": custom}, location=location)
    loaded = view.load()
    assert loaded.properties == {"write.metadata.path": custom}
    assert loaded.location.startswith(f"{custom}/00000-")
    assert local(loaded.location).is_file()


def test_a_dialect_may_have_only_one_query(ns: Namespace) -> None:
    """9 createViewErrorCases: the client turns this type into Java's IllegalArgumentException"""
    answer = ns.try_create_view(queries=[TRINO, TRINO])
    message = "Invalid view version: Cannot add multiple queries for dialect trino"
    answer.refused(400, "IllegalArgumentException", message)
    assert not ns.view().exists()


def test_a_view_cannot_be_created_twice(ns: Namespace) -> None:
    """10 createViewThatAlreadyExists, 37 createViewConflict"""
    view = ns.create_view()
    answer = ns.try_create_view(schema=OTHER_SCHEMA)
    answer.refused(409, "AlreadyExistsException", f"View already exists: {view.full_name}")
    assert view.load().metadata["schemas"] == [{**SCHEMA, "schema-id": 0}]


def test_views_are_listed_by_namespace_while_they_come_and_go(iceberg: Iceberg) -> None:
    """25 listViews"""
    one, two = iceberg.new_namespace(), iceberg.new_namespace()
    assert (one.view_names(), two.view_names()) == ([], [])
    first = one.create_view("view1")
    second = two.create_view("view2")
    third = two.create_view("view3")
    assert (one.view_names(), two.view_names()) == (["view1"], ["view2", "view3"])
    second.drop().done()
    assert (one.view_names(), two.view_names()) == (["view1"], ["view3"])
    third.drop().done()
    first.drop().done()
    assert (one.view_names(), two.view_names()) == ([], [])


def test_each_dialect_has_its_own_query_in_the_order_sent(ns: Namespace) -> None:
    """43 testSqlForMultipleDialects, 44 testSqlForCaseInsensitive: the client picks"""
    view: View = ns.create_view(queries=[SPARK, USING_X])
    assert view.load().current["representations"] == [SPARK, USING_X]
