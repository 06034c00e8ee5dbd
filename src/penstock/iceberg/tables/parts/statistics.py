"""Statistics files and encryption keys, as they are sent or stored: checked, and kept as sent."""

from penstock.errors import InvalidTable
from penstock.iceberg import checks
from penstock.iceberg.checks import INT64, clip, join
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import without_nulls
from penstock.iceberg.tables.parts.snapshots import check_snapshot_id


def check_statistics(value: object, path: str) -> Json:
    """Check a statistics file of a snapshot."""
    given = without_nulls(check_partition_statistics(value, path), ("key-metadata",))
    checks.get_integer(given, "file-footer-size-in-bytes", path, INT64)
    inner = join(path, "blob-metadata")
    blobs = [
        _check_blob(each, f"{inner}[{n}]")
        for n, each in enumerate(checks.get_objects(given, "blob-metadata", path))
    ]
    if "key-metadata" in given:
        checks.get_text(given, "key-metadata", path)
    return {**given, "blob-metadata": blobs}


def check_partition_statistics(value: object, path: str) -> Json:
    """Check a statistics file of a snapshot's partitions."""
    given = checks.check_object(value, path)
    check_snapshot_id(given, "snapshot-id", path)
    checks.get_text(given, "statistics-path", path)
    checks.get_integer(given, "file-size-in-bytes", path, INT64)
    return given


def check_key(value: object, path: str) -> Json:
    """Check an encryption key, whose contents only its readers know."""
    key = without_nulls(checks.check_object(value, path), ("encrypted-by-id", "properties"))
    checks.get_text(key, "key-id", path)
    if not checks.get_text(key, "encrypted-key-metadata", path):
        raise InvalidTable(
            f"{clip(join(path, 'encrypted-key-metadata'))} is empty", detail="send the key"
        )
    if "encrypted-by-id" in key:
        checks.get_text(key, "encrypted-by-id", path)
    if "properties" in key:
        checks.get_string_map(key, "properties", path)
    return key


def _check_blob(value: Json, path: str) -> Json:
    blob = without_nulls(value, ("properties",))
    checks.get_text(blob, "type", path)
    checks.get_integer(blob, "snapshot-id", path, INT64)
    checks.get_integer(blob, "sequence-number", path, INT64)
    inner = join(path, "fields")
    for position, each in enumerate(checks.get_list(blob, "fields", path)):
        checks.check_integer(each, f"{inner}[{position}]")
    if "properties" in blob:
        checks.get_string_map(blob, "properties", path)
    return blob
