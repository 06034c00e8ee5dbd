"""Updates of a table as a whole: made in one request, upgraded, moved, described."""

import pytest

from penstock.errors import InvalidTable
from penstock.iceberg.metadata import Json
from tests.iceberg.tables.tables import (
    LOCATION,
    NOW,
    UUID,
    add_order,
    add_schema,
    add_spec,
    append,
    committed,
    created,
    encryption_key,
    of_version,
    partition_field,
    sort_field,
    statistics,
    update,
    with_snapshots,
)

CREATION = [
    update("assign-uuid", uuid=UUID),
    update("upgrade-format-version", format_version=2),
    add_schema(schema_id=0),
    update("set-current-schema", schema_id=-1),
    add_spec(),
    update("set-default-spec", spec_id=-1),
    add_order(),
    update("set-default-sort-order", sort_order_id=-1),
    update("set-location", location=f"{LOCATION}/"),
    update("set-properties", updates={}),
]


def refused(document: Json | None, *updates: Json) -> str:
    with pytest.raises(InvalidTable) as error:
        committed(document, *updates)
    assert error.value.detail
    return error.value.message


def test_updates_make_the_same_table_as_a_creation() -> None:
    assert committed(None, *CREATION) == created()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_made_by_updates_has_the_version_that_they_say(version: int) -> None:
    upgrade = update("upgrade-format-version", format_version=version)
    table = committed(None, CREATION[0], *CREATION[2:], upgrade)
    assert table == of_version(version)


def test_what_a_creation_leaves_out_is_unpartitioned_and_unsorted() -> None:
    table = committed(None, add_schema(), uuid=UUID, location=LOCATION)
    assert table == created()


def test_a_creation_with_data_is_whole() -> None:
    table = committed(None, *CREATION, *append(1))
    assert table == committed(created(), *append(1))


def test_a_creation_needs_schema_uuid_and_location() -> None:
    assert refused(None, CREATION[0], CREATION[8]) == "the table has no schema"
    assert refused(None, add_schema(), CREATION[8]) == "the table has no uuid"
    assert refused(None, add_schema(), CREATION[0]) == "the table has no location"
    assert refused(None, add_spec(partition_field(1))) == "the table has no schema"


def test_a_creation_that_chooses_no_order_is_unsorted() -> None:
    table = committed(None, *CREATION[:6], add_order(sort_field(1)), CREATION[8])
    assert [each["order-id"] for each in table["sort-orders"]] == [1, 0]
    assert table["default-sort-order-id"] == 0


def test_the_uuid_of_a_table_stays() -> None:
    assert committed(created(), update("assign-uuid", uuid=UUID.upper())) == created()
    other = update("assign-uuid", uuid=UUID.replace("5", "6"))
    assert refused(created(), other) == f"Cannot reassign uuid {UUID}"


def test_versions_only_go_up() -> None:
    down = update("upgrade-format-version", format_version=1)
    assert refused(created(), down) == "Cannot downgrade v2 table to v1"
    told = refused(created(), update("upgrade-format-version", format_version=4))
    assert told == "Cannot upgrade table to unsupported format version: v4 (supported: v3)"
    refused(None, update("upgrade-format-version", format_version=0))


def test_version_1_becomes_2_and_then_3() -> None:
    second = committed(with_snapshots(2, 1), update("upgrade-format-version", format_version=2))
    assert second["last-sequence-number"] == 0
    assert not {"schema", "partition-spec", "next-row-id"} & set(second)
    third = committed(second, update("upgrade-format-version", format_version=3))
    assert (third["next-row-id"], third["current-snapshot-id"]) == (0, 2)
    third = committed(third, *append(3, 2, sequence=1, first_row_id=0, added_rows=4))
    assert (third["last-sequence-number"], third["next-row-id"]) == (1, 4)


def test_an_empty_table_of_version_3_has_no_current_snapshot() -> None:
    table = committed(created(), update("upgrade-format-version", format_version=3))
    assert "current-snapshot-id" not in table


def test_properties_and_location_change() -> None:
    table = committed(
        created(properties={"a": "1", "b": "2"}),
        update("set-properties", updates={"b": "3", "c": "4"}),
        update("remove-properties", removals=["a", "nothing"]),
        update("set-location", location="s3://lake/elsewhere//"),
        now_ms=NOW + 1,
    )
    assert table["properties"] == {"b": "3", "c": "4"}
    assert table["location"] == "s3://lake/elsewhere"
    assert table["last-updated-ms"] == NOW + 1


@pytest.mark.parametrize(
    "updates",
    [
        {"write.metadata.compression-codec": "zstd"},
        {"write.metadata.previous-versions-max": "many"},
        {"write.metadata.path": "s3://lake/\n"},
    ],
)
def test_properties_that_would_make_the_next_file_impossible_are_refused(updates: Json) -> None:
    refused(created(), update("set-properties", updates=updates))


def test_unknown_fields_of_the_document_are_kept() -> None:
    table = committed({**created(), "newer": {"x": 1}}, *append(1))
    assert table["newer"] == {"x": 1}


def test_what_a_file_leaves_out_stays_out_until_it_is_needed() -> None:
    bare = {k: v for k, v in created().items() if k not in ("statistics", "refs", "snapshot-log")}
    table = committed(bare, update("set-properties", updates={"a": "b"}))
    assert not {"statistics", "refs", "snapshot-log"} & set(table)
    assert "statistics" in committed(bare, update("set-statistics", statistics=statistics(1)))


def test_statistics_are_one_file_for_each_snapshot() -> None:
    table = committed(
        with_snapshots(2),
        update("set-statistics", statistics=statistics(1)),
        update("set-statistics", statistics=statistics(2, newer=1)),
        update("set-statistics", statistics=statistics(1, file_size_in_bytes=99)),
        update("remove-statistics", snapshot_id=7),
    )
    assert table["statistics"] == [
        statistics(1, file_size_in_bytes=99),
        statistics(2, newer=1),
    ]
    assert committed(table, update("set-statistics", statistics=statistics(2, newer=1))) is table


def test_encryption_keys_are_kept_as_they_are() -> None:
    key = encryption_key("k", encrypted_by_id="m", properties={"x": "y"}, newer=1)
    table = committed(of_version(3), update("add-encryption-key", encryption_key=key))
    assert table["encryption-keys"] == [key]
    other = update("add-encryption-key", encryption_key=encryption_key("k"))
    assert committed(table, other) is table
    table = committed(table, update("remove-encryption-key", key_id="k"))
    assert table["encryption-keys"] == []


def test_no_updates_are_no_change() -> None:
    table = with_snapshots(1)
    assert committed(table, now_ms=NOW + 99) is table
