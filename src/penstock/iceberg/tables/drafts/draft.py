"""A table while one request changes it: opened from a document, closed to a new one.

A draft holds what can change, by id, so that neither a long history nor a long list of updates
makes a request slow. What is in it is replaced, never changed.
"""

from dataclasses import dataclass, field

from penstock.errors import InvalidTable
from penstock.iceberg import schemas
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import (
    FIRST_PARTITION_FIELD,
    NO_SNAPSHOT,
    ROW_LINEAGE,
    current_snapshot_id,
    properties,
)
from penstock.iceberg.tables.drafts.numbered import Numbered
from penstock.iceberg.tables.parts import orders, specs
from penstock.iceberg.tables.parts.orders import UNSORTED_ID
from penstock.iceberg.tables.parts.schemas import Columns
from penstock.iceberg.tables.parts.snapshot_log import check_times, correct_log
from penstock.iceberg.tables.properties import check_values

# What a new document has, in the order in which it is usually written.
_NEW: Json = {
    "format-version": 0,
    "table-uuid": "",
    "location": "",
    "last-sequence-number": 0,
    "last-updated-ms": 0,
    "last-column-id": 0,
    "schema": {},
    "current-schema-id": 0,
    "schemas": [],
    "partition-spec": [],
    "default-spec-id": 0,
    "partition-specs": [],
    "last-partition-id": 0,
    "default-sort-order-id": 0,
    "sort-orders": [],
    "properties": {},
    "current-snapshot-id": NO_SNAPSHOT,
    "next-row-id": 0,
    "refs": {},
    "snapshots": [],
    "statistics": [],
    "partition-statistics": [],
    "snapshot-log": [],
    "metadata-log": [],
}
_FILES = ("statistics", "partition-statistics")
_KEYS = "encryption-keys"


@dataclass(slots=True)
class Draft:
    document: Json
    now_ms: int
    format_version: int
    schemas: Numbered
    specs: Numbered
    orders: Numbered
    uuid: str | None = None
    location: str | None = None
    last_sequence: int = 0
    last_column: int = 0
    current_schema: int = 0
    default_spec: int = 0
    last_partition: int = FIRST_PARTITION_FIELD - 1
    default_order: int = UNSORTED_ID
    properties: dict[str, str] = field(default_factory=dict)
    snapshots: dict[int, Json] = field(default_factory=dict)
    current_snapshot: int | None = None
    next_row: int = 0
    refs: dict[str, Json] = field(default_factory=dict)
    log: list[Json] = field(default_factory=list)
    # Statistics files by the name of their list, then by snapshot.
    files: dict[str, dict[int, list[Json]]] = field(default_factory=dict)
    keys: dict[str, Json] = field(default_factory=dict)
    # The ids of partition fields, by what each is made of.
    field_ids: dict[tuple[int, str], int] = field(default_factory=dict)
    added_snapshots: set[int] = field(default_factory=set)
    removed_snapshots: bool = False
    # Those of the schema beside them.
    _columns: tuple[Json, Columns] | None = None

    @property
    def schema(self) -> Json:
        """The current schema, which a table has before anything that refers to columns."""
        if (found := self.schemas.by_id.get(self.current_schema)) is None:
            raise InvalidTable(
                "the table has no schema", detail="put add-schema before what refers to columns"
            )
        return found

    @property
    def columns(self) -> Columns:
        """The columns of the current schema."""
        schema = self.schema
        if self._columns is None or self._columns[0] is not schema:
            self._columns = schema, Columns(schema)
        return self._columns[1]


def new_draft(format_version: int, now_ms: int) -> Draft:
    return Draft(_NEW, now_ms, format_version, *_number(_NEW), files=_group(_NEW))


def open_draft(document: Json, now_ms: int) -> Draft:
    return Draft(
        document,
        # Clocks of servers differ, and readers refuse a table that goes back in time.
        max(now_ms, document["last-updated-ms"]),
        document["format-version"],
        *_number(document),
        uuid=document["table-uuid"],
        location=document["location"],
        last_sequence=document.get("last-sequence-number", 0),
        last_column=document["last-column-id"],
        current_schema=document["current-schema-id"],
        default_spec=document["default-spec-id"],
        last_partition=document["last-partition-id"],
        default_order=document["default-sort-order-id"],
        properties=dict(properties(document)),
        snapshots={each["snapshot-id"]: each for each in document.get("snapshots", ())},
        current_snapshot=current_snapshot_id(document),
        next_row=document.get("next-row-id", 0),
        refs=dict(document.get("refs", {})),
        log=list(document.get("snapshot-log", ())),
        files=_group(document),
        field_ids=_list_field_ids(document),
        keys={each["key-id"]: each for each in document.get(_KEYS, ())},
    )


def close_draft(draft: Draft) -> Json:
    """The document after all changes; the one that was opened when nothing changed."""
    before = draft.document
    _drop_references(draft)
    _check(draft)
    after = {**before, **_required(draft)}
    # What a file leaves out when it is empty stays out.
    after |= {key: value for key, value in _optional(draft).items() if value or key in before}
    _write_version(draft, after)
    if before is not _NEW and after == before:
        return before
    log = after.get("snapshot-log", [])
    if log != before.get("snapshot-log", []):
        check_times(log, draft.now_ms)
    return {**after, "last-updated-ms": draft.now_ms}


def _required(draft: Draft) -> Json:
    return {
        "format-version": draft.format_version,
        "table-uuid": draft.uuid,
        "location": draft.location,
        "last-column-id": draft.last_column,
        "current-schema-id": draft.current_schema,
        "schemas": list(draft.schemas.by_id.values()),
        "default-spec-id": draft.default_spec,
        "partition-specs": list(draft.specs.by_id.values()),
        "last-partition-id": draft.last_partition,
        "default-sort-order-id": draft.default_order,
        "sort-orders": list(draft.orders.by_id.values()),
    }


def _optional(draft: Draft) -> Json:
    files = {key: [each for of in draft.files[key].values() for each in of] for key in _FILES}
    return {
        "properties": draft.properties,
        "refs": draft.refs,
        "snapshots": list(draft.snapshots.values()),
        "snapshot-log": _close_log(draft),
        **files,
        _KEYS: list(draft.keys.values()),
    }


def _close_log(draft: Draft) -> list[Json]:
    if not (draft.added_snapshots or draft.removed_snapshots):
        return draft.log
    return correct_log(
        draft.log,
        draft.snapshots,
        draft.current_snapshot,
        added=draft.added_snapshots,
        removed=draft.removed_snapshots,
        now_ms=draft.now_ms,
    )


def _write_version(draft: Draft, after: Json) -> None:
    """Write what is not in every format version."""
    before = draft.document
    fresh = draft.format_version != before["format-version"]
    if draft.format_version == 1:
        # Older readers take these two.
        after["schema"] = draft.schema
        after["partition-spec"] = draft.specs.by_id[draft.default_spec]["fields"]
        if fresh:
            del after["last-sequence-number"]
    else:
        after.pop("schema", None)
        after.pop("partition-spec", None)
        after["last-sequence-number"] = draft.last_sequence
    if draft.format_version >= ROW_LINEAGE:
        after["next-row-id"] = draft.next_row
    elif fresh:
        after.pop("next-row-id", None)
    if fresh or draft.current_snapshot != current_snapshot_id(before):
        after["current-snapshot-id"] = draft.current_snapshot
        if draft.current_snapshot is None:
            after["current-snapshot-id"] = NO_SNAPSHOT
            if draft.format_version >= ROW_LINEAGE:
                del after["current-snapshot-id"]


def _check(draft: Draft) -> None:
    before = draft.document
    if not draft.uuid or not draft.location:
        missing = "location" if draft.uuid else "uuid"
        raise InvalidTable(
            f"the table has no {missing}",
            detail="put assign-uuid and set-location into the updates of a new table",
        )
    _check_columns(draft)
    if draft.properties != properties(before):
        check_values(draft.properties)


def _check_columns(draft: Draft) -> None:
    """Check that default spec and sort order fit the current schema, if one of them changed."""
    before = draft.document
    if (
        draft.current_schema == before["current-schema-id"]
        and draft.default_spec == before["default-spec-id"]
        and draft.default_order == before["default-sort-order-id"]
        and before is not _NEW
    ):
        return
    if before is _NEW:
        # Clients that make tables in one request may leave out what is empty.
        if not draft.specs.by_id:
            draft.specs.add(specs.UNPARTITIONED)
        if draft.default_order not in draft.orders.by_id:
            draft.orders.add(orders.UNSORTED, id=orders.UNSORTED_ID)
    specs.check_fit(draft.specs.by_id[draft.default_spec], draft.columns, names=False)
    orders.check_fit(draft.orders.by_id[draft.default_order], draft.columns)


def _number(document: Json) -> tuple[Numbered, Numbered, Numbered]:
    return (
        Numbered("schema", "schema-id", schemas.fingerprint, schemas.content, document["schemas"]),
        Numbered("spec", "spec-id", specs.fingerprint, specs.content, document["partition-specs"]),
        Numbered(
            "sort order", "order-id", orders.fingerprint, orders.content, document["sort-orders"]
        ),
    )


def _list_field_ids(document: Json) -> dict[tuple[int, str], int]:
    found: dict[tuple[int, str], int] = {}
    for spec in document["partition-specs"]:
        found |= specs.list_field_ids(spec)
    return found


def _group(document: Json) -> dict[str, dict[int, list[Json]]]:
    found: dict[str, dict[int, list[Json]]] = {key: {} for key in _FILES}
    for key in _FILES:
        for each in document.get(key, ()):
            found[key].setdefault(each["snapshot-id"], []).append(each)
    return found


def _drop_references(draft: Draft) -> None:
    """Drop references to snapshots that were removed."""
    if not draft.removed_snapshots:
        return
    kept = {k: ref for k, ref in draft.refs.items() if ref["snapshot-id"] in draft.snapshots}
    draft.refs = kept
    if draft.current_snapshot not in draft.snapshots:
        draft.current_snapshot = None
