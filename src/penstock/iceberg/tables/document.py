"""Table metadata as plain JSON, and accessors for it.

A document is never changed in place, and unknown fields are kept at every depth. Stored documents
were checked when they came in, and have the lists of format version 2 also in version 1; so nothing
here checks them again.
"""

import re
from collections.abc import Collection

from penstock.errors import InvalidTable
from penstock.iceberg import checks
from penstock.iceberg.checks import join, show
from penstock.iceberg.metadata import Json

FORMAT_VERSIONS = range(1, 4)
DEFAULT_FORMAT_VERSION = 2
# The first one with row lineage, default values, and types that need them.
ROW_LINEAGE = 3

MAIN = "main"
# In place of an id, this means the last one that the same request added.
LAST_ADDED = -1
# What files of versions 1 and 2 say when there is no current snapshot.
NO_SNAPSHOT = -1
FIRST_PARTITION_FIELD = 1000
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def properties(document: Json) -> dict[str, str]:
    return document.get("properties") or {}


def current_snapshot_id(document: Json) -> int | None:
    """The id of the current snapshot; files say in three ways that there is none."""
    found: int | None = document.get("current-snapshot-id")
    return None if found == NO_SNAPSHOT else found


def without_nulls(value: Json, optional: Collection[str]) -> Json:
    """The object without optional fields that are null, which Java's readers would stumble over."""
    if not any(key in value and value[key] is None for key in optional):
        return value
    return {k: v for k, v in value.items() if v is not None or k not in optional}


def check_uuid(parent: Json, key: str, path: str) -> str:
    """Read a UUID in its usual spelling, which is all that some clients read."""
    found = checks.get_text(parent, key, path)
    if not _UUID.fullmatch(found):
        raise InvalidTable(
            f"{join(path, key)} is {show(found)}, which is no UUID", detail="send one"
        )
    return found
