"""Versions of views: validate them, and compare their content.

Checked by hand, because pyiceberg's ViewVersion accepts true and "1" as numbers, fills in missing
fields, and accepts `default_namespace` for `default-namespace`.
"""

from collections.abc import Hashable

import msgspec

from penstock.errors import InvalidView
from penstock.iceberg import checks
from penstock.iceberg.checks import clip, join, show
from penstock.iceberg.metadata import Json, representations

_OWN = ("version-id", "timestamp-ms")


def check_version(value: object, path: str) -> Json:
    """Check a version; returns it as sent. Only its timestamp may be missing."""
    version = checks.check_object(value, path)
    checks.get_integer(version, "version-id", path)
    checks.get_integer(version, "schema-id", path)
    if version.get("timestamp-ms") is not None:
        checks.get_integer(version, "timestamp-ms", path, checks.INT64)
    checks.get_string_map(version, "summary", path)
    checks.get_texts(version, "default-namespace", path)
    if version.get("default-catalog") is not None:
        checks.get_text(version, "default-catalog", path)
    _check_representations(version, path)
    if "default-catalog" in version and version["default-catalog"] is None:
        return {key: each for key, each in version.items() if key != "default-catalog"}
    return version


def content(version: Json) -> bytes:
    """The version's content: equal for versions that differ only in ids and times."""
    said = {k: v for k, v in version.items() if k not in _OWN and v is not None}
    return msgspec.json.encode(said, order="deterministic")


def fingerprint(version: Json) -> Hashable:
    """Equal for versions with the same content, and rarely for others."""
    return version["schema-id"], version["representations"][0]["sql"]


def dialects(version: Json) -> set[str]:
    return {dialect.strip().lower() for dialect, _ in representations(version)}


def _check_representations(version: Json, path: str) -> None:
    inner = join(path, "representations")
    given = checks.get_objects(version, "representations", path)
    if not given:
        raise InvalidView(
            f"Invalid view version: {inner} is empty", detail="send at least one query"
        )
    seen: set[str] = set()
    for position, each in enumerate(given):
        dialect = _check_representation(each, f"{inner}[{position}]").strip().lower()
        if dialect in seen:
            raise InvalidView(
                f"Invalid view version: Cannot add multiple queries for dialect {clip(dialect)}",
                detail="send one query for each dialect; upper and lower case are one dialect",
            )
        seen.add(dialect)


def _check_representation(given: Json, path: str) -> str:
    if (kind := checks.get_text(given, "type", path)) != "sql":
        raise InvalidView(
            f"Invalid view version: {join(path, 'type')} is {show(kind)}, which is not known",
            detail="the only type of representation is sql",
        )
    for key in ("dialect", "sql"):
        if not checks.get_text(given, key, path).strip():
            raise InvalidView(
                f"Invalid view version: {join(path, key)} is empty",
                detail="send the query and the name of its dialect",
            )
    return checks.get_text(given, "dialect", path)
