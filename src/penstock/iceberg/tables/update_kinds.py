"""The updates that a commit may have, as frozen data, and how each is read from JSON."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.errors import InvalidTable
from penstock.iceberg import checks
from penstock.iceberg.checks import INT64, join
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import check_uuid
from penstock.iceberg.tables.parts.orders import check_order
from penstock.iceberg.tables.parts.schemas import check_ids, check_schema
from penstock.iceberg.tables.parts.snapshots import check_ref, check_ref_name, check_snapshot
from penstock.iceberg.tables.parts.specs import check_spec
from penstock.iceberg.tables.parts.statistics import (
    check_key,
    check_partition_statistics,
    check_statistics,
)
from penstock.iceberg.tables.properties import check_names
from penstock.iceberg.tables.wording import check_location


@dataclass(frozen=True, slots=True)
class AssignUuid:
    uuid: str


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    schema: Json


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    schema_id: int


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    schema_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class AddSpec:
    spec: Json


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    spec_id: int


@dataclass(frozen=True, slots=True)
class RemoveSpecs:
    spec_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    order: Json


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    order_id: int


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    snapshot: Json


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    snapshot_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class SetRef:
    name: str
    ref: Json


@dataclass(frozen=True, slots=True)
class RemoveRef:
    name: str


@dataclass(frozen=True, slots=True)
class SetLocation:
    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    updates: dict[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetStatistics:
    # The list of the document that it goes to.
    key: str
    file: Json


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    key: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    key: Json


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey:
    key_id: str


Update = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | RemoveSchemas
    | AddSpec
    | SetDefaultSpec
    | RemoveSpecs
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | RemoveSnapshots
    | SetRef
    | RemoveRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | AddEncryptionKey
    | RemoveEncryptionKey
)

STATISTICS = "statistics"
PARTITION_STATISTICS = "partition-statistics"


def _read_add_schema(given: Json, path: str) -> AddSchema:
    if given.get("last-column-id") is not None:
        # Deprecated: the highest id is counted here, as it was for the client.
        checks.get_integer(given, "last-column-id", path)
    inner = join(path, "schema")
    schema = check_schema(checks.get(given, "schema", path), inner)
    check_ids(schema, inner)
    return AddSchema(schema)


def _read_set_ref(given: Json, path: str) -> SetRef:
    name = check_ref_name(given, "ref-name", path)
    return SetRef(
        name,
        check_ref({k: v for k, v in given.items() if k not in ("action", "ref-name")}, name, path),
    )


def _read_set_statistics(given: Json, path: str) -> SetStatistics:
    file = check_statistics(checks.get(given, STATISTICS, path), join(path, STATISTICS))
    if given.get("snapshot-id") not in (None, file["snapshot-id"]):
        raise InvalidTable(
            f"{path}.snapshot-id is not that of the statistics", detail="leave it out"
        )
    return SetStatistics(STATISTICS, file)


def _read_set_partition_statistics(given: Json, path: str) -> SetStatistics:
    file = checks.get(given, PARTITION_STATISTICS, path)
    inner = join(path, PARTITION_STATISTICS)
    return SetStatistics(PARTITION_STATISTICS, check_partition_statistics(file, inner))


def _read_set_properties(given: Json, path: str) -> SetProperties:
    updates = checks.get_string_map(given, "updates", path)
    check_names(updates, join(path, "updates"))
    return SetProperties(updates)


def _read_ids(given: Json, key: str, path: str, limits: range = checks.INT32) -> frozenset[int]:
    inner = join(path, key)
    listed = checks.get_list(given, key, path)
    return frozenset(
        checks.check_integer(each, f"{inner}[{n}]", limits) for n, each in enumerate(listed)
    )


def _read_remove_statistics(key: str) -> Callable[[Json, str], RemoveStatistics]:
    return lambda given, path: RemoveStatistics(
        key, checks.get_integer(given, "snapshot-id", path, INT64)
    )


UPDATES: dict[str, Callable[[Json, str], Update]] = {
    "assign-uuid": lambda given, path: AssignUuid(check_uuid(given, "uuid", path)),
    "upgrade-format-version": lambda given, path: UpgradeFormatVersion(
        checks.get_integer(given, "format-version", path)
    ),
    "add-schema": _read_add_schema,
    "set-current-schema": lambda given, path: SetCurrentSchema(
        checks.get_integer(given, "schema-id", path)
    ),
    "add-spec": lambda given, path: AddSpec(
        check_spec(checks.get(given, "spec", path), join(path, "spec"))
    ),
    "set-default-spec": lambda given, path: SetDefaultSpec(
        checks.get_integer(given, "spec-id", path)
    ),
    "add-sort-order": lambda given, path: AddSortOrder(
        check_order(checks.get(given, "sort-order", path), join(path, "sort-order"))
    ),
    "set-default-sort-order": lambda given, path: SetDefaultSortOrder(
        checks.get_integer(given, "sort-order-id", path)
    ),
    "add-snapshot": lambda given, path: AddSnapshot(
        check_snapshot(checks.get(given, "snapshot", path), join(path, "snapshot"))
    ),
    "set-snapshot-ref": _read_set_ref,
    "remove-snapshots": lambda given, path: RemoveSnapshots(
        _read_ids(given, "snapshot-ids", path, INT64)
    ),
    "remove-snapshot-ref": lambda given, path: RemoveRef(check_ref_name(given, "ref-name", path)),
    "set-location": lambda given, path: SetLocation(
        check_location(given.get("location"), join(path, "location"))
    ),
    "set-properties": _read_set_properties,
    "remove-properties": lambda given, path: RemoveProperties(
        tuple(checks.get_texts(given, "removals", path))
    ),
    "set-statistics": _read_set_statistics,
    "remove-statistics": _read_remove_statistics(STATISTICS),
    "set-partition-statistics": _read_set_partition_statistics,
    "remove-partition-statistics": _read_remove_statistics(PARTITION_STATISTICS),
    "remove-partition-specs": lambda given, path: RemoveSpecs(_read_ids(given, "spec-ids", path)),
    "remove-schemas": lambda given, path: RemoveSchemas(_read_ids(given, "schema-ids", path)),
    "add-encryption-key": lambda given, path: AddEncryptionKey(
        check_key(checks.get(given, "encryption-key", path), join(path, "encryption-key"))
    ),
    "remove-encryption-key": lambda given, path: RemoveEncryptionKey(
        checks.get_text(given, "key-id", path)
    ),
}
