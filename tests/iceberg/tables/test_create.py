"""The first metadata of a table."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest, InvalidTable
from tests.iceberg.tables.tables import (
    LOCATION,
    NOW,
    UUID,
    created,
    of_version,
    order,
    partition_field,
    sort_field,
    spec,
)
from tests.iceberg.views import column, schema


def test_a_new_table_is_of_version_2_and_empty() -> None:
    assert created() == {
        "format-version": 2,
        "table-uuid": UUID,
        "location": LOCATION,
        "last-sequence-number": 0,
        "last-updated-ms": NOW,
        "last-column-id": 2,
        "current-schema-id": 0,
        "schemas": [schema()],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": -1,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }


def test_version_1_repeats_schema_and_spec_for_older_readers() -> None:
    table = of_version(1, partition_spec=spec(partition_field(1)))
    assert table["schema"] == table["schemas"][0]
    assert table["partition-spec"] == table["partition-specs"][0]["fields"]
    assert "last-sequence-number" not in table


def test_version_3_counts_rows_and_has_no_current_snapshot_at_all() -> None:
    table = of_version(3)
    assert table["next-row-id"] == 0
    assert "current-snapshot-id" not in table


def test_the_format_version_is_no_property_afterwards() -> None:
    assert of_version(3, properties={"a": "b"})["properties"] == {"a": "b"}


def test_columns_are_numbered_level_by_level() -> None:
    inner = {"type": "struct", "fields": [column(7, "x"), column(9, "y")]}
    listed = {"type": "list", "element-id": 5, "element": inner, "element-required": False}
    table = created(schema=schema(column(40, "l", listed), column(2, "z")))
    first, second = table["schemas"][0]["fields"]
    assert (first["id"], second["id"]) == (1, 2)
    assert first["type"]["element-id"] == 3
    assert [each["id"] for each in first["type"]["element"]["fields"]] == [4, 5]
    assert table["last-column-id"] == 5


def test_spec_order_and_identifiers_follow_the_columns_new_ids() -> None:
    table = created(
        schema={**schema(column(8, "a"), column(6, "b", "int", required=True)), **IDENTIFIER},
        partition_spec=spec(partition_field(6, "bucket[2]", field_id=1234), spec_id=9),
        write_order=order(sort_field(6), order_id=9),
    )
    assert table["schemas"][0]["identifier-field-ids"] == [2]
    (made,) = table["partition-specs"]
    assert made["spec-id"] == 0
    assert (made["fields"][0]["source-id"], made["fields"][0]["field-id"]) == (2, 1000)
    assert table["sort-orders"] == [order(sort_field(2), order_id=1)]
    assert (table["last-partition-id"], table["default-sort-order-id"]) == (1000, 1)


IDENTIFIER = {"identifier-field-ids": [6]}


def test_fields_that_nobody_here_knows_are_kept() -> None:
    table = created(
        schema=schema(column(1, "a", newer=1), newer=2),
        partition_spec=spec(partition_field(1, newer=3), newer=4),
        write_order=order(sort_field(1, newer=5), newer=6),
    )
    made, by, sorted_by = table["schemas"][0], table["partition-specs"][0], table["sort-orders"][0]
    assert (made["fields"][0]["newer"], made["newer"]) == (1, 2)
    assert (by["fields"][0]["newer"], by["newer"]) == (3, 4)
    assert (sorted_by["fields"][0]["newer"], sorted_by["newer"]) == (5, 6)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"properties": {"format-version": "4"}}, "Unsupported format version: v4 (supported: v3)"),
    ({"properties": {"format-version": "two"}}, "Unsupported format version: vtwo"),
    ({"properties": {"uuid": UUID}}, "Table properties should not contain reserved properties"),
    ({"properties": {"write.metadata.previous-versions-max": "x"}}, "previous-versions-max is 'x'"),
    ({"properties": {"write.metadata.compression-codec": "zstd"}}, "compression-codec is 'zstd'"),
    ({"properties": {"write.metadata.path": "/"}}, "Invalid location"),
    ({"partition_spec": spec(partition_field(9))}, "Cannot find source column for partition field"),
    ({"partition_spec": spec(partition_field(2, "day"))}, "Invalid source type string for"),
    ({"partition_spec": spec(partition_field(1, name="b"))}, "Cannot create identity partition"),
    (
        {"partition_spec": spec(partition_field(1), partition_field(2))},
        "Cannot use partition name more than once: 'p'",
    ),
    ({"partition_spec": spec(partition_field(1, "bucket[0]"))}, "which is no transform"),
    ({"partition_spec": spec(partition_field(1, "bucket"))}, "which is no transform"),
    ({"write_order": order(sort_field(9))}, "Cannot find source column for sort field"),
    ({"write_order": order(sort_field(1, "hour"))}, "Invalid source type long for transform: hour"),
    ({"write_order": order(sort_field(1, direction="up"))}, "direction is 'up'"),
    ({"schema": schema(column(1, "a", "variant"))}, "Invalid schema for v2:\n- Invalid type for a"),
    (
        {"schema": schema(column(1, "a", "int", **{"initial-default": 1}))},
        "Invalid initial default for a: non-null default (1) is not supported until v3",
    ),
    ({"schema": schema(column(1, "a", "text"))}, "which is no type"),
]


@pytest.mark.parametrize(("more", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_can_not_be_a_table_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        created(**more)
    assert message in error.value.message
    assert error.value.detail


@pytest.mark.parametrize("type", ["variant", "timestamp_ns", "unknown", "geometry(srid:3857)"])
def test_newer_types_are_there_from_version_3_on(type: str) -> None:
    body = schema(column(1, "a", type))
    assert of_version(3, schema=body)["schemas"][0]["fields"][0]["type"] == type
    with pytest.raises(InvalidTable):
        of_version(2, schema=body)


def test_what_is_in_a_list_can_not_be_partitioned_by() -> None:
    inner = {"type": "list", "element-id": 2, "element": "int", "element-required": True}
    with pytest.raises(InvalidTable, match="Invalid partition field parent"):
        created(schema=schema(column(1, "l", inner)), partition_spec=spec(partition_field(2)))
    with pytest.raises(InvalidTable, match="Cannot partition by non-primitive"):
        created(schema=schema(column(1, "l", inner)), partition_spec=spec(partition_field(1)))


def test_a_column_in_a_struct_can_be_partitioned_by() -> None:
    inner = {"type": "struct", "fields": [column(5, "x", "int")]}
    table = created(
        schema=schema(column(1, "s", inner)), partition_spec=spec(partition_field(5, name="s.x"))
    )
    assert table["partition-specs"][0]["fields"][0]["source-id"] == 2
