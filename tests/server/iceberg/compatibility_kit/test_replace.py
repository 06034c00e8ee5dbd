"""Iceberg's compatibility kit for views, as Java sends it: replace, properties, location.

Each test's docstring has the number and the name that it has in the kit.
"""

import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace
from tests.harness.clients.iceberg_views import (
    OTHER_SCHEMA,
    SCHEMA,
    SPARK,
    TRINO,
    add_version,
    java_replace,
    new_version,
    remove_properties,
    set_current,
    set_location,
    set_properties,
    sql,
)

ALLOWED = {"replace.drop-dialect.allowed": "true"}


@pytest.mark.parametrize("names_itself", [False, True])
def test_a_replaced_view_has_a_second_version_and_merged_properties(
    ns: Namespace, names_itself: bool
) -> None:
    """28 createOrReplaceView: createOrReplace() sends what replace() does when the view exists"""
    view = ns.create_view(properties={"prop1": "val1", "prop2": "val2"})
    known = view.load()
    count = sql("trino", "select count(*) from ns.tbl")
    updates = java_replace(
        known, count, schema=OTHER_SCHEMA, properties={"replacedProp1": "val1", **ALLOWED}
    )
    body = {"identifier": view.identifier} if names_itself else {}
    replaced = view.replace(*updates, **body)
    assert replaced.properties == {**known.properties, "replacedProp1": "val1", **ALLOWED}
    assert (replaced.logged_ids, replaced.version_ids) == ([1, 2], [1, 2])
    assert replaced.metadata["schemas"] == [
        {**SCHEMA, "schema-id": 0},
        {**OTHER_SCHEMA, "schema-id": 1},
    ]
    assert replaced.metadata["versions"][0] == known.current
    assert (replaced.current["version-id"], replaced.current["schema-id"]) == (2, 1)
    assert replaced.current["representations"] == [count]


def test_a_missing_view_cannot_be_replaced(ns: Namespace) -> None:
    """29 replaceViewErrorCases: Java asks for the table, then for the view, and gives up"""
    view = ns.view("non_existing")
    message = f"View does not exist: {view.full_name}"
    assert ns.client.head(f"{ns.path}/tables/non_existing").status == 404
    view.try_load().refused(404, "NoSuchViewException", message)
    view.try_replace(*new_version(TRINO)).refused(404, "NoSuchViewException", message)


def test_a_replaced_dialect_may_have_only_one_query(ns: Namespace) -> None:
    """29 replaceViewErrorCases, 34 replaceViewVersionErrorCases, if a client sent it"""
    view = ns.create_view(queries=[TRINO])
    message = "Invalid view version: Cannot add multiple queries for dialect trino"
    for queries in ([TRINO, TRINO], [TRINO, sql("TRINO")]):
        answer = view.try_replace(add_version(*queries), set_current())
        answer.refused(400, "IllegalArgumentException", message)


def test_properties_change_without_a_new_version(ns: Namespace) -> None:
    """30 updateViewProperties"""
    view = ns.create_view()
    known = view.load()
    view.replace(set_properties(key1="val1", key2="val2"), remove_properties("non-existing"))
    updated = view.load()
    assert updated.properties == {"key1": "val1", "key2": "val2"}
    assert updated.metadata["version-log"] == known.metadata["version-log"]
    assert updated.metadata["versions"] == known.metadata["versions"]


def test_a_new_version_may_have_another_schema_and_fewer_dialects(ns: Namespace) -> None:
    """32 replaceViewVersion"""
    view = ns.create_view(queries=[TRINO, SPARK], properties=ALLOWED)
    known = view.load()
    view.replace(*java_replace(known, TRINO, schema=OTHER_SCHEMA, default_catalog="default"))
    updated = view.load()
    assert (updated.logged_ids, updated.schema_ids) == ([1, 2], [0, 1])
    assert updated.metadata["versions"] == [known.current, updated.current]
    assert updated.current["version-id"] == 2
    assert updated.current["schema-id"] == 1
    assert updated.current["representations"] == [TRINO]
    assert updated.current["default-catalog"] == "default"
    assert updated.current["default-namespace"] == ["ns"]


def test_a_new_version_may_change_just_the_query_of_a_dialect(ns: Namespace) -> None:
    """33 replaceViewVersionByUpdatingSQLForDialect"""
    view = ns.create_view(queries=[SPARK])
    known = view.load()
    other = sql("spark", "select * from ns.updated_tbl")
    view.replace(*java_replace(known, other))
    updated = view.load()
    assert (updated.logged_ids, updated.schema_ids) == ([1, 2], [0])
    assert updated.metadata["versions"] == [known.current, updated.current]
    assert updated.current["representations"] == [other]


def test_a_view_that_was_dropped_meanwhile_takes_no_change(ns: Namespace) -> None:
    """35 updateViewPropertiesConflict, 36 replaceViewVersionConflict, 38 replaceViewConflict,
    41 updateViewLocationConflict"""
    view = ns.create_view(queries=[TRINO])
    known = view.load()
    view.drop().done()
    message = f"View does not exist: {view.full_name}"
    for updates in (
        [set_properties(key1="val1")],
        java_replace(known, TRINO),
        [set_location("new-location")],
    ):
        view.try_replace(*updates).refused(404, "NoSuchViewException", message)


def test_a_view_can_be_created_and_replaced_at_locations(iceberg: Iceberg, ns: Namespace) -> None:
    """39 createAndReplaceViewWithLocation: Java's files are `file:/…`"""
    location = f"file:{iceberg.server.lake}/{ns.name}/view"
    view = ns.create_view(queries=[TRINO], location=location)
    known = view.load()
    assert known.metadata["location"] == location
    updated = f"file:{iceberg.server.lake}/updated/{ns.name}/view"
    other = sql("trino", "select 1")
    replaced = view.replace(*java_replace(known, other, location=updated))
    assert replaced.metadata["location"] == updated
    assert replaced.location.startswith(f"{updated}/metadata/00001-")
    view.drop().done()


def test_a_view_can_be_moved_without_a_new_version(iceberg: Iceberg, ns: Namespace) -> None:
    """40 updateViewLocation"""
    view = ns.create_view(location=f"file:{iceberg.server.lake}/{ns.name}/view")
    known = view.load()
    updated = f"file:{iceberg.server.lake}/updated/{ns.name}/view"
    view.replace(set_location(updated))
    moved = view.load()
    assert moved.metadata == {**known.metadata, "location": updated}


def test_two_replaces_of_the_same_version_both_land(ns: Namespace) -> None:
    """42 concurrentReplaceViewVersion, with server-side retry"""
    view = ns.create_view(queries=[TRINO], properties=ALLOWED)
    known = view.load()
    some, count = sql("spark", "select count(some_id)"), sql("trino", "select count(id)")
    view.replace(*java_replace(known, some, schema=OTHER_SCHEMA))
    view.replace(*java_replace(known, count, schema=SCHEMA))
    updated = view.load()
    found = [
        (each["version-id"], each["schema-id"], each["representations"])
        for each in updated.metadata["versions"]
    ]
    assert found == [(1, 0, [TRINO]), (2, 1, [some]), (3, 0, [count])]
    assert (updated.metadata["current-version-id"], updated.logged_ids) == (3, [1, 2, 3])
