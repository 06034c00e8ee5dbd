"""Metadata files that somebody else wrote."""

import gzip
from typing import Any

import msgspec
import pytest
from pyiceberg.table.metadata import TableMetadataV1

from penstock.errors import InvalidTable
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.register import check_document, read
from tests.iceberg.tables.tables import (
    LOCATION,
    NOW,
    UUID,
    append,
    committed,
    encryption_key,
    of_version,
    partition_field,
    set_ref,
    spec,
    statistics,
    update,
    with_snapshots,
)
from tests.iceberg.test_any_json import put
from tests.iceberg.views import schema

PATH = f"{LOCATION}/metadata/00001-a.metadata.json"
OTHER = UUID.replace("5", "6")


def full(version: int) -> Json:
    table = committed(
        with_snapshots(2, version, partition_spec=spec(partition_field(1))),
        set_ref(1, "t", "tag"),
        update("set-statistics", statistics=statistics(1)),
        update("add-encryption-key", encryption_key=encryption_key()),
    )
    log = [{"timestamp-ms": NOW, "metadata-file": f"{LOCATION}/metadata/00000-a.metadata.json"}]
    return {**table, "metadata-log": log, "newer": {"x": [1]}}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_is_read_as_it_is(version: int, pack: Any) -> None:
    table = full(version)
    assert read(pack(msgspec.json.encode(table)), PATH, uuid=OTHER) == table


def test_a_file_that_is_none_is_refused() -> None:
    for raw in (b"", b"{", b"[]", b"\x1f\x8b", b"{}", b'{"format-version": 4}'):
        with pytest.raises(InvalidTable) as error:
            read(raw, PATH, uuid=UUID)
        assert error.value.detail == "name a metadata file of an Iceberg table"
    with pytest.raises(InvalidTable, match="more than 10 bytes"):
        read(gzip.compress(b" " * 11), PATH, uuid=UUID, max_bytes=10)


def test_the_first_version_as_its_first_writers_left_it_is_completed() -> None:
    old: Json = {
        "format-version": 1,
        "location": LOCATION,
        "last-updated-ms": NOW,
        "last-column-id": 2,
        "schema": {"type": "struct", "fields": schema()["fields"]},
        "partition-spec": [partition_field(1)],
        "properties": {"a": "b"},
        "newer": 1,
    }
    table = check_document(old, uuid=UUID)
    assert table == {
        **old,
        "table-uuid": UUID,
        "schemas": [schema()],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [partition_field(1, field_id=1000)]}],
        "default-spec-id": 0,
        "last-partition-id": 1000,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    }
    TableMetadataV1.model_validate(msgspec.json.decode(msgspec.json.encode(table)))
    after = committed(table, *append(1, sequence=0), now_ms=NOW + 1)
    assert after["snapshot-log"] == [{"timestamp-ms": NOW + 1, "snapshot-id": 1}]
    assert after["partition-spec"] == [partition_field(1, field_id=1000)]
    assert check_document(after, uuid=UUID) == after


def test_main_is_the_current_snapshot_when_a_file_does_not_say() -> None:
    table = with_snapshots(2)
    main = {"main": {"snapshot-id": 2, "type": "branch"}}
    without = {key: value for key, value in table.items() if key != "refs"}
    for bare in (without, {**table, "refs": None}, {**table, "refs": {}}):
        assert check_document(bare, uuid=UUID)["refs"] == main


def test_an_unsorted_table_may_leave_out_that_order() -> None:
    table = check_document({**of_version(2), "sort-orders": []}, uuid=UUID)
    assert table == of_version(2)


def test_what_is_null_in_an_optional_field_is_left_out() -> None:
    table = {**of_version(2), "statistics": None, "snapshots": None, "current-snapshot-id": None}
    found = check_document(table, uuid=UUID)
    assert not {"statistics", "snapshots", "current-snapshot-id"} & set(found)


BROKEN: list[tuple[tuple[Any, ...], Any, str]] = [
    (("format-version",), 4, "Cannot read unsupported version 4"),
    (("format-version",), "2", "format-version is '2', not an integer"),
    (("table-uuid",), "x", "table-uuid is 'x', which is no UUID"),
    (("location",), "", "Invalid location: ''"),
    (("last-updated-ms",), 1.5, "last-updated-ms is 1.5"),
    (("last-sequence-number",), 1, "Invalid snapshot with sequence number 2 greater than last"),
    (("last-column-id",), None, "last-column-id is null"),
    (("last-partition-id",), True, "last-partition-id is true"),
    (("schemas",), {}, "schemas is an object, not a list"),
    (("schemas",), [], "Cannot find schema with current-schema-id=0 from schemas"),
    (("schemas", 0, "schema-id"), 3, "Cannot find schema with current-schema-id=0"),
    (("schemas", 0, "fields", 0, "type"), "text", "which is no type"),
    (("default-spec-id",), 9, "Cannot find spec with default-spec-id=9 from partition-specs"),
    (("partition-specs", 0, "fields", 0, "field-id"), None, "field-id is missing"),
    (("partition-specs", 0, "fields", 0, "source-id"), 9, "Cannot find source column"),
    (("partition-specs", 0, "fields", 0, "transform"), "day", "Invalid source type long"),
    (("default-sort-order-id",), 9, "Cannot find order with default-sort-order-id=9"),
    (("properties",), {"a": 1}, "properties.a is 1, not a string"),
    (("current-snapshot-id",), 9, "Cannot find current version"),
    (("current-snapshot-id",), 1, "Current snapshot ID does not match main branch (1 != 2)"),
    (("current-snapshot-id",), -1, "Current snapshot ID does not match main branch (None != 2)"),
    (("snapshots", 0, "snapshot-id"), 2, "snapshots has the id 2 twice"),
    (("snapshots", 0, "summary"), [], "snapshots[0].summary is a list, not an object"),
    (("snapshots", 0), 1, "snapshots[0] is 1, not an object"),
    (("refs", "t", "snapshot-id"), 9, "Snapshot for reference t does not exist"),
    (("refs", "t", "type"), "leaf", "refs.t.type is 'leaf'"),
    (("refs",), [], "refs is a list, not an object"),
    (("snapshot-log", 0, "timestamp-ms"), NOW + 99_999, "before the previous snapshot log entry"),
    (("snapshot-log", 1, "timestamp-ms"), NOW + 99_999, "Invalid update timestamp"),
    (("metadata-log", 0, "metadata-file"), 1, "metadata-log[0].metadata-file is 1"),
    (("metadata-log", 0, "timestamp-ms"), NOW + 99_999, "Invalid update timestamp"),
    (("statistics", 0, "blob-metadata", 0, "fields", 0), "a", "fields[0] is 'a'"),
    (("encryption-keys", 0, "key-id"), None, "encryption-keys[0].key-id is null"),
]


@pytest.mark.parametrize(("place", "value", "message"), BROKEN, ids=lambda value: str(value)[:40])
def test_a_file_whose_parts_do_not_fit_is_refused(
    place: tuple[Any, ...], value: Any, message: str
) -> None:
    with pytest.raises(InvalidTable) as error:
        check_document(put(full(2), place, value), uuid=UUID)
    assert error.value.message.startswith("Invalid table metadata: ")
    assert message in error.value.message


@pytest.mark.parametrize(
    "key",
    [
        *("format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms"),
        *("last-column-id", "schemas", "current-schema-id", "partition-specs", "default-spec-id"),
        *("last-partition-id", "sort-orders", "default-sort-order-id", "next-row-id"),
    ],
)
def test_what_version_3_requires_is_missed(key: str) -> None:
    table = {k: v for k, v in full(3).items() if k != key}
    with pytest.raises(InvalidTable, match=f"Invalid table metadata: {key} is missing|location"):
        check_document(table, uuid=UUID)
