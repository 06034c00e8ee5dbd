"""Snapshots and the references to them, as they are sent or stored: checked, and kept as sent."""

from penstock.errors import InvalidTable
from penstock.iceberg import checks
from penstock.iceberg.checks import INT64, clip, join, show
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import MAIN, without_nulls

# What every reader knows; pyiceberg can't load a table with another one.
OPERATIONS = ("append", "replace", "overwrite", "delete")
_COUNTS = ("sequence-number", "first-row-id", "added-rows")
_OPTIONAL = ("parent-snapshot-id", "schema-id", "summary", "manifests", "key-id", *_COUNTS)
_AGES = ("max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep")
_OF_BRANCHES = ("max-snapshot-age-ms", "min-snapshots-to-keep")


def check_snapshot(value: object, path: str) -> Json:
    """Check a snapshot; version 1 may list manifests in it, and leave out the summary."""
    snapshot = without_nulls(checks.check_object(value, path), _OPTIONAL)
    check_snapshot_id(snapshot, "snapshot-id", path)
    checks.get_integer(snapshot, "timestamp-ms", path, INT64)
    if "parent-snapshot-id" in snapshot:
        checks.get_integer(snapshot, "parent-snapshot-id", path, INT64)
    if "schema-id" in snapshot:
        checks.get_integer(snapshot, "schema-id", path)
    for key in _COUNTS:
        if key in snapshot:
            _check_count(snapshot, key, path)
    if "first-row-id" in snapshot and "added-rows" not in snapshot:
        raise InvalidTable(
            f"Invalid added-rows (required when first-row-id is set): {path} has none",
            detail="send added-rows with first-row-id",
        )
    if "summary" in snapshot:
        _check_summary(snapshot, path)
    if "manifests" in snapshot and snapshot.get("manifest-list") is None:
        checks.get_texts(snapshot, "manifests", path)
        return without_nulls(snapshot, ("manifest-list",))
    checks.get_text(snapshot, "manifest-list", path)
    return snapshot


def check_snapshot_id(parent: Json, key: str, path: str) -> int:
    """Read the id of a snapshot; negative ones stand for none."""
    found = checks.get_integer(parent, key, path, INT64)
    if found < 0:
        raise InvalidTable(
            f"{clip(join(path, key))} is {found}", detail="ids of snapshots are not negative"
        )
    return found


def check_ref(value: object, name: str, path: str) -> Json:
    """Check a branch or a tag."""
    ref = without_nulls(checks.check_object(value, path), _AGES)
    check_snapshot_id(ref, "snapshot-id", path)
    kind = checks.get_text(ref, "type", path)
    if kind not in ("branch", "tag"):
        raise InvalidTable(
            f"{clip(join(path, 'type'))} is {show(kind)}", detail="send branch or tag"
        )
    if name == MAIN and kind != "branch":
        raise InvalidTable(f"Cannot set {MAIN} to a tag", detail="it is always a branch")
    for key in _AGES:
        if key not in ref:
            continue
        limits = checks.INT32 if key == "min-snapshots-to-keep" else INT64
        if checks.get_integer(ref, key, path, limits) <= 0:
            raise InvalidTable(
                f"{clip(join(path, key))} is {ref[key]}", detail="send a number above 0"
            )
        if kind == "tag" and key in _OF_BRANCHES:
            raise InvalidTable(
                f"Tags do not support setting {key}", detail="leave it out, or set a branch"
            )
    return ref


def check_ref_name(parent: Json, key: str, path: str) -> str:
    name = checks.get_text(parent, key, path)
    if not name:
        raise InvalidTable(f"{join(path, key)} is empty", detail="name a branch or a tag")
    return name


def sequence_number(snapshot: Json) -> int:
    """Snapshots of version 1 have none, which means 0."""
    found: int = snapshot.get("sequence-number", 0)
    return found


def _check_count(snapshot: Json, key: str, path: str) -> None:
    if checks.get_integer(snapshot, key, path, INT64) < 0:
        raise InvalidTable(
            f"Invalid {key}: {snapshot[key]} in {clip(path)}", detail="it is never negative"
        )


def _check_summary(snapshot: Json, path: str) -> None:
    summary = checks.get_string_map(snapshot, "summary", path)
    operation = summary.get("operation")
    if operation not in OPERATIONS:
        raise InvalidTable(
            f"{join(path, 'summary.operation')} is {show(operation)}",
            detail=f"send one of {', '.join(OPERATIONS)}",
        )
