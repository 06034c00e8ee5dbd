"""What holds for every table after any updates."""

import contextlib
import copy
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.metadata import TableMetadataUtil

from penstock.errors import PenstockError
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import current_snapshot_id
from penstock.iceberg.tables.register import check_document
from penstock.iceberg.tables.requests import read_commit
from penstock.iceberg.tables.updates import apply
from tests.iceberg.tables.tables import (
    NOW,
    UUID,
    add_order,
    add_schema,
    add_snapshot,
    add_spec,
    append,
    commit_body,
    encryption_key,
    of_version,
    partition_field,
    partition_statistics,
    set_ref,
    sort_field,
    statistics,
    update,
)
from tests.iceberg.views import column

ids = st.integers(1, 8)
few = st.integers(-1, 4)
sources = st.integers(1, 4)
transforms = st.sampled_from(["identity", "bucket[4]", "truncate[2]", "void", "year"])
columns = st.lists(st.sampled_from([1, 2, 3, 4]), unique=True, max_size=4).map(
    lambda ids: [column(id, "abcd"[id - 1], "int", newer=id) for id in ids]
)
refs = st.sampled_from(["main", "main", "b", "t"])


def put_ref(id: int, name: str) -> Json:
    return set_ref(id, name, "tag" if name == "t" else "branch")


def number(updates: list[Any]) -> list[Json]:
    """The updates; one that appends brings two of them."""
    return [one for each in updates for one in (each if isinstance(each, list) else [each])]


updates = st.one_of(
    st.builds(lambda fields, n: add_schema(*fields, schema_id=n), columns, few),
    st.builds(lambda n: update("set-current-schema", schema_id=n), few),
    st.builds(
        lambda source, how, name: add_spec(partition_field(source, how, name)),
        sources,
        transforms,
        st.sampled_from(["p", "q", "a"]),
    ),
    st.builds(lambda n: update("set-default-spec", spec_id=n), few),
    st.builds(lambda source, how: add_order(sort_field(source, how)), sources, transforms),
    st.just(add_order()),
    st.builds(lambda n: update("set-default-sort-order", sort_order_id=n), few),
    st.builds(
        lambda n, parent: append(n, parent, first_row_id=10 * n, added_rows=10),
        ids,
        st.none() | ids,
    ),
    st.builds(lambda n: append(n, None, sequence=0, first_row_id=10 * n, added_rows=1), ids),
    st.builds(lambda n: add_snapshot(n, first_row_id=10 * n, added_rows=10), ids),
    st.builds(put_ref, ids, refs),
    st.builds(lambda name: update("remove-snapshot-ref", ref_name=name), refs),
    st.builds(lambda some: update("remove-snapshots", snapshot_ids=some), st.lists(ids)),
    st.builds(lambda some: update("remove-schemas", schema_ids=some), st.lists(few)),
    st.builds(lambda some: update("remove-partition-specs", spec_ids=some), st.lists(few)),
    st.builds(lambda n: update("set-statistics", statistics=statistics(n)), ids),
    st.builds(lambda n: update("remove-statistics", snapshot_id=n), ids),
    st.builds(
        lambda n: update("set-partition-statistics", partition_statistics=partition_statistics(n)),
        ids,
    ),
    st.builds(
        lambda n: update("add-encryption-key", encryption_key=encryption_key(n, newer=n)),
        st.sampled_from("kl"),
    ),
    st.builds(lambda n: update("remove-encryption-key", key_id=n), st.sampled_from("kl")),
    st.builds(lambda v: update("upgrade-format-version", format_version=v), st.integers(1, 4)),
    st.builds(
        lambda key, value: update("set-properties", updates={key: value}),
        st.sampled_from("xy"),
        st.sampled_from("12"),
    ),
    st.builds(lambda key: update("remove-properties", removals=[key]), st.sampled_from("xy")),
    st.just(update("set-location", location="s3://lake/elsewhere/")),
    st.just(update("assign-uuid", uuid=UUID.upper())),
)
commits = st.lists(st.lists(updates, max_size=4).map(number), max_size=15)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3), commits)
def test_any_updates_that_are_accepted_keep_a_table_whole(
    version: int, history: list[list[Json]]
) -> None:
    table = {**of_version(version), "newer": {"x": [1]}}
    for position, commit in enumerate(history):
        before = copy.deepcopy(table)
        after = table
        with contextlib.suppress(PenstockError):
            after = apply(table, read_commit(commit_body(*commit)).updates, NOW + position)
        assert table == before
        check_whole(before, after)
        table = after


def check_whole(before: Json, after: Json) -> None:
    assert check_document(after, uuid=UUID) == after
    TableMetadataUtil.parse_obj(msgspec.json.decode(msgspec.json.encode(after)))
    assert (after["table-uuid"], after["newer"]) == (UUID, before["newer"])
    assert after["format-version"] >= before["format-version"]
    for key in ("last-updated-ms", "last-column-id", "last-partition-id"):
        assert after[key] >= before[key]
    for key in ("last-sequence-number", "next-row-id"):
        assert after.get(key, 0) >= before.get(key, 0)
    for key, id in (("schemas", "schema-id"), ("partition-specs", "spec-id")):
        stored = {each[id]: each for each in before[key]}
        assert all(stored.get(each[id], each) == each for each in after[key])
    snapshots = {each["snapshot-id"] for each in after["snapshots"]}
    assert {ref["snapshot-id"] for ref in after["refs"].values()} <= snapshots
    current = current_snapshot_id(after)
    assert current == after["refs"].get("main", {}).get("snapshot-id")
    if current is not None:
        assert after["snapshot-log"][-1]["snapshot-id"] == current
    check_version(after)


def check_version(table: Json) -> None:
    """What a document has in one format version and not in another."""
    if table["format-version"] == 1:
        assert "last-sequence-number" not in table
        assert table["schema"]["schema-id"] == table["current-schema-id"]
        assert "partition-spec" in table
    else:
        assert not {"schema", "partition-spec"} & set(table)
        assert all(
            each.get("sequence-number", 0) <= table["last-sequence-number"]
            for each in table["snapshots"]
        )
    assert ("next-row-id" in table) == (table["format-version"] == 3)
    if table["format-version"] == 3:
        assert table.get("current-snapshot-id") != -1


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3), commits)
def test_updates_that_change_nothing_give_the_same_object(
    version: int, history: list[list[Json]]
) -> None:
    table = of_version(version)
    for commit in history:
        with contextlib.suppress(PenstockError):
            table = apply(table, read_commit(commit_body(*commit)).updates, NOW)
        again = [
            update("set-properties", updates=table["properties"]),
            update("set-location", location=table["location"]),
            update("assign-uuid", uuid=table["table-uuid"]),
            update("upgrade-format-version", format_version=table["format-version"]),
            update("add-schema", schema=table["schemas"][-1]),
            update("set-current-schema", schema_id=table["current-schema-id"]),
            *(update("set-snapshot-ref", ref_name=k, **v) for k, v in refs_of(table).items()),
            *(update("set-statistics", statistics=each) for each in table["statistics"]),
            update("remove-snapshots", snapshot_ids=[99]),
            update("remove-snapshot-ref", ref_name="nothing"),
        ]
        assert apply(table, read_commit(commit_body(*again)).updates, NOW + 1) is table


def refs_of(table: Json) -> dict[str, Json]:
    return {
        name: {key.replace("-", "_"): value for key, value in ref.items()}
        for name, ref in table["refs"].items()
    }
