"""Builders of view metadata and of requests, which hide what does not matter to a test."""

from typing import Any

from penstock.iceberg.create import create_metadata
from penstock.iceberg.metadata import Json
from penstock.iceberg.replace import replace_metadata
from penstock.iceberg.requests import read_create, read_replace

UUID = "5f3b1e5c-8a0b-4b7e-9f6e-0d6c2a4e1f00"
LOCATION = "s3://lake/ns/view"
NOW = 1_800_000_000_000


def column(id: int, name: str, type: Any = "string", **more: Any) -> Json:
    return {"id": id, "name": name, "type": type, "required": False, **more}


def schema(*fields: Json, **more: Any) -> Json:
    columns = list(fields) or [column(1, "a", "long"), column(2, "b")]
    return {"type": "struct", "schema-id": 0, "fields": columns, **more}


def sql(dialect: str = "spark", text: str = "select a, b from t", **more: Any) -> Json:
    return {"type": "sql", "dialect": dialect, "sql": text, **more}


def version(*representations: Json, **more: Any) -> Json:
    fields: Json = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {"engine-name": "spark"},
        "representations": list(representations) or [sql()],
        "default-namespace": ["ns"],
    }
    return fields | {name.replace("_", "-"): value for name, value in more.items()}


def create_body(**more: Any) -> Json:
    fields: Json = {"name": "view", "schema": schema(), "view-version": version(), "properties": {}}
    return fields | {name.replace("_", "-"): value for name, value in more.items()}


def created(location: str = LOCATION, **more: Any) -> Json:
    request = read_create(create_body(**more))
    return create_metadata(request, uuid=UUID, location=location, now_millis=NOW)


def replaced(metadata: Json, *updates: Json, **more: Any) -> Json:
    request = read_replace({"updates": list(updates), **more})
    return replace_metadata(metadata, request, NOW)


def add_version(*representations: Json, **more: Any) -> Json:
    return {"action": "add-view-version", "view-version": version(*representations, **more)}


def set_current(id: int = -1) -> Json:
    return {"action": "set-current-view-version", "view-version-id": id}


def add_schema(*fields: Json, **more: Any) -> Json:
    return {"action": "add-schema", "schema": schema(*fields, **more)}


def set_properties(updates: Json | None = None, **more: str) -> Json:
    return {"action": "set-properties", "updates": {**(updates or {}), **more}}


def remove_properties(*names: str) -> Json:
    return {"action": "remove-properties", "removals": list(names)}


def set_location(location: Any) -> Json:
    return {"action": "set-location", "location": location}


def with_versions(count: int, **properties: str) -> Json:
    """A view whose versions 1 to `count` were each current once, in turn."""
    names = {name.replace("_", "-"): value for name, value in properties.items()}
    metadata = created(properties={"version.history.num-entries": "10000", **names})
    for number in range(2, count + 1):
        metadata = replaced(metadata, add_version(sql(text=f"select {number}")), set_current())
    return metadata


def version_ids(metadata: Json) -> list[int]:
    return [each["version-id"] for each in metadata["versions"]]


def logged_ids(metadata: Json) -> list[int]:
    return [each["version-id"] for each in metadata["version-log"]]
