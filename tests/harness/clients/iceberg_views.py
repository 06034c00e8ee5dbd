"""Views as the Iceberg protocol writes them: what is sent, what is loaded, and their files."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

Json = dict[str, Any]


@dataclass(frozen=True)
class LoadedView:
    """A view's metadata, and where its file is."""

    location: str
    metadata: Json

    @property
    def current(self) -> Json:
        wanted = self.metadata["current-version-id"]
        return next(v for v in self.metadata["versions"] if v["version-id"] == wanted)

    @property
    def schema_ids(self) -> list[int]:
        return [each["schema-id"] for each in self.metadata["schemas"]]

    @property
    def version_ids(self) -> list[int]:
        return [each["version-id"] for each in self.metadata["versions"]]

    @property
    def logged_ids(self) -> list[int]:
        return [each["version-id"] for each in self.metadata["version-log"]]

    @property
    def properties(self) -> dict[str, str]:
        found: dict[str, str] = self.metadata.get("properties", {})
        return found


# The two schemas of the compatibility kit, as Java writes them.
SCHEMA: Json = {
    "type": "struct",
    "schema-id": 5,
    "fields": [
        {"id": 3, "name": "id", "required": True, "type": "int", "doc": "unique ID"},
        {"id": 4, "name": "data", "required": True, "type": "string"},
    ],
}
OTHER_SCHEMA: Json = {
    "type": "struct",
    "schema-id": 7,
    "fields": [{"id": 1, "name": "some_id", "required": True, "type": "int"}],
}
SUMMARY = {"engine-name": "spark", "engine-version": "4.0.0", "iceberg-version": "1.11.0"}


def sql(dialect: str = "spark", text: str = "select * from ns.tbl", **more: Any) -> Json:
    return {"type": "sql", "sql": text, "dialect": dialect, **more}


SPARK, TRINO = sql("spark"), sql("trino")


def version(*representations: Json, **more: Any) -> Json:
    fields: Json = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": SUMMARY,
        "default-namespace": ["ns"],
        "representations": list(representations) or [SPARK],
    }
    return fields | {name.replace("_", "-"): value for name, value in more.items()}


def create_body(name: str, *, queries: list[Json] | None = None, **more: Any) -> Json:
    """What Java sends to make a view; it leaves empty properties out."""
    fields: Json = {"name": name, "schema": SCHEMA, "view-version": version(*(queries or []))}
    return fields | {name.replace("_", "-"): value for name, value in more.items()}


def add_schema(schema: Json = OTHER_SCHEMA) -> Json:
    return {"action": "add-schema", "schema": schema, "last-column-id": 4}


def add_version(*representations: Json, **more: Any) -> Json:
    return {"action": "add-view-version", "view-version": version(*representations, **more)}


def set_current(version_id: int = -1) -> Json:
    return {"action": "set-current-view-version", "view-version-id": version_id}


def new_version(*representations: Json, **more: Any) -> tuple[Json, Json]:
    """What Java sends to give a view another query, with a schema that it has."""
    return add_version(*representations, **{"version_id": 2, **more}), set_current()


def java_replace(
    known: LoadedView,
    *queries: Json,
    schema: Json = SCHEMA,
    properties: Mapping[str, str] | None = None,
    location: str = "",
    **more: Any,
) -> list[Json]:
    """The updates that Java derives, on its side, from the metadata that it knows."""
    same = [s for s in known.metadata["schemas"] if s["fields"] == schema["fields"]]
    schema_id = same[0]["schema-id"] if same else -1
    number = max(known.version_ids) + 1
    return [
        *([{"action": "set-properties", "updates": dict(properties)}] if properties else []),
        *([] if same else [add_schema(schema)]),
        add_version(*queries, version_id=number, schema_id=schema_id, **more),
        set_current(),
        *([set_location(location)] if location else []),
    ]


def set_properties(**updates: str) -> Json:
    return {"action": "set-properties", "updates": dotted(updates)}


def remove_properties(*names: str) -> Json:
    return {"action": "remove-properties", "removals": list(names)}


def set_location(location: Any) -> Json:
    return {"action": "set-location", "location": location}


def dotted(properties: Mapping[str, str]) -> dict[str, str]:
    """`write__metadata__path` as `write.metadata.path`."""
    return {name.replace("__", "."): value for name, value in properties.items()}


def local(location: str) -> Path:
    """The file of a location, in any spelling that names one."""
    return Path(unquote(urlsplit(location).path))


def read_metadata(location: str) -> Json:
    """What a metadata file holds; its name says whether it is compressed."""
    raw = local(location).read_bytes()
    found: Json = json.loads(gzip.decompress(raw) if ".gz." in location else raw)
    return found


def write_metadata(path: Path, metadata: Any) -> str:
    """Write a metadata file as another catalog would; returns its location."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = json.dumps(metadata).encode()
    path.write_bytes(gzip.compress(raw) if ".gz." in path.name else raw)
    return path.as_uri()


def metadata_files(folder: Path) -> list[str]:
    """The names of all metadata files below a folder."""
    return sorted(found.name for found in folder.rglob("*.metadata.json"))
