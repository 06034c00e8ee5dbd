"""Bodies of requests, read."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.requests import (
    check_target,
    read_commit,
    read_create,
    read_register,
    read_transaction,
)
from penstock.iceberg.tables.requirements import AssertRef
from penstock.iceberg.tables.update_kinds import AddSnapshot, SetRef
from tests.iceberg.tables.tables import (
    LOCATION,
    add_snapshot,
    commit_body,
    create_body,
    encryption_key,
    set_ref,
    snapshot,
    statistics,
    update,
)


def refused(read: Any, body: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        read(body)
    assert message in error.value.message
    assert error.value.detail


def test_a_creation_is_read_with_all_that_it_may_leave_out() -> None:
    request = read_create(create_body(partition_spec=None, write_order=None, properties=None))
    assert (request.spec, request.order, request.location) == (None, None, None)
    assert (request.properties, request.stage) == ({}, False)


def test_a_staged_creation_is_read() -> None:
    request = read_create(create_body(stage_create=True, location=f"{LOCATION}/"))
    assert (request.stage, request.location) == (True, LOCATION)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "the body is a list, not an object"),
        (create_body(name=None), "name is null"),
        (create_body(name=""), "name"),
        (create_body(schema=None), "schema is null"),
        (create_body(stage_create="yes"), "stage-create is 'yes', not true or false"),
        (create_body(properties={"a": 1}), "properties.a is 1, not a string"),
        (create_body(location=""), "Invalid location"),
        (create_body(partition_spec={}), "partition-spec.fields is missing"),
        (create_body(write_order={"fields": [{}]}), "write-order.fields[0].source-id is missing"),
    ],
)
def test_a_creation_that_can_not_be_right_names_the_field(body: Any, message: str) -> None:
    refused(read_create, body, message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (update("fly"), "updates[0].action is 'fly', which is unknown for a table"),
        (update("add-view-version"), "which is unknown for a table"),
        ({}, "updates[0].action is missing"),
        (update("assign-uuid", uuid="x"), "updates[0].uuid is 'x', which is no UUID"),
        (update("upgrade-format-version", format_version=True), "format-version is true"),
        (update("set-current-schema", schema_id=1.0), "schema-id is 1.0, not an integer"),
        (update("set-default-spec", spec_id="1"), "spec-id is '1', not an integer"),
        (update("set-default-sort-order", sort_order_id=2**31), "id is 2147483648"),
        (update("remove-snapshots", snapshot_ids=[2**63]), "snapshot-ids[0]"),
        (update("remove-snapshots", snapshot_ids=[True]), "snapshot-ids[0] is true"),
        (update("set-properties", updates={"uuid": "x"}), "reserved properties"),
        (update("set-properties", updates={"a": None}), "updates[0].updates.a is null"),
        (update("remove-properties", removals=["a", 1]), "removals[1] is 1, not a string"),
        (update("set-location", location=None), "Invalid location: null"),
        (set_ref(1, "main", "tag"), "Cannot set main to a tag"),
        (set_ref(1, "b", "stick"), "type is 'stick'"),
        (set_ref(1, ""), "ref-name is empty"),
        (set_ref(1, "t", "tag", min_snapshots_to_keep=1), "Tags do not support"),
        (set_ref(1, "b", max_ref_age_ms=0), "max-ref-age-ms is 0"),
        (add_snapshot(-1), "snapshot.snapshot-id is -1"),
        (add_snapshot(1, timestamp_ms=None), "timestamp-ms is null"),
        (add_snapshot(1, manifest_list=None), "manifest-list is null"),
        (add_snapshot(1, summary={}), "summary.operation is null"),
        (add_snapshot(1, summary={"operation": "merge"}), "summary.operation is 'merge'"),
        (add_snapshot(1, summary={"operation": "append", "n": 1}), "summary.n is 1"),
        (add_snapshot(1, first_row_id=1), "Invalid added-rows"),
        (add_snapshot(1, first_row_id=-1, added_rows=1), "Invalid first-row-id: -1"),
        (update("set-statistics", statistics=statistics(1), snapshot_id=2), "is not that of"),
        (update("set-statistics", statistics={**statistics(1), "blob-metadata": None}), "is null"),
        (update("add-encryption-key", encryption_key={"key-id": "k"}), "metadata is missing"),
        (update("add-encryption-key", encryption_key=encryption_key(properties=[])), "properties"),
        (update("add-schema", schema={"type": "struct", "fields": [], "schema-id": "1"}), "'1'"),
        (update("add-schema", schema=[], last_column_id=1), "schema is a list"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_update_that_can_not_be_right_names_the_field(given: Json, message: str) -> None:
    refused(read_commit, commit_body(given), message)


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ({"type": "assert-luck"}, "requirements[0].type is 'assert-luck', which is unknown"),
        ({"type": "assert-view-uuid", "uuid": "x"}, "which is unknown for a table"),
        ({"type": "assert-table-uuid"}, "requirements[0].uuid is missing"),
        ({"type": "assert-ref-snapshot-id", "ref": 1}, "requirements[0].ref is 1"),
        ({"type": "assert-current-schema-id"}, "current-schema-id is missing"),
        ("assert-create", "requirements[0] is 'assert-create', not an object"),
    ],
)
def test_a_requirement_that_can_not_be_right_names_the_field(
    requirement: Any, message: str
) -> None:
    refused(read_commit, commit_body(requirements=(requirement,)), message)


def test_what_is_null_in_an_optional_field_is_left_out() -> None:
    body = commit_body(
        add_snapshot(1, parent_snapshot_id=None, schema_id=None, first_row_id=None),
        set_ref(1, max_ref_age_ms=None, newer=1),
    )
    added, referred = read_commit(body).updates
    expected = snapshot(1)
    del expected["schema-id"]
    assert added == AddSnapshot(expected)
    assert referred == SetRef("main", {"type": "branch", "snapshot-id": 1, "newer": 1})


def test_a_reference_that_must_not_be_there_may_be_left_out() -> None:
    requirement = {"type": "assert-ref-snapshot-id", "ref": "main"}
    (read,) = read_commit(commit_body(requirements=(requirement,))).requirements
    assert read == AssertRef("main", None)


def test_a_commit_knows_whether_it_makes_a_table() -> None:
    assert read_commit(commit_body(requirements=({"type": "assert-create"},))).creates
    assert not read_commit({"updates": []}).creates


def test_a_commit_names_the_table_of_its_path_or_none() -> None:
    body = commit_body(identifier={"namespace": ["a", "b"], "name": "t"})
    check_target(read_commit(body), ("a", "b"), "t")
    check_target(read_commit(commit_body()), ("a", "b"), "t")
    with pytest.raises(InvalidRequest):
        check_target(read_commit(body), ("a",), "t")


def test_a_transaction_names_each_table_once() -> None:
    first = commit_body(identifier={"namespace": ["a"], "name": "t"})
    second = commit_body(identifier={"namespace": ["a"], "name": "u"})
    changes = read_transaction({"table-changes": [first, second]})
    assert [each.identifier for each in changes] == [(("a",), "t"), (("a",), "u")]
    refused(read_transaction, {"table-changes": [first, first]}, "the table of an earlier change")
    refused(read_transaction, {"table-changes": [commit_body()]}, "identifier is missing")
    refused(read_transaction, {"table-changes": []}, "table-changes is empty")
    broken = {**first, "updates": [{}]}
    refused(
        read_transaction, {"table-changes": [broken]}, "table-changes[0].updates[0].action is miss"
    )


def test_a_transaction_has_a_bounded_number_of_tables() -> None:
    def change(number: int) -> Json:
        return {"identifier": {"namespace": ["n"], "name": f"t{number}"}, "updates": []}

    assert len(read_transaction({"table-changes": list(map(change, range(1_000)))})) == 1_000
    refused(
        read_transaction,
        {"table-changes": list(map(change, range(1_001)))},
        "table-changes has 1001 changes",
    )


def test_a_registration_is_read() -> None:
    request = read_register({"name": "t", "metadata-location": f"{LOCATION}/m.json"})
    assert (request.metadata_location, request.overwrite) == (f"{LOCATION}/m.json", False)
    refused(read_register, {"name": "t"}, "metadata-location is missing")
    refused(
        read_register, {"name": "t", "metadata-location": "x", "overwrite": 1}, "overwrite is 1"
    )


def test_deep_bodies_and_numbers_that_nobody_can_store_are_refused() -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"a": deep}
    refused(read_commit, commit_body(update("assign-uuid", newer=deep)), "levels deep")
    refused(read_commit, commit_body(update("assign-uuid", newer=2**64)), "more than 64 bits")
    refused(read_commit, commit_body(update("assign-uuid", newer=float("nan"))), "nan")
