"""pyiceberg as a peer: it makes and changes tables as we do, where it supports what is asked."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, new_table_metadata
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from penstock.errors import RequirementFailed
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.requests import read_commit
from penstock.iceberg.tables.requirements import check
from tests.iceberg.tables.tables import (
    LOCATION,
    UUID,
    add_order,
    add_schema,
    add_snapshot,
    add_spec,
    append,
    commit_body,
    committed,
    created,
    of_version,
    order,
    partition_field,
    partition_statistics,
    set_ref,
    snapshot,
    sort_field,
    spec,
    statistics,
    update,
    with_snapshots,
)
from tests.iceberg.test_any_json import FULL_SCHEMA
from tests.iceberg.views import column, schema

# Time passes between the two, and pyiceberg keeps no log without a file.
_OWN_TIME = {"last-updated-ms", "metadata-log"}
_updates: TypeAdapter[Any] = TypeAdapter(TableUpdate)
_requirements: TypeAdapter[Any] = TypeAdapter(TableRequirement)


def as_read(document: Json) -> Json:
    """The document as pyiceberg understands it."""
    return dump(TableMetadataUtil.parse_obj(copy(document)))


def dump(metadata: TableMetadata) -> Json:
    found = metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    # The order of files means nothing.
    found["statistics"].sort(key=lambda each: each["snapshot-id"])
    return {key: value for key, value in found.items() if key not in _OWN_TIME}


def copy(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def changed_by_pyiceberg(document: Json, *updates: Json) -> Json:
    read = tuple(_updates.validate_python(copy(each)) for each in updates)
    return dump(update_table_metadata(TableMetadataUtil.parse_obj(copy(document)), read))


def new_columns(*ids: int) -> list[Json]:
    return [column(1, "a", "long"), column(2, "b"), *(column(id, f"c{id}") for id in ids)]


CHANGES: dict[str, list[Json]] = {
    "add a column": [
        add_schema(*new_columns(3), schema_id=1),
        update("set-current-schema", schema_id=-1),
    ],
    "choose a schema": [
        add_schema(*new_columns(3), schema_id=1),
        update("set-current-schema", schema_id=1),
    ],
    "add a spec": [
        add_spec(partition_field(1, "bucket[4]", "n", field_id=1000), spec_id=1),
        update("set-default-spec", spec_id=-1),
    ],
    "add an order": [
        add_order(sort_field(2), order_id=1),
        update("set-default-sort-order", sort_order_id=1),
    ],
    "set and remove properties": [
        update("set-properties", updates={"a": "1", "b": "2"}),
        update("remove-properties", removals=["a"]),
    ],
    "move": [update("set-location", location="s3://lake/elsewhere")],
    "upgrade": [update("upgrade-format-version", format_version=2)],
    "refer": [
        set_ref(2, "b", min_snapshots_to_keep=2, max_snapshot_age_ms=5),
        set_ref(1, "t", "tag", max_ref_age_ms=9),
        update("remove-snapshot-ref", ref_name="t"),
    ],
    "roll back on a branch": [set_ref(3, "b"), set_ref(1, "b")],
    "lose main": [update("remove-snapshot-ref", ref_name="main")],
    "statistics": [
        update("set-statistics", statistics=statistics(1)),
        update("set-statistics", statistics=statistics(2)),
        update("set-statistics", statistics=statistics(2, file_size_in_bytes=11)),
        update("remove-statistics", snapshot_id=1),
    ],
    "partition statistics": [
        update("set-partition-statistics", partition_statistics=partition_statistics(1)),
        update("set-partition-statistics", partition_statistics=partition_statistics(2)),
        update("remove-partition-statistics", snapshot_id=1),
    ],
    "remove a schema": [
        add_schema(*new_columns(3), schema_id=1),
        update("remove-schemas", schema_ids=[1]),
    ],
    "remove a spec": [
        add_spec(partition_field(1, "bucket[4]", "n", field_id=1000), spec_id=1),
        update("remove-partition-specs", spec_ids=[1]),
    ],
    "all at once": [
        update("assign-uuid", uuid=UUID),
        add_schema(*new_columns(3, 4), schema_id=1),
        update("set-current-schema", schema_id=-1),
        add_spec(partition_field(3, "identity", "c3", field_id=1000), spec_id=1),
        update("set-default-spec", spec_id=-1),
        add_order(sort_field(4), order_id=1),
        update("set-default-sort-order", sort_order_id=-1),
        set_ref(1, "b"),
    ],
}


@pytest.mark.parametrize("name", [*CHANGES])
@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_changes_a_table_as_we_do(name: str, version: int) -> None:
    table = with_snapshots(3, version)
    ours = as_read(committed(table, *CHANGES[name]))
    theirs = changed_by_pyiceberg(table, *CHANGES[name])
    if version == 1:
        # It leaves what older readers take as it was, and counts the fields that are left.
        for key in ("schema", "partition-spec", "last-partition-id"):
            ours.pop(key, None), theirs.pop(key, None)
    assert ours == theirs


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_appends_as_we_do(version: int) -> None:
    table = with_snapshots(2, version)
    own: dict[int, Json] = {1: {"sequence": 0}, 2: {}, 3: {"first_row_id": 2, "added_rows": 5}}
    updates = append(3, 2, **own[version])
    assert as_read(committed(table, *updates)) == changed_by_pyiceberg(table, *updates)


def test_pyiceberg_expires_snapshots_as_we_do_but_for_parents() -> None:
    table = with_snapshots(4)
    table = committed(
        table, set_ref(1, "t", "tag"), update("set-statistics", statistics=statistics(1))
    )
    expire = update("remove-snapshots", snapshot_ids=[1, 2])
    theirs = changed_by_pyiceberg(table, expire)
    ours = as_read(committed(table, expire))
    # It forgets that there was a parent; the reference implementation does not.
    assert ours["snapshots"][0].pop("parent-snapshot-id") == 2
    assert ours == theirs


ids = st.integers(1, 6)
# It lets the last sequence number go back, so they all have the same.
agreed = st.one_of(
    st.builds(
        lambda key, value: [update("set-properties", updates={key: value})],
        st.sampled_from("xy"),
        st.sampled_from("12"),
    ),
    st.builds(lambda n: [add_snapshot(n, sequence=9)], ids),
    st.builds(lambda n: [set_ref(n, "b")], ids),
    st.builds(lambda n: [set_ref(n, "t", "tag")], ids),
    st.builds(lambda name: [update("remove-snapshot-ref", ref_name=name)], st.sampled_from("bt")),
    st.builds(lambda n: [update("set-statistics", statistics=statistics(n))], ids),
    st.builds(lambda n: append(n, sequence=9), ids),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(agreed, max_size=10))
def test_pyiceberg_agrees_on_random_changes_that_both_take(steps: list[list[Json]]) -> None:
    ours = with_snapshots(1)
    theirs = as_read(ours)
    for step in steps:
        request = copy(step)
        try:
            after = changed_by_pyiceberg({**theirs, "last-updated-ms": 0}, *request)
        except ValueError:
            continue
        ours, theirs = committed(ours, *step), after
        assert as_read(ours) == theirs


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_numbers_the_columns_of_a_new_table_as_we_do(version: int) -> None:
    # It forgets defaults of columns.
    first, *others = FULL_SCHEMA["fields"]
    plain = {key: value for key, value in first.items() if key != "initial-default"}
    nested = {**FULL_SCHEMA, "fields": [plain, *others]}
    fields = [partition_field(1, "bucket[4]", "p", field_id=77), partition_field(1, name="a")]
    body: Json = {
        "schema": renumbered(nested if version == 3 else schema()),
        "partition_spec": spec(*({**each, "source-id": 101} for each in fields)),
        "write_order": order(sort_field(101, direction="desc", null_order="nulls-last")),
        "properties": {"k": "v", "format-version": str(version)},
    }
    if version == 1:
        body["partition_spec"]["fields"][1]["field-id"] = 78
    ours = created(**copy(body))
    for each, id in zip(body["partition_spec"]["fields"], (1000, 1001), strict=True):
        each["field-id"] = id
    theirs = new_table_metadata(
        Schema.model_validate(body["schema"]),
        PartitionSpec.model_validate(body["partition_spec"]),
        SortOrder.model_validate(body["write_order"]),
        LOCATION,
        dict(body["properties"]),
    )
    expected = {**dump(theirs), "table-uuid": UUID}
    if version == 3:
        expected["next-row-id"] = 0
    assert as_read(ours) == expected


def renumbered(value: Any) -> Any:
    """The schema with other ids for its columns."""
    if isinstance(value, list):
        return [renumbered(each) for each in value]
    if not isinstance(value, dict):
        return value
    ids = ("id", "element-id", "key-id", "value-id")
    found = {key: each + 100 if key in ids else renumbered(each) for key, each in value.items()}
    if "identifier-field-ids" in found:
        found["identifier-field-ids"] = [each + 100 for each in found["identifier-field-ids"]]
    return found


REQUIREMENTS: list[Json] = [
    {"type": "assert-create"},
    {"type": "assert-table-uuid", "uuid": UUID},
    {"type": "assert-table-uuid", "uuid": UUID.replace("5", "6")},
    *(
        {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": id}
        for ref in ("main", "new")
        for id in (None, 1, 3)
    ),
    *(
        {"type": f"assert-{name}", name: id}
        for name in (
            *("last-assigned-field-id", "current-schema-id", "last-assigned-partition-id"),
            *("default-spec-id", "default-sort-order-id"),
        )
        for id in (0, 2, 999)
    ),
]


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=repr)
def test_pyiceberg_judges_requirements_as_we_do(requirement: Json) -> None:
    table = with_snapshots(3)
    theirs = _requirements.validate_python(copy(requirement))
    request = read_commit(commit_body(requirements=(requirement,)))
    try:
        theirs.validate(TableMetadataUtil.parse_obj(copy(table)))
    except Exception:
        with pytest.raises(RequirementFailed):
            check(table, request.requirements)
    else:
        check(table, request.requirements)


def test_pyiceberg_reads_what_a_staged_creation_makes() -> None:
    table = committed(
        None,
        update("assign-uuid", uuid=UUID),
        update("upgrade-format-version", format_version=3),
        add_schema(schema_id=0),
        update("set-current-schema", schema_id=-1),
        update("set-location", location=LOCATION),
        update("add-snapshot", snapshot=snapshot(1, first_row_id=0, added_rows=1)),
        set_ref(1),
    )
    assert as_read(table) == {
        **as_read(of_version(3)),
        "snapshots": [snapshot(1, first_row_id=0, added_rows=1)],
        "current-snapshot-id": 1,
        "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
        "snapshot-log": table["snapshot-log"],
        "last-sequence-number": 1,
        "next-row-id": 1,
    }
