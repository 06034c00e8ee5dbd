"""How many versions stay, and what the log forgets with them."""

import time

import pytest

from penstock.errors import InvalidView
from penstock.iceberg.metadata import Json
from penstock.iceberg.replace import replace_metadata
from penstock.iceberg.requests import read_replace
from tests.iceberg.views import (
    NOW,
    add_schema,
    add_version,
    column,
    created,
    logged_ids,
    remove_properties,
    replaced,
    set_current,
    set_properties,
    sql,
    version_ids,
    with_versions,
)

ENTRIES = "version.history.num-entries"


def test_ten_versions_are_kept_without_a_property() -> None:
    view = replaced(with_versions(9), remove_properties(ENTRIES))
    for number in range(20, 25):
        view = replaced(view, add_version(sql(text=f"select {number}")), set_current())
    assert sorted(version_ids(view)) == list(range(5, 15))
    assert logged_ids(view) == list(range(5, 15))


def test_the_list_begins_with_the_current_version_then_goes_down() -> None:
    view = replaced(with_versions(4), set_properties({ENTRIES: "3"}), set_current(2))
    assert version_ids(view) == [2, 4, 3]


def test_up_to_the_limit_the_order_stays() -> None:
    assert version_ids(replaced(with_versions(4), set_properties({ENTRIES: "4"}))) == [1, 2, 3, 4]


def test_an_old_version_that_is_current_is_kept() -> None:
    view = replaced(with_versions(5), set_current(1), set_properties({ENTRIES: "2"}))
    assert version_ids(view) == [1, 5]


def test_a_limit_of_one_keeps_the_current_version() -> None:
    view = replaced(with_versions(3), set_properties({ENTRIES: "1"}))
    assert (version_ids(view), logged_ids(view)) == ([3], [3])


def test_what_one_commit_adds_is_kept_beyond_the_limit() -> None:
    updates = [add_version(sql(text=f"select {n}")) for n in (10, 11, 12)]
    view = replaced(with_versions(3), set_properties({ENTRIES: "2"}), *updates)
    assert version_ids(view) == [3, 6, 5, 4]


def test_the_log_forgets_everything_up_to_the_last_entry_of_an_expired_version() -> None:
    view = replaced(with_versions(3), set_current(1))
    view = replaced(view, set_current(3))
    assert logged_ids(view) == [1, 2, 3, 1, 3]
    assert logged_ids(replaced(view, set_properties({ENTRIES: "2"}))) == [3]


def test_the_log_keeps_versions_that_come_back() -> None:
    view = replaced(with_versions(3), set_current(2))
    view = replaced(view, set_current(3))
    assert logged_ids(replaced(view, set_properties({ENTRIES: "2"}))) == [2, 3, 2, 3]


def test_schemas_are_never_forgotten() -> None:
    view = created(properties={ENTRIES: "1"})
    for number in range(5):
        field = {"id": number, "name": "n", "type": "int", "required": False}
        added = {"action": "add-schema", "schema": {"type": "struct", "fields": [field]}}
        view = replaced(view, added, add_version(schema_id=-1), set_current())
    assert [each["schema-id"] for each in view["schemas"]] == list(range(6))
    assert version_ids(view) == [6]


@pytest.mark.parametrize("entries", ["0", "-1", "ten", " 5", "", "2147483648", "٣"])
def test_a_limit_that_is_not_positive_is_refused(entries: str) -> None:
    with pytest.raises(InvalidView) as error:
        replaced(created(), set_properties({ENTRIES: entries}))
    assert error.value.message == f"version.history.num-entries must be positive but was {entries}"


def test_a_bad_limit_can_be_removed() -> None:
    view = {**created(), "properties": {ENTRIES: "0"}}
    assert "properties" not in replaced(view, remove_properties(ENTRIES))


@pytest.mark.parametrize("alike", [False, True])
def test_many_updates_on_a_long_history_take_time_in_proportion(alike: bool) -> None:
    """Ten times the versions and updates must not take a hundred times as long."""
    few, many = seconds_to_add(100, alike), seconds_to_add(1000, alike)
    assert many < 40 * few


def seconds_to_add(count: int, alike: bool) -> float:
    """The best of three: that many versions, and as many schemas, onto as many others."""
    view = replaced(created(), *additions(count, "old", alike))
    request = read_replace({"updates": additions(count, "new", alike)})
    took = []
    for _ in range(3):
        start = time.thread_time()
        replace_metadata(view, request, NOW)
        took.append(time.thread_time() - start)
    return min(took)


def additions(count: int, word: str, alike: bool) -> list[Json]:
    """Versions and schemas which differ in what is read first, or in what is read last."""
    updates = []
    for n in range(count):
        text, name = ("select 1", "a") if alike else (f"select {word} {n}", f"{word}{n}")
        updates.append(add_version(sql(text=text), summary={"n": f"{word} {n}"}))
        updates.append(add_schema(column(1, name, "int", doc=f"{word} {n}")))
    return updates
