"""Whatever JSON a client sends is accepted whole, or refused with an error of ours."""

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.metadata import TableMetadataUtil

from penstock.errors import PenstockError
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.create import new_document
from penstock.iceberg.tables.document import properties
from penstock.iceberg.tables.loading import refs_only
from penstock.iceberg.tables.log import with_log
from penstock.iceberg.tables.places import next_metadata_path
from penstock.iceberg.tables.register import check_document
from penstock.iceberg.tables.requests import (
    read_commit,
    read_create,
    read_register,
    read_transaction,
)
from penstock.iceberg.tables.requirements import REQUIREMENTS, check
from penstock.iceberg.tables.update_kinds import UPDATES
from penstock.iceberg.tables.updates import apply
from tests.iceberg.tables.tables import (
    LOCATION,
    NOW,
    UUID,
    add_order,
    add_schema,
    add_snapshot,
    add_spec,
    commit_body,
    committed,
    create_body,
    encryption_key,
    order,
    partition_field,
    partition_statistics,
    set_ref,
    sort_field,
    spec,
    statistics,
    update,
    with_snapshots,
)
from tests.iceberg.test_any_json import FULL_SCHEMA, places, put
from tests.iceberg.views import column

names = st.sampled_from(
    [
        *("type", "fields", "id", "name", "required", "element", "element-id", "schema-id"),
        *("source-id", "field-id", "transform", "spec-id", "order-id", "direction", "null-order"),
        *("snapshot-id", "parent-snapshot-id", "sequence-number", "manifest-list", "manifests"),
        *("summary", "operation", "timestamp-ms", "first-row-id", "added-rows", "key-id"),
        *("action", "uuid", "ref", "ref-name", "updates", "requirements", "format-version", "main"),
        *("min-snapshots-to-keep", "max-ref-age-ms", "initial-default", "identifier-field-ids"),
    ]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, 2, 3, 4, -1, 999, 1000, 2**31, 2**63 - 1, -(2**63) - 1, 10**4000]),
    st.floats(),
    st.text(st.characters(codec=None), max_size=10),
    st.sampled_from(["struct", "list", "map", "int", "decimal(9,2)", "fixed[3]", "variant"]),
    st.sampled_from(["bucket[0]", "bucket[4]", "year", "void", "main", "branch", "tag", "asc"]),
    st.sampled_from([*UPDATES, *REQUIREMENTS, "\ud800", "", UUID, LOCATION, "format-version"]),
)
keys = names | st.text(st.characters(codec=None), max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=15,
)

CREATE = create_body(
    schema=FULL_SCHEMA,
    location=LOCATION,
    partition_spec=spec(partition_field(1, "bucket[4]", "p", field_id=1000)),
    write_order=order(sort_field(1)),
    properties={"format-version": "3", "write.metadata.previous-versions-max": "5"},
    stage_create=False,
)
STORED = {
    version: committed(
        with_snapshots(3, version),
        set_ref(2, "old", "tag", max_ref_age_ms=5),
        update("set-statistics", statistics=statistics(2)),
        update("add-encryption-key", encryption_key=encryption_key("there")),
        update("set-properties", updates={"a": "b"}),
        add_spec(partition_field(1, "bucket[4]")),
    )
    for version in (1, 2, 3)
}
ROWS = {"first_row_id": 3, "added_rows": 1}
COMMIT = commit_body(
    add_schema(column(1, "a", "long"), column(2, "b"), column(3, "c"), schema_id=7),
    update("set-current-schema", schema_id=7),
    add_spec(partition_field(3, "truncate[3]", "c3", field_id=1001), spec_id=5),
    update("set-default-spec", spec_id=-1),
    add_order(sort_field(3, "identity"), order_id=5),
    update("set-default-sort-order", sort_order_id=-1),
    add_snapshot(4, 3, **ROWS),
    set_ref(4, min_snapshots_to_keep=1, max_snapshot_age_ms=5, max_ref_age_ms=6),
    set_ref(3, "t", "tag"),
    update("remove-snapshots", snapshot_ids=[1]),
    update("remove-snapshot-ref", ref_name="old"),
    update("set-location", location="s3://lake/elsewhere"),
    update("set-properties", updates={"k": "v"}),
    update("remove-properties", removals=["a"]),
    update("set-statistics", statistics=statistics(3)),
    update("remove-statistics", snapshot_id=2),
    update("set-partition-statistics", partition_statistics=partition_statistics(3)),
    update("remove-partition-statistics", snapshot_id=2),
    update("remove-schemas", schema_ids=[0]),
    update("remove-partition-specs", spec_ids=[0]),
    update("add-encryption-key", encryption_key=encryption_key(properties={"x": "y"})),
    update("remove-encryption-key", key_id="there"),
    update("upgrade-format-version", format_version=3),
    update("assign-uuid", uuid=UUID),
    requirements=(
        {"type": "assert-table-uuid", "uuid": UUID},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 3},
        {"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": None},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
        {"type": "assert-default-spec-id", "default-spec-id": 0},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ),
    identifier={"namespace": ["ns"], "name": "table"},
)
# The steps that make a new table.
STAGED = commit_body(
    update("assign-uuid", uuid=UUID),
    update("upgrade-format-version", format_version=3),
    update("add-schema", schema=FULL_SCHEMA, last_column_id=20),
    update("set-current-schema", schema_id=-1),
    add_spec(partition_field(1, "bucket[4]", "p", field_id=1000)),
    update("set-default-spec", spec_id=-1),
    add_order(),
    update("set-default-sort-order", sort_order_id=-1),
    update("set-location", location=LOCATION),
    update("set-properties", updates={"k": "v"}),
    add_snapshot(4, **(ROWS | {"first_row_id": 0})),
    set_ref(4),
    requirements=({"type": "assert-create"},),
)
GOOD: dict[str, Json] = {
    "create": CREATE,
    "commit to 2": COMMIT,
    "commit to 3": COMMIT,
    "staged": STAGED,
    "transaction": {"table-changes": [COMMIT]},
    "register 1": STORED[1],
    "register 2": STORED[2],
    "register 3": committed(STORED[3], update("set-statistics", statistics=statistics(3))),
    "register": {"name": "t", "metadata-location": LOCATION, "overwrite": True},
}
PLACES = {what: places(body) for what, body in GOOD.items()}


def commit(stored: Json | None, body: Any) -> Json:
    request = read_commit(body)
    check(stored, request.requirements)
    return apply(stored, request.updates, NOW + 10)


def create(body: Any) -> Json:
    return new_document(read_create(body), location=LOCATION, uuid=UUID, now_ms=NOW)


def transact(body: Any) -> Json:
    (*_, last) = read_transaction(body)
    check(STORED[3], last.requirements)
    return apply(STORED[3], last.updates, NOW + 10)


def ask_to_register(body: Any) -> Json:
    read_register(body)
    return STORED[2]


def register(body: Any) -> Json:
    return check_document(body, uuid=UUID)


RUN: dict[str, Callable[[Any], Json]] = {
    "create": create,
    "commit to 2": lambda body: commit(STORED[2], body),
    "commit to 3": lambda body: commit(STORED[3], body),
    "staged": lambda body: commit(None, body),
    "transaction": transact,
    "register 1": register,
    "register 2": register,
    "register 3": register,
    "register": ask_to_register,
}


def run(what: str, body: Any) -> Json | None:
    """Do what the server does with a body; None is a refusal that a client can be told."""
    before, stored = copy.deepcopy(body), copy.deepcopy(STORED)
    found: Json | PenstockError
    try:
        found = RUN[what](body)
    except PenstockError as error:
        found = error
    assert stored == STORED
    assert repr(before) == repr(body)
    if isinstance(found, PenstockError):
        found.message.encode()
        assert len(found.message) < 2000
        assert "pydantic" not in found.message
        return None
    next_metadata_path(found["location"], properties(found), None, UUID)
    return found


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([*GOOD]), anything)
def test_arbitrary_json_is_refused_politely(what: str, body: Any) -> None:
    assert run(what, body) is None


@settings(max_examples=500, deadline=None)
@given(st.sampled_from([*GOOD]), st.data())
def test_a_good_body_with_anything_anywhere_is_accepted_whole_or_refused_politely(
    what: str, data: st.DataObject
) -> None:
    place = data.draw(st.sampled_from(PLACES[what]))
    document = run(what, put(GOOD[what], place, data.draw(anything)))
    if document is not None:
        assert_whole(document)


@pytest.mark.parametrize("what", [*GOOD])
def test_the_good_bodies_are_good(what: str) -> None:
    document = run(what, GOOD[what])
    assert document is not None
    assert_whole(document)


@pytest.mark.parametrize("what", [*GOOD])
def test_every_field_may_be_missing_and_every_entry_doubled_without_a_crash(what: str) -> None:
    for *parents, last in PLACES[what]:
        changed = copy.deepcopy(GOOD[what])
        place: Any = changed
        for key in parents:
            place = place[key]
        if isinstance(last, str):
            del place[last]
        else:
            place.append(place[last])
        if (document := run(what, changed)) is not None:
            assert_whole(document)


def assert_whole(document: Json) -> None:
    """What is stored can be read: as JSON, by our own check, and by pyiceberg."""
    encoded = msgspec.json.encode(document)
    assert msgspec.json.decode(encoded) == document
    assert check_document(document, uuid=UUID) == document
    following, _ = with_log(document, document, f"{LOCATION}/metadata/00000-a.metadata.json")
    assert check_document(following, uuid=UUID) == following
    assert refs_only(refs_only(document)) == refs_only(document)
    if not any(word in encoded for word in PYICEBERG_CANT):
        TableMetadataUtil.parse_obj(msgspec.json.decode(encoded))


# Types that pyiceberg does not know yet, and kinds of blobs beyond those that it names.
PYICEBERG_CANT = (b"variant", b"geo", b"blob-metadata")
