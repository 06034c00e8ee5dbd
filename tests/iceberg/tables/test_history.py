"""Snapshots of a table and the references to them."""

import pytest

from penstock.errors import ConcurrentCommit, InvalidTable
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import current_snapshot_id
from tests.iceberg.tables.tables import (
    NOW,
    add_snapshot,
    append,
    committed,
    logged_ids,
    of_version,
    partition_statistics,
    set_ref,
    snapshot,
    snapshot_ids,
    statistics,
    update,
    with_snapshots,
)


def expire(*ids: int) -> Json:
    return update("remove-snapshots", snapshot_ids=list(ids))


def refused(document: Json, *updates: Json) -> str:
    with pytest.raises(InvalidTable) as error:
        committed(document, *updates, now_ms=NOW + 10)
    assert error.value.detail
    return error.value.message


def test_an_append_becomes_current_and_is_logged_with_its_own_time() -> None:
    table = committed(of_version(2), *append(5, newer=1), now_ms=NOW + 9)
    assert table["snapshots"] == [snapshot(5, newer=1)]
    assert table["refs"] == {"main": {"type": "branch", "snapshot-id": 5}}
    assert table["current-snapshot-id"] == 5
    assert table["snapshot-log"] == [{"timestamp-ms": NOW + 5, "snapshot-id": 5}]
    assert (table["last-sequence-number"], table["last-updated-ms"]) == (5, NOW + 9)


def test_a_snapshot_that_is_staged_becomes_nothing() -> None:
    table = committed(of_version(2), add_snapshot(5))
    assert (table["refs"], table["snapshot-log"]) == ({}, [])
    assert current_snapshot_id(table) is None


def test_a_snapshot_for_an_older_state_is_a_conflict() -> None:
    with pytest.raises(ConcurrentCommit) as error:
        committed(with_snapshots(3), *append(9, 2, sequence=3))
    assert error.value.message == (
        "Cannot add snapshot with sequence number 3 older than last sequence number 3"
    )


def test_a_snapshot_without_a_parent_may_be_of_any_sequence_and_takes_none_back() -> None:
    table = committed(with_snapshots(3), *append(9, None, sequence=2))
    assert table["last-sequence-number"] == 3


def test_a_snapshot_is_added_once() -> None:
    assert refused(with_snapshots(2), add_snapshot(2)) == "Snapshot already exists for id: 2"


def test_version_1_has_no_sequence_numbers_and_may_list_manifests() -> None:
    assert "must be 0 in v1: 4" in refused(with_snapshots(1, 1), add_snapshot(4, 1))
    old = snapshot(4, 1, sequence=0, manifests=["s3://lake/m.avro"], summary=None)
    del old["manifest-list"]
    table = committed(with_snapshots(1, 1), update("add-snapshot", snapshot=old))
    assert table["snapshots"][1]["manifests"] == ["s3://lake/m.avro"]
    assert "last-sequence-number" not in table
    old["sequence-number"] = 4
    told = refused(with_snapshots(1, 2), update("add-snapshot", snapshot=old))
    assert told == "Cannot add a snapshot: manifest-list is missing"


def test_rows_of_version_3_are_numbered() -> None:
    table = committed(of_version(3), *append(1, first_row_id=0, added_rows=7))
    assert table["next-row-id"] == 7
    table = committed(table, *append(2, 1, first_row_id=7, added_rows=0))
    assert table["next-row-id"] == 7
    assert "first-row-id is null" in refused(table, add_snapshot(3, 2))
    with pytest.raises(ConcurrentCommit) as error:
        committed(table, add_snapshot(3, 2, first_row_id=6, added_rows=1))
    assert error.value.message == (
        "Cannot add a snapshot, first-row-id is behind table next-row-id: 6 < 7"
    )
    huge = add_snapshot(3, 2, first_row_id=2**63 - 1, added_rows=1)
    assert "no row id is left" in refused(table, huge)


def test_a_clock_that_is_far_ahead_or_behind_is_refused() -> None:
    ahead = append(9, 2, timestamp_ms=NOW + 10 + 60_001)
    assert "Invalid update timestamp" in refused(with_snapshots(2), *ahead)
    behind = append(9, 2, timestamp_ms=NOW + 2 - 60_001)
    assert "before the previous snapshot log entry" in refused(with_snapshots(2), *behind)
    near = append(9, 2, timestamp_ms=NOW + 2 - 60_000)
    assert logged_ids(committed(with_snapshots(2), *near)) == [1, 2, 9]


def test_time_never_goes_back() -> None:
    table = with_snapshots(2)
    after = committed(table, update("set-properties", updates={"a": "b"}), now_ms=5)
    assert after["last-updated-ms"] == table["last-updated-ms"]


def test_references_need_their_snapshot() -> None:
    assert refused(with_snapshots(2), set_ref(9, "b")) == "Cannot set b to unknown snapshot: 9"


def test_a_reference_is_kept_as_sent() -> None:
    table = committed(with_snapshots(2), set_ref(1, "b", min_snapshots_to_keep=3, newer="x"))
    assert table["refs"]["b"] == {
        "type": "branch",
        "snapshot-id": 1,
        "min-snapshots-to-keep": 3,
        "newer": "x",
    }
    assert committed(table, update("remove-snapshot-ref", ref_name="b"))["refs"] == {
        "main": table["refs"]["main"]
    }


def test_going_back_to_an_older_snapshot_happens_now() -> None:
    table = committed(with_snapshots(3), set_ref(1), now_ms=NOW + 50)
    assert current_snapshot_id(table) == 1
    assert table["snapshot-log"][-1] == {"timestamp-ms": NOW + 50, "snapshot-id": 1}
    assert logged_ids(table) == [1, 2, 3, 1]


def test_new_retention_of_main_is_no_entry_in_the_log() -> None:
    table = committed(with_snapshots(2), set_ref(2, max_snapshot_age_ms=5))
    assert table["refs"]["main"]["max-snapshot-age-ms"] == 5
    assert logged_ids(table) == [1, 2]


def test_only_the_last_of_several_appends_in_one_request_is_logged() -> None:
    table = committed(with_snapshots(1), *append(2, 1), *append(3, 2), *append(4, 3))
    assert (snapshot_ids(table), logged_ids(table)) == ([1, 2, 3, 4], [1, 4])


def test_main_can_be_lost_and_made_anew_as_a_replaced_table_does() -> None:
    lose = update("remove-snapshot-ref", ref_name="main")
    lost = committed(with_snapshots(2), lose)
    assert (current_snapshot_id(lost), lost["refs"], logged_ids(lost)) == (None, {}, [1, 2])
    made = committed(with_snapshots(2), lose, *append(3))
    assert (current_snapshot_id(made), logged_ids(made)) == (3, [1, 2, 3])


def test_removed_snapshots_take_the_log_before_them_along() -> None:
    table = committed(with_snapshots(5), expire(1, 3))
    assert (snapshot_ids(table), logged_ids(table)) == ([2, 4, 5], [4, 5])
    # Parents stay as they were written.
    assert table["snapshots"][0]["parent-snapshot-id"] == 1


def test_removed_snapshots_take_references_and_statistics_along() -> None:
    table = committed(
        with_snapshots(3),
        set_ref(1, "b"),
        set_ref(1, "t", "tag"),
        set_ref(2, "c"),
        *(update("set-statistics", statistics=statistics(id)) for id in (1, 2)),
        *(
            update("set-partition-statistics", partition_statistics=partition_statistics(id))
            for id in (1, 2)
        ),
    )
    table = committed(table, expire(1))
    assert set(table["refs"]) == {"main", "c"}
    assert [each["snapshot-id"] for each in table["statistics"]] == [2]
    assert [each["snapshot-id"] for each in table["partition-statistics"]] == [2]


def test_removing_the_current_snapshot_leaves_an_empty_table() -> None:
    table = committed(with_snapshots(2), expire(2))
    assert (current_snapshot_id(table), table["refs"], table["snapshot-log"]) == (None, {}, [])
    assert table["current-snapshot-id"] == -1
    assert "current-snapshot-id" not in committed(with_snapshots(2, 3), expire(2))


def test_removing_what_is_not_there_changes_nothing() -> None:
    table = with_snapshots(2)
    assert committed(table, expire(7), update("remove-snapshot-ref", ref_name="x")) is table


def test_a_snapshot_needs_a_schema_first() -> None:
    with pytest.raises(InvalidTable, match="before a schema is added"):
        committed(None, add_snapshot(1))


def test_a_log_that_somebody_else_left_wrong_is_mended_when_it_is_trimmed() -> None:
    table = {**with_snapshots(3), "snapshot-log": []}
    assert logged_ids(committed(table, expire(1))) == [3]
