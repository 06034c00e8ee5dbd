"""Check a metadata file that someone else wrote, before it becomes a view of this catalog."""

import re
from collections.abc import Iterable

from penstock.errors import InvalidRequest, InvalidView
from penstock.iceberg import checks
from penstock.iceberg.checks import show
from penstock.iceberg.metadata import FORMAT_VERSION, Json
from penstock.iceberg.schemas import check_schema
from penstock.iceberg.versions import check_version

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_DETAIL = "name a metadata file of an Iceberg view"


def check_metadata(metadata: object) -> Json:
    """Check that all parts of the metadata fit each other; returns it unchanged."""
    try:
        return _check(metadata)
    except InvalidView:
        raise
    except InvalidRequest as error:
        # The request is fine; the file is not.
        raise InvalidView(f"Invalid view metadata: {error.message}", detail=_DETAIL) from None


def _check(value: object) -> Json:
    metadata = checks.check_object(value, "the file")
    checks.check_json(metadata)
    _check_head(metadata)
    schemas = [
        check_schema(each, f"schemas[{n}]")
        for n, each in enumerate(checks.get_list(metadata, "schemas", ""))
    ]
    versions = [
        _check_dated(each, f"versions[{n}]")
        for n, each in enumerate(checks.get_list(metadata, "versions", ""))
    ]
    schema_ids = _unique("schemas", (each.get("schema-id", 0) for each in schemas))
    version_ids = _unique("versions", (each["version-id"] for each in versions))
    for position, each in enumerate(versions):
        if each["schema-id"] not in schema_ids:
            raise _invalid(f"versions[{position}] has the unknown schema {each['schema-id']}")
    current = checks.get_integer(metadata, "current-version-id", "")
    if current not in version_ids:
        raise _invalid(f"current-version-id is {current}, which is in none of the versions")
    _check_log(metadata, current)
    kept = {key: v for key, v in metadata.items() if key != "properties" or v is not None}
    return {**kept, "schemas": schemas, "versions": versions}


def _check_head(metadata: Json) -> None:
    format_version = checks.get_integer(metadata, "format-version", "")
    if format_version != FORMAT_VERSION:
        raise InvalidView(f"Unsupported format version: {format_version}", detail=_DETAIL)
    uuid = checks.get_text(metadata, "view-uuid", "")
    if not _UUID.fullmatch(uuid):
        raise _invalid(f"view-uuid is {show(uuid)}, which is no UUID")
    checks.check_location(metadata.get("location"), "location")
    if metadata.get("properties") is not None:
        checks.get_string_map(metadata, "properties", "")


def _check_dated(value: object, path: str) -> Json:
    version = check_version(value, path)
    checks.get_integer(version, "timestamp-ms", path, checks.INT64)
    return version


def _check_log(metadata: Json, current: int) -> None:
    """Check that the log ends with the current version; others in it may be dropped."""
    last = None
    for position, each in enumerate(checks.get_objects(metadata, "version-log", "")):
        path = f"version-log[{position}]"
        checks.get_integer(each, "timestamp-ms", path, checks.INT64)
        last = checks.get_integer(each, "version-id", path)
    if last != current:
        raise _invalid(f"version-log ends with {show(last)}, while current-version-id is {current}")


def _unique(what: str, ids: Iterable[int]) -> set[int]:
    seen: set[int] = set()
    for each in ids:
        if each in seen:
            raise _invalid(f"{what} has the id {each} twice")
        seen.add(each)
    return seen


def _invalid(reason: str) -> InvalidView:
    return InvalidView(f"Invalid view metadata: {reason}", detail=_DETAIL)
