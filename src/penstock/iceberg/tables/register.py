"""Read a metadata file that someone else wrote, before it becomes a table of this catalog."""

from collections.abc import Callable
from typing import Any

from penstock.errors import InvalidRequest, InvalidTable
from penstock.iceberg import checks
from penstock.iceberg.checks import INT64, clip, join, show
from penstock.iceberg.files import MAX_BYTES, decode_metadata
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables import first_version
from penstock.iceberg.tables.document import (
    FORMAT_VERSIONS,
    MAIN,
    ROW_LINEAGE,
    check_uuid,
    current_snapshot_id,
    without_nulls,
)
from penstock.iceberg.tables.parts import orders, specs
from penstock.iceberg.tables.parts.orders import check_order
from penstock.iceberg.tables.parts.schemas import Columns, check_schema
from penstock.iceberg.tables.parts.snapshot_log import check_times
from penstock.iceberg.tables.parts.snapshots import (
    check_ref,
    check_snapshot,
    check_snapshot_id,
    sequence_number,
)
from penstock.iceberg.tables.parts.specs import check_spec
from penstock.iceberg.tables.parts.statistics import (
    check_key,
    check_partition_statistics,
    check_statistics,
)
from penstock.iceberg.tables.wording import check_location, of_tables

_DETAIL = "name a metadata file of an Iceberg table"
# What may be null, or left out, when it is empty.
_OPTIONAL = (
    *("properties", "current-snapshot-id", "refs", "snapshots", "snapshot-log", "metadata-log"),
    *("statistics", "partition-statistics", "encryption-keys"),
)


def read(raw: bytes, path: str, *, uuid: str, max_bytes: int = MAX_BYTES) -> Json:
    """The document in a file, compressed or not; a table of version 1 may need the UUID given."""
    with of_tables(_DETAIL):
        return check_document(decode_metadata(raw, path, max_bytes), uuid=uuid)


def check_document(value: object, *, uuid: str) -> Json:
    """Check that all parts of a document fit each other; unknown fields are kept."""
    try:
        return _check(value, uuid)
    except InvalidTable as error:
        raise InvalidTable(_tell(error.message), detail=_DETAIL) from None
    except InvalidRequest as error:
        # The request is fine; the file is not.
        raise InvalidTable(_tell(error.message), detail=_DETAIL) from None


def _check(value: object, uuid: str) -> Json:
    given = checks.check_object(value, "the file")
    checks.check_json(given)
    version = checks.get_integer(given, "format-version", "")
    if version not in FORMAT_VERSIONS:
        raise InvalidTable(f"Cannot read unsupported version {version}")
    document = without_nulls(given, _OPTIONAL)
    if version == 1:
        document = first_version.complete(document, uuid)
    _check_head(document, version)
    document = {**document, **_check_parts(document)}
    _check_columns(document)
    _check_snapshots(document, version)
    return document


def _check_head(document: Json, version: int) -> None:
    check_uuid(document, "table-uuid", "")
    check_location(document.get("location"), "location")
    checks.get_integer(document, "last-updated-ms", "", INT64)
    checks.get_integer(document, "last-column-id", "")
    checks.get_integer(document, "last-partition-id", "")
    if version > 1:
        checks.get_integer(document, "last-sequence-number", "", INT64)
    if version >= ROW_LINEAGE and checks.get_integer(document, "next-row-id", "", INT64) < 0:
        raise InvalidTable(f"next-row-id is {document['next-row-id']}")
    if "properties" in document:
        checks.get_string_map(document, "properties", "")


_PARTS: dict[str, tuple[Callable[[Any, str], Json], str]] = {
    "schemas": (check_schema, "schema-id"),
    "partition-specs": (check_spec, "spec-id"),
    "sort-orders": (check_order, "order-id"),
    "snapshots": (check_snapshot, "snapshot-id"),
    "statistics": (check_statistics, ""),
    "partition-statistics": (check_partition_statistics, ""),
    "encryption-keys": (check_key, "key-id"),
}


def _check_parts(document: Json) -> Json:
    """The lists of the document, each part checked by itself, and each id there once."""
    found: Json = {}
    for key, (check, id) in _PARTS.items():
        if key in _OPTIONAL and key not in document:
            continue
        parts = checks.get_list(document, key, "")
        found[key] = [check(each, f"{key}[{n}]") for n, each in enumerate(parts)]
        if id:
            _check_unique(found[key], key, id)
    unsorted = all(each["order-id"] != orders.UNSORTED_ID for each in found["sort-orders"])
    if unsorted and document.get("default-sort-order-id") == orders.UNSORTED_ID:
        # Some writers leave out the order that is none.
        found["sort-orders"].append(orders.UNSORTED)
    return found


def _check_unique(parts: list[Json], key: str, id: str) -> None:
    seen: set[Any] = set()
    for position, each in enumerate(parts):
        found = checks.get(each, id, f"{key}[{position}]")
        if found in seen:
            raise InvalidTable(f"{key} has the id {show(found)} twice")
        seen.add(found)


def _check_columns(document: Json) -> None:
    """Check that the current schema, the default spec and the default order are there and fit."""
    schema = _find(document, "schemas", "schema-id", "current-schema-id")
    spec = _find(document, "partition-specs", "spec-id", "default-spec-id")
    for position, each in enumerate(document["partition-specs"]):
        for n, field in enumerate(each["fields"]):
            checks.get_integer(field, "field-id", f"partition-specs[{position}].fields[{n}]")
    columns = Columns(schema)
    specs.check_fit(spec, columns, names=False)
    orders.check_fit(_find(document, "sort-orders", "order-id", "default-sort-order-id"), columns)


def _find(document: Json, key: str, id: str, chooser: str) -> Json:
    wanted = checks.get_integer(document, chooser, "")
    for each in document[key]:
        if each[id] == wanted:
            found: Json = each
            return found
    raise InvalidTable(f"Cannot find {id.removesuffix('-id')} with {chooser}={wanted} from {key}")


def _check_snapshots(document: Json, version: int) -> None:
    snapshots = {each["snapshot-id"]: each for each in document.get("snapshots", ())}
    last = document["last-sequence-number"] if version > 1 else 0
    for each in snapshots.values():
        if sequence_number(each) > last:
            raise InvalidTable(
                f"Invalid snapshot with sequence number {sequence_number(each)} greater than last "
                f"sequence number {last}"
            )
    if document.get("current-snapshot-id") is not None:
        checks.get_integer(document, "current-snapshot-id", "", INT64)
    current = current_snapshot_id(document)
    if current is not None and current not in snapshots:
        raise InvalidTable("Cannot find current version")
    if "refs" not in document and current is not None:
        document["refs"] = {MAIN: {"snapshot-id": current, "type": "branch"}}
    _check_refs(document, snapshots, current)
    _check_logs(document)


def _check_refs(document: Json, snapshots: dict[int, Json], current: int | None) -> None:
    if "refs" not in document:
        return
    refs = checks.get_object(document, "refs", "")
    checked = {name: check_ref(each, name, join("refs", name)) for name, each in refs.items()}
    for name, ref in checked.items():
        if ref["snapshot-id"] not in snapshots:
            raise InvalidTable(
                f"Snapshot for reference {clip(name)} does not exist in the existing snapshots list"
            )
    main = checked.get(MAIN)
    if current is not None and main is None:
        main = checked[MAIN] = {"snapshot-id": current, "type": "branch"}
    if (main and main["snapshot-id"]) != current:
        raise InvalidTable(
            "Current snapshot ID does not match main branch "
            f"({current} != {main and main['snapshot-id']})"
        )
    document["refs"] = checked


def _check_logs(document: Json) -> None:
    for key, id in (("snapshot-log", "snapshot-id"), ("metadata-log", "metadata-file")):
        if key not in document:
            continue
        for position, each in enumerate(checks.get_objects(document, key, "")):
            path = f"{key}[{position}]"
            checks.get_integer(each, "timestamp-ms", path, INT64)
            if id == "snapshot-id":
                check_snapshot_id(each, id, path)
            else:
                checks.get_text(each, id, path)
        check_times(document[key], document["last-updated-ms"])


def _tell(reason: str) -> str:
    return f"Invalid table metadata: {reason}"
