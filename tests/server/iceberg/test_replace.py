"""Replacing views: what each update does, what is refused, and when nothing changes."""

from typing import Any

import pytest

from tests.harness.clients.iceberg import Namespace, View
from tests.harness.clients.iceberg_views import (
    OTHER_SCHEMA,
    SCHEMA,
    SPARK,
    TRINO,
    Json,
    add_schema,
    add_version,
    metadata_files,
    new_version,
    remove_properties,
    set_current,
    set_location,
    set_properties,
    sql,
)

OTHER = sql(text="select 2")
ALLOWED = {"replace.drop-dialect.allowed": "true"}


def test_a_uuid_cannot_be_reassigned(view: View) -> None:
    known = view.load()
    assert view.replace({"action": "assign-uuid", "uuid": view.uuid}) == known
    other = {"action": "assign-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"}
    view.try_replace(other).refused(400, "IllegalArgumentException", "Cannot reassign uuid")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [(0, "Cannot downgrade v1 view to v0"), (2, "Unsupported format version: 2")],
)
def test_the_format_has_one_version(view: View, wanted: int, message: str) -> None:
    known = view.load()
    assert view.replace({"action": "upgrade-format-version", "format-version": 1}) == known
    answer = view.try_replace({"action": "upgrade-format-version", "format-version": wanted})
    answer.refused(400, "IllegalArgumentException", message)


def test_a_new_schema_gets_the_next_id(view: View) -> None:
    replaced = view.replace(add_schema({**OTHER_SCHEMA, "schema-id": 42}))
    assert replaced.metadata["schemas"] == [
        {**SCHEMA, "schema-id": 0},
        {**OTHER_SCHEMA, "schema-id": 1},
    ]
    assert replaced.current["schema-id"] == 0


def test_the_same_schema_is_not_added_twice(view: View) -> None:
    known = view.load()
    assert view.replace(add_schema({**SCHEMA, "schema-id": 9})) == known


def test_a_schema_that_was_there_counts_as_the_last_added(view: View) -> None:
    view.replace(add_schema(OTHER_SCHEMA))
    updates = add_schema(SCHEMA), add_version(OTHER, schema_id=-1, version_id=2), set_current()
    replaced = view.replace(*updates)
    assert (replaced.schema_ids, replaced.current["schema-id"]) == ([0, 1], 0)


@pytest.mark.parametrize(
    "change", [{"doc": "other"}, {"required": False}, {"type": "long"}, {"id": 9}, {"name": "x"}]
)
def test_schemas_that_differ_anywhere_are_different(view: View, change: Json) -> None:
    fields = [{**SCHEMA["fields"][0], **change}, SCHEMA["fields"][1]]
    replaced = view.replace(add_schema({**SCHEMA, "fields": fields}))
    assert replaced.schema_ids == [0, 1]


def test_a_version_with_the_last_schema_needs_one(view: View) -> None:
    answer = view.try_replace(add_version(OTHER, schema_id=-1), set_current())
    message = "Cannot set last added schema: no schema has been added"
    answer.refused(400, "ValidationException", message)


def test_a_version_needs_a_schema_that_exists(view: View) -> None:
    answer = view.try_replace(add_version(OTHER, schema_id=3), set_current())
    message = "Cannot add version with unknown schema: 3"
    answer.refused(400, "IllegalArgumentException", message)


@pytest.mark.parametrize(("sent", "given"), [(1, 2), (2, 2), (-5, 2), (9, 9)])
def test_a_version_keeps_its_id_unless_it_is_taken_or_lower(
    view: View, sent: int, given: int
) -> None:
    replaced = view.replace(add_version(OTHER, version_id=sent), set_current())
    assert (replaced.version_ids, replaced.current["version-id"]) == ([1, given], given)


def test_a_version_may_be_added_without_becoming_current(view: View) -> None:
    replaced = view.replace(add_version(OTHER, version_id=2))
    assert (replaced.version_ids, replaced.logged_ids) == ([1, 2], [1])
    assert replaced.current["version-id"] == 1


def test_the_same_version_is_not_added_twice(view: View) -> None:
    known = view.load()
    assert view.replace(add_version(SPARK, version_id=7, timestamp_ms=1)) == known


@pytest.mark.parametrize(
    "change",
    [
        {"summary": {"engine-name": "flink"}},
        {"default_catalog": "other"},
        {"default_namespace": ["other"]},
    ],
)
def test_versions_that_differ_anywhere_are_different(view: View, change: Json) -> None:
    replaced = view.replace(add_version(SPARK, version_id=2, **change), set_current())
    assert (replaced.version_ids, replaced.logged_ids) == ([1, 2], [1, 2])


def test_the_order_of_queries_makes_a_difference(ns: Namespace) -> None:
    view = ns.create_view(queries=[SPARK, TRINO])
    replaced = view.replace(*new_version(TRINO, SPARK))
    assert replaced.current["representations"] == [TRINO, SPARK]


def test_a_version_of_before_is_found_again(view: View) -> None:
    view.replace(*new_version(OTHER))
    found = view.replace(add_version(SPARK, version_id=3), set_current())
    assert (found.version_ids, found.metadata["current-version-id"]) == ([1, 2], 1)


def test_the_last_version_needs_one(view: View) -> None:
    answer = view.try_replace(set_current())
    answer.refused(400, "ValidationException", "Cannot set last version id")


def test_a_view_can_be_rolled_back_to_a_version_of_before(view: View) -> None:
    first = view.load().current
    view.replace(*new_version(OTHER))
    rolled = view.replace(add_version(SPARK, version_id=3), set_current(1))
    assert rolled.current == first
    assert (rolled.version_ids, rolled.logged_ids) == ([1, 2], [1, 2, 1])
    # It was not made now, but it became current now.
    assert rolled.metadata["version-log"][-1]["timestamp-ms"] > first["timestamp-ms"]


def test_a_version_must_exist_to_become_current(view: View) -> None:
    answer = view.try_replace(set_current(5))
    message = "Cannot set current version to unknown version: 5"
    answer.refused(400, "IllegalArgumentException", message)


def test_one_commit_makes_one_entry_of_the_log(view: View) -> None:
    replaced = view.replace(
        add_version(OTHER, version_id=2, timestamp_ms=1_700_000_000_002),
        set_current(),
        add_version(sql(text="select 3"), version_id=3, timestamp_ms=1_700_000_000_003),
        set_current(),
    )
    assert replaced.version_ids == [1, 2, 3]
    assert replaced.metadata["version-log"][1:] == [
        {"timestamp-ms": 1_700_000_000_003, "version-id": 3}
    ]


def test_updates_are_applied_in_their_order(view: View) -> None:
    replaced = view.replace(
        set_properties(a="1", b="1"), remove_properties("a"), set_properties(b="2", c="2")
    )
    assert replaced.properties == {"b": "2", "c": "2"}


def test_the_last_property_takes_the_map_with_it(view: View) -> None:
    view.replace(set_properties(a="1"))
    assert "properties" not in view.replace(remove_properties("a")).metadata


@pytest.mark.parametrize("location", [None, "", 7, "a\nb"])
def test_a_location_must_be_one(view: View, location: Any) -> None:
    answer = view.try_replace(set_location(location))
    assert answer.status == 400
    if location is None:
        answer.refused(400, "IllegalArgumentException", "Invalid location: null")


@pytest.mark.parametrize("dialect", ["spark", "SPARK"])
def test_a_dialect_may_change_its_case(view: View, dialect: str) -> None:
    replaced = view.replace(*new_version(sql(dialect, "select 2")))
    assert replaced.current["representations"][0]["dialect"] == dialect


def test_a_dialect_cannot_be_lost(ns: Namespace) -> None:
    view = ns.create_view(queries=[SPARK, TRINO])
    answer = view.try_replace(*new_version(OTHER))
    message = (
        "Cannot replace view due to loss of view dialects (replace.drop-dialect.allowed=false):\n"
        "Previous dialects: [spark, trino]\nNew dialects: [spark]"
    )
    answer.refused(400, "IllegalStateException", message)
    assert view.load().version_ids == [1]


def test_a_dialect_can_be_lost_with_permission(ns: Namespace) -> None:
    view = ns.create_view(queries=[SPARK, TRINO])
    allowed = {"action": "set-properties", "updates": ALLOWED}
    replaced = view.replace(*new_version(OTHER), allowed)
    assert replaced.current["representations"] == [OTHER]
    assert view.replace(set_current(1)).current["representations"] == [SPARK, TRINO]


def test_a_permission_that_goes_with_the_change_is_none(ns: Namespace) -> None:
    view = ns.create_view(queries=[SPARK, TRINO], properties=ALLOWED)
    gone = remove_properties("replace.drop-dialect.allowed")
    view.try_replace(*new_version(OTHER), gone).refused(400, "IllegalStateException")


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1.5", ""])
def test_a_history_has_a_positive_length(ns: Namespace, view: View, limit: str) -> None:
    key = "version.history.num-entries"
    message = f"{key} must be positive but was {limit}"
    answer = view.try_replace({"action": "set-properties", "updates": {key: limit}})
    answer.refused(400, "IllegalArgumentException", message)
    answer = ns.try_create_view("other", properties={key: limit})
    answer.refused(400, "IllegalArgumentException", message)


def test_ten_versions_are_kept_by_default(view: View) -> None:
    for number in range(2, 13):
        view.replace(*new_version(sql(text=f"select {number}")))
    loaded = view.load()
    assert sorted(loaded.version_ids) == list(range(3, 13))
    assert loaded.logged_ids == list(range(3, 13))


def test_the_current_version_is_kept_before_newer_ones(ns: Namespace) -> None:
    view = ns.create_view(properties={"version.history.num-entries": "2"})
    view.replace(*new_version(OTHER))
    view.replace(set_current(1))
    replaced = view.replace(add_version(sql(text="select 3"), version_id=3))
    assert (replaced.version_ids, replaced.logged_ids) == ([1, 3], [1])
    assert replaced.current["version-id"] == 1


def test_what_one_commit_adds_is_kept_beyond_the_limit(ns: Namespace) -> None:
    view = ns.create_view(properties={"version.history.num-entries": "1"})
    queries = [sql(text=f"select {number}") for number in (2, 3, 4)]
    added = [add_version(query, version_id=n) for n, query in enumerate(queries, 2)]
    replaced = view.replace(*added, set_current())
    assert (sorted(replaced.version_ids), replaced.logged_ids) == ([2, 3, 4], [4])


def test_schemas_outlive_their_versions(ns: Namespace) -> None:
    view = ns.create_view(properties={"version.history.num-entries": "1"})
    updates = add_schema(OTHER_SCHEMA), *new_version(OTHER, schema_id=-1)
    replaced = view.replace(*updates)
    assert (replaced.version_ids, replaced.schema_ids) == ([2], [0, 1])


@pytest.mark.parametrize(
    "updates",
    [
        [],
        [set_properties()],
        [set_properties(a="b")],
        [set_properties(a="c"), set_properties(a="b")],
        [remove_properties("nothing")],
        [remove_properties()],
        [set_current(1)],
        [add_schema(SCHEMA)],
        [add_version(SPARK), set_current(1)],
        [{"action": "upgrade-format-version", "format-version": 1}],
    ],
)
def test_when_nothing_changes_nothing_is_written(ns: Namespace, updates: list[Json]) -> None:
    view = ns.create_view(properties={"a": "b"})
    known, files = view.load(), metadata_files(ns.client.server.lake)
    assert view.replace(*updates, set_location(known.metadata["location"])) == known
    assert view.load() == known
    assert metadata_files(ns.client.server.lake) == files
