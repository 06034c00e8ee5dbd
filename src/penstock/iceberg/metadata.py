"""View metadata as plain JSON, and accessors for it.

Metadata is never changed in place, and unknown fields are kept: on the view, a version, a
representation, a schema, a column. Stored metadata was checked when it came in, so nothing here
checks it again.
"""

from typing import Any

Json = dict[str, Any]

FORMAT_VERSION = 1


def current_version(metadata: Json) -> Json:
    return get_version(metadata, metadata["current-version-id"])


def current_schema(metadata: Json) -> Json:
    wanted = current_version(metadata)["schema-id"]
    return next(schema for schema in metadata["schemas"] if schema.get("schema-id", 0) == wanted)


def current_representations(metadata: Json) -> list[tuple[str, str]]:
    """The (dialect, SQL) pairs of the current version, in order."""
    return representations(current_version(metadata))


def get_version(metadata: Json, version_id: int) -> Json:
    """Get a version that exists; searches from the end, where new ones are."""
    return next(v for v in reversed(metadata["versions"]) if v["version-id"] == version_id)


def representations(version: Json) -> list[tuple[str, str]]:
    return [(each["dialect"], each["sql"]) for each in version["representations"]]


def properties(metadata: Json) -> dict[str, str]:
    """The view's properties; the file omits an empty map."""
    return metadata.get("properties") or {}
