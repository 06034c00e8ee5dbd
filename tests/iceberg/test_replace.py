"""Replacing a view: each requirement and each update, by its rule."""

import copy

import pytest

from penstock.errors import DialectLost, InvalidView, NothingAdded, RequirementFailed
from penstock.iceberg.metadata import current_representations, current_schema, current_version
from tests.iceberg.views import (
    NOW,
    UUID,
    add_schema,
    add_version,
    column,
    created,
    logged_ids,
    remove_properties,
    replaced,
    schema,
    set_current,
    set_location,
    set_properties,
    sql,
    version,
    version_ids,
    with_versions,
)

OTHER = sql(text="select 2")


def assert_uuid(uuid: str) -> dict[str, str]:
    return {"type": "assert-view-uuid", "uuid": uuid}


def test_a_uuid_that_matches_lets_the_request_pass_in_either_case() -> None:
    view = created()
    requirements = [assert_uuid(UUID), assert_uuid(UUID.upper())]
    after = replaced(view, set_properties(a="b"), requirements=requirements)
    assert after["properties"] == {"a": "b"}


def test_a_uuid_that_does_not_match_fails_the_requirement() -> None:
    with pytest.raises(RequirementFailed) as error:
        replaced(created(), requirements=[assert_uuid("other")])
    assert error.value.message == (
        f"Requirement failed: view UUID does not match: expected {UUID} != other"
    )


def test_requirements_come_before_updates() -> None:
    with pytest.raises(RequirementFailed):
        replaced(created(), set_current(77), requirements=[assert_uuid("other")])


@pytest.mark.parametrize("uuid", [UUID, UUID.upper()])
def test_assigning_the_same_uuid_changes_nothing(uuid: str) -> None:
    view = created()
    assert replaced(view, {"action": "assign-uuid", "uuid": uuid}) is view


def test_assigning_another_uuid_is_refused() -> None:
    with pytest.raises(InvalidView, match=r"^Cannot reassign uuid"):
        replaced(created(), {"action": "assign-uuid", "uuid": "1" + UUID[1:]})


def test_the_format_version_stays_at_one() -> None:
    view = created()
    assert replaced(view, {"action": "upgrade-format-version", "format-version": 1}) is view


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (0, "Cannot downgrade v1 view to v0"),
        (-1, "Cannot downgrade v1 view to v-1"),
        (2, "Unsupported format version: 2"),
    ],
)
def test_another_format_version_is_refused(wanted: int, message: str) -> None:
    with pytest.raises(InvalidView) as error:
        replaced(created(), {"action": "upgrade-format-version", "format-version": wanted})
    assert error.value.message == message


def test_a_new_schema_gets_the_next_id_whatever_was_sent() -> None:
    after = replaced(created(), add_schema(column(1, "c"), **{"schema-id": 99}))
    assert [each["schema-id"] for each in after["schemas"]] == [0, 1]
    assert after["schemas"][1]["fields"] == [column(1, "c")]


@pytest.mark.parametrize(
    "same",
    [
        add_schema(**{"schema-id": 7}),
        add_schema(**{"identifier-field-ids": []}),
        add_schema(**{"identifier-field-ids": None}),
        add_schema(column(1, "a", "long", doc=None), column(2, "b")),
        {**add_schema(), "last-column-id": 2},
    ],
)
def test_a_schema_that_the_view_has_is_not_added_again(same: dict[str, object]) -> None:
    view = created()
    assert replaced(view, same) is view


def test_spaces_within_a_type_make_no_other_schema() -> None:
    view = created(schema=schema(column(1, "a", "decimal(9,2)")))
    assert replaced(view, add_schema(column(1, "a", "decimal(9, 2)"))) is view


@pytest.mark.parametrize(
    "field",
    [
        column(3, "a", "long"),
        column(1, "A", "long"),
        column(1, "a", "int"),
        column(1, "a", "long", required=True),
        column(1, "a", "long", doc="about a"),
        column(1, "a", "long", newer="field"),
    ],
)
def test_a_schema_that_differs_in_one_thing_is_another(field: dict[str, object]) -> None:
    after = replaced(created(), add_schema(field, column(2, "b")))
    assert len(after["schemas"]) == 2


def test_other_identifier_fields_make_another_schema_in_another_order_they_dont() -> None:
    columns = [column(1, "a", "long") | {"required": True}, column(2, "b") | {"required": True}]
    view = created(schema=schema(*columns, **{"identifier-field-ids": [1, 2]}))
    assert replaced(view, add_schema(*columns, **{"identifier-field-ids": [2, 1]})) is view
    assert len(replaced(view, add_schema(*columns))["schemas"]) == 2


def test_minus_one_is_the_schema_that_was_added_last() -> None:
    updates = [add_schema(column(1, "c")), add_version(OTHER, schema_id=-1), set_current()]
    after = replaced(created(), *updates)
    assert current_schema(after)["fields"] == [column(1, "c")]
    assert current_version(after)["schema-id"] == 1


def test_minus_one_is_also_a_schema_that_was_there_before() -> None:
    after = replaced(created(), add_schema(), add_version(OTHER, schema_id=-1), set_current())
    assert current_version(after)["schema-id"] == 0
    assert len(after["schemas"]) == 1


def test_minus_one_without_a_schema_added_is_refused() -> None:
    with pytest.raises(NothingAdded) as error:
        replaced(created(), add_version(OTHER, schema_id=-1))
    assert error.value.message == "Cannot set last added schema: no schema has been added"


def test_a_version_of_an_unknown_schema_is_refused() -> None:
    with pytest.raises(InvalidView) as error:
        replaced(created(), add_version(OTHER, schema_id=5))
    assert error.value.message == "Cannot add version with unknown schema: 5"


def test_a_location_is_set_without_a_new_version() -> None:
    view = created()
    after = replaced(view, set_location("s3://other/place/"))
    assert after["location"] == "s3://other/place"
    assert after["version-log"] == view["version-log"]


def test_the_same_location_changes_nothing() -> None:
    view = created()
    assert replaced(view, set_location(view["location"])) is view


@pytest.mark.parametrize("update", [set_location(None), {"action": "set-location"}])
def test_a_location_of_null_is_refused(update: dict[str, object]) -> None:
    with pytest.raises(InvalidView) as error:
        replaced(created(), update)
    assert error.value.message == "Invalid location: null"


def test_properties_are_merged_and_removed_without_a_new_version() -> None:
    view = created(properties={"a": "1", "b": "2"})
    after = replaced(view, set_properties(b="3", c="4"), remove_properties("a", "unknown"))
    assert after["properties"] == {"b": "3", "c": "4"}
    assert (after["versions"], after["version-log"]) == (view["versions"], view["version-log"])


@pytest.mark.parametrize(
    "update",
    [
        set_properties(),
        remove_properties(),
        remove_properties("unknown"),
        set_properties(a="1"),
    ],
)
def test_properties_that_stay_as_they_are_change_nothing(update: dict[str, object]) -> None:
    view = created(properties={"a": "1"})
    assert replaced(view, update) is view


def test_the_last_property_takes_the_empty_map_with_it() -> None:
    assert "properties" not in replaced(created(properties={"a": "1"}), remove_properties("a"))


def test_a_new_version_becomes_the_current_one() -> None:
    after = replaced(created(), add_version(OTHER, version_id=2, timestamp_ms=5), set_current())
    assert after["current-version-id"] == 2
    assert current_representations(after) == [("spark", "select 2")]
    assert after["version-log"][1:] == [{"timestamp-ms": 5, "version-id": 2}]


def test_a_version_that_is_only_added_is_not_logged() -> None:
    after = replaced(created(), add_version(OTHER))
    assert (version_ids(after), logged_ids(after)) == ([1, 2], [1])


@pytest.mark.parametrize(("sent", "stored"), [(1, 2), (0, 2), (-1, 2), (2, 2), (7, 7)])
def test_a_version_keeps_its_id_unless_it_is_taken_or_lower(sent: int, stored: int) -> None:
    assert version_ids(replaced(created(), add_version(OTHER, version_id=sent))) == [1, stored]


def test_an_id_between_the_taken_ones_moves_up() -> None:
    view = replaced(created(), add_version(OTHER, version_id=7))
    after = replaced(view, add_version(sql(text="select 3"), version_id=5))
    assert version_ids(after) == [1, 7, 8]


def test_the_last_id_is_kept_and_leaves_none_after_it() -> None:
    view = replaced(created(), add_version(OTHER, version_id=2**31 - 1), set_current())
    assert view["current-version-id"] == 2**31 - 1
    with pytest.raises(InvalidView, match=r"^no version id is left after 2147483647"):
        replaced(view, add_version(sql(text="select 3")))


def test_a_version_that_the_view_has_is_not_added_again() -> None:
    view = created()
    assert replaced(view, add_version(version_id=9, timestamp_ms=9)) is view


def test_a_version_that_was_there_before_is_found_again() -> None:
    view = created()
    assert replaced(view, add_version(), set_current()) is view


def test_an_id_that_a_request_sends_means_what_became_of_it() -> None:
    view = replaced(created(), add_version(OTHER), set_current())
    third = version(sql(text="select 3"), **{"version-id": 2})
    after = replaced(view, {"action": "add-view-version", "view-version": third}, set_current(2))
    assert (version_ids(after), after["current-version-id"]) == ([1, 2, 3], 3)


def test_a_version_that_this_request_added_twice_is_the_last_added() -> None:
    after = replaced(created(), add_version(OTHER), add_version(OTHER), set_current())
    assert (version_ids(after), after["current-version-id"]) == ([1, 2], 2)


@pytest.mark.parametrize(
    "other",
    [
        version(summary={}),
        version(sql(), sql("trino")),
        version(default_catalog="c"),
        version(default_namespace=[]),
        version(newer=1),
        version(sql(newer=1)),
    ],
)
def test_a_version_that_differs_in_one_thing_is_another(other: dict[str, object]) -> None:
    after = replaced(created(), {"action": "add-view-version", "view-version": other})
    assert version_ids(after) == [1, 2]


def test_representations_in_another_order_make_another_version() -> None:
    view = created(view_version=version(sql("spark"), sql("trino")))
    assert version_ids(replaced(view, add_version(sql("trino"), sql("spark")))) == [1, 2]


def test_another_schema_makes_another_version() -> None:
    after = replaced(created(), add_schema(column(1, "c")), add_version(schema_id=1))
    assert [each["schema-id"] for each in after["versions"]] == [0, 1]


def test_minus_one_without_a_version_added_is_refused() -> None:
    with pytest.raises(NothingAdded, match=r"^Cannot set last version id: no current version id"):
        replaced(created(), set_current())


def test_an_unknown_version_cannot_be_current() -> None:
    with pytest.raises(InvalidView) as error:
        replaced(created(), set_current(4))
    assert error.value.message == "Cannot set current version to unknown version: 4"


def test_the_current_version_set_again_changes_nothing() -> None:
    view = created()
    assert replaced(view, set_current(1)) is view


def test_a_rollback_is_logged_with_the_time_of_now() -> None:
    after = replaced(with_versions(2), set_current(1))
    assert after["current-version-id"] == 1
    assert after["version-log"][-1] == {"timestamp-ms": NOW, "version-id": 1}
    assert version_ids(after) == [1, 2]


def test_java_rolls_back_by_adding_the_old_version_and_naming_its_id() -> None:
    after = replaced(with_versions(2), add_version(), set_current(1))
    assert (version_ids(after), logged_ids(after)) == ([1, 2], [1, 2, 1])


def test_one_commit_is_logged_once_for_the_last_version_it_sets() -> None:
    updates = [add_version(OTHER), set_current(), add_version(sql(text="select 3")), set_current()]
    assert logged_ids(replaced(created(), *updates)) == [1, 3]


def test_going_there_and_back_in_one_commit_changes_nothing() -> None:
    view = with_versions(2)
    assert replaced(view, set_current(1), set_current(2)) is view


def test_a_request_without_updates_changes_nothing() -> None:
    view = created()
    assert replaced(view) is view


def test_a_version_without_a_time_gets_the_servers() -> None:
    after = replaced(created(), add_version(OTHER, timestamp_ms=None), set_current())
    assert current_version(after)["timestamp-ms"] == NOW
    assert after["version-log"][-1]["timestamp-ms"] == NOW


def test_a_lost_dialect_is_refused_with_both_lists() -> None:
    view = created(view_version=version(sql("Spark"), sql("trino")))
    with pytest.raises(DialectLost) as error:
        replaced(view, add_version(sql("TRINO"), sql("presto")), set_current())
    assert error.value.message == (
        "Cannot replace view due to loss of view dialects (replace.drop-dialect.allowed=false):\n"
        "Previous dialects: [spark, trino]\nNew dialects: [presto, trino]"
    )


def test_a_dialect_in_another_case_is_not_lost() -> None:
    after = replaced(created(), add_version(sql("SPARK"), sql("trino")), set_current())
    assert after["current-version-id"] == 2


def test_a_version_without_the_dialect_may_be_added_while_it_is_not_current() -> None:
    assert version_ids(replaced(created(), add_version(sql("trino")))) == [1, 2]


@pytest.mark.parametrize("flag", ["true", "TRUE"])
def test_a_dialect_may_be_dropped_when_the_properties_say_so(flag: str) -> None:
    """The request's own updates count, as in the kit's createOrReplaceView."""
    allow = set_properties({"replace.drop-dialect.allowed": flag})
    after = replaced(created(), add_version(sql("trino")), set_current(), allow)
    assert current_representations(after) == [("trino", "select a, b from t")]


@pytest.mark.parametrize("flag", ["false", "yes", ""])
def test_any_other_value_does_not_allow_it(flag: str) -> None:
    view = created(properties={"replace.drop-dialect.allowed": flag})
    with pytest.raises(DialectLost):
        replaced(view, add_version(sql("trino")), set_current())


def test_a_rollback_may_not_lose_a_dialect_either() -> None:
    view = replaced(created(), add_version(sql("spark"), sql("trino")), set_current())
    with pytest.raises(DialectLost):
        replaced(view, set_current(1))


def test_fields_of_a_newer_client_survive_a_replacement() -> None:
    view = {**created(view_version=version(newer=1)), "view-field": {"deep": [1]}}
    new = version(sql(text="select 2", hint="h"), newer=2)
    after = replaced(view, {"action": "add-view-version", "view-version": new}, set_current())
    assert after["view-field"] == {"deep": [1]}
    assert after["versions"] == [view["versions"][0], {**new, "version-id": 2}]


def test_two_clients_that_replace_the_same_view_both_land() -> None:
    """The kit's concurrentReplaceViewVersion: the second request is applied to what is there."""
    first = [add_schema(column(1, "c")), add_version(OTHER, version_id=2, schema_id=-1)]
    second = [add_schema(), add_version(sql(text="select 3"), version_id=2, schema_id=-1)]
    view = replaced(created(), *first, set_current())
    after = replaced(view, *second, set_current())
    assert (after["current-version-id"], version_ids(after)) == (3, [1, 2, 3])
    assert current_version(after)["schema-id"] == 0
    assert len(after["schemas"]) == 2


def test_the_metadata_that_is_replaced_is_not_touched() -> None:
    view = with_versions(10)
    before = copy.deepcopy(view)
    updates = [add_schema(column(1, "c")), add_version(schema_id=-1), set_current()]
    replaced(view, *updates, set_properties(a="b"), remove_properties("a"), set_location("x"))
    assert view == before
