"""Properties of tables: those that this catalog reads itself, and those that are no properties."""

import re
from collections.abc import Iterable

from penstock.errors import InvalidTable
from penstock.iceberg.checks import clip, show
from penstock.iceberg.files import COMPRESSION_CODEC, EXTENSIONS, METADATA_PATH
from penstock.iceberg.tables.document import DEFAULT_FORMAT_VERSION, FORMAT_VERSIONS
from penstock.iceberg.tables.wording import check_location

FORMAT_VERSION = "format-version"
PREVIOUS_VERSIONS = "write.metadata.previous-versions-max"
DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"
DEFAULT_PREVIOUS_VERSIONS = 100

# Java's engines show these as properties, though they are fields of the table.
RESERVED = (
    FORMAT_VERSION,
    "uuid",
    "snapshot-count",
    "current-snapshot-id",
    "current-snapshot-summary",
    "current-snapshot-timestamp-ms",
    "current-schema",
    "default-partition-spec",
    "default-sort-order",
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")


def read_format_version(properties: dict[str, str]) -> int:
    """The format version that the properties of a new table ask for."""
    if (text := properties.get(FORMAT_VERSION)) is None:
        return DEFAULT_FORMAT_VERSION
    if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) not in FORMAT_VERSIONS:
        newest = FORMAT_VERSIONS[-1]
        raise InvalidTable(
            f"Unsupported format version: v{clip(text)} (supported: v{newest})",
            detail=f"set {FORMAT_VERSION} to a number from 1 to {newest}, or leave it out",
        )
    return int(text)


def check_names(names: Iterable[str], path: str) -> None:
    """Refuse properties that are fields of the table."""
    if found := [name for name in names if name in RESERVED]:
        raise InvalidTable(
            "Table properties should not contain reserved properties, but got "
            f"{show(found[0])} in {path}",
            detail="change the field of that name by an update of its own",
        )


def check_values(properties: dict[str, str]) -> None:
    """Refuse values that would make the next metadata file impossible to write or to keep."""
    previous_versions_max(properties)
    codec = properties.get(COMPRESSION_CODEC, "none")
    if codec.lower() not in EXTENSIONS:
        raise InvalidTable(
            f"{COMPRESSION_CODEC} is {show(codec)}", detail="set it to gzip or none, or remove it"
        )
    if chosen := properties.get(METADATA_PATH):
        check_location(chosen, METADATA_PATH)


def previous_versions_max(properties: dict[str, str]) -> int:
    """How many earlier metadata files the log has; at least one."""
    if (text := properties.get(PREVIOUS_VERSIONS)) is None:
        return DEFAULT_PREVIOUS_VERSIONS
    if not _INTEGER.fullmatch(text):
        raise InvalidTable(
            f"{PREVIOUS_VERSIONS} is {show(text)}",
            detail="set it to a whole number from 1 on, or remove it",
        )
    return max(1, int(text))


def deletes_after_commit(properties: dict[str, str]) -> bool:
    return properties.get(DELETE_AFTER_COMMIT, "").lower() == "true"
