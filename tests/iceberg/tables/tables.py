"""Builders of table metadata and of requests, which hide what does not matter to a test."""

from typing import Any

from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.create import new_document
from penstock.iceberg.tables.requests import read_commit, read_create
from penstock.iceberg.tables.updates import apply
from tests.iceberg.views import schema

UUID = "5f3b1e5c-8a0b-4b7e-9f6e-0d6c2a4e1f00"
LOCATION = "s3://lake/ns/table"
NOW = 1_800_000_000_000


def partition_field(source: int, transform: str = "identity", name: str = "p", **more: Any) -> Json:
    return {"source-id": source, "transform": transform, "name": name, **hyphens(more)}


def spec(*fields: Json, **more: Any) -> Json:
    return {"spec-id": 0, "fields": list(fields), **hyphens(more)}


def sort_field(source: int, transform: str = "identity", **more: Any) -> Json:
    fields = {"direction": "asc", "null-order": "nulls-first", **hyphens(more)}
    return {"source-id": source, "transform": transform, **fields}


def order(*fields: Json, **more: Any) -> Json:
    return {"order-id": 1 if fields else 0, "fields": list(fields), **hyphens(more)}


def create_body(**more: Any) -> Json:
    return {"name": "table", "schema": schema(), **hyphens(more)}


def created(location: str = LOCATION, **more: Any) -> Json:
    request = read_create(create_body(**more))
    return new_document(request, location=location, uuid=UUID, now_ms=NOW)


def of_version(version: int, **more: Any) -> Json:
    properties = {**more.pop("properties", {}), "format-version": str(version)}
    return created(properties=properties, **more)


def commit_body(*updates: Json, requirements: tuple[Json, ...] = (), **more: Any) -> Json:
    return {"requirements": list(requirements), "updates": list(updates), **hyphens(more)}


def committed(document: Json | None, *updates: Json, now_ms: int = NOW, **more: Any) -> Json:
    return apply(document, read_commit(commit_body(*updates)).updates, now_ms, **more)


def update(action: str, **more: Any) -> Json:
    return {"action": action, **hyphens(more)}


def add_schema(*fields: Json, **more: Any) -> Json:
    return update("add-schema", schema=schema(*fields, **hyphens(more)))


def add_spec(*fields: Json, **more: Any) -> Json:
    return update("add-spec", spec=spec(*fields, **more))


def add_order(*fields: Json, **more: Any) -> Json:
    return update("add-sort-order", sort_order=order(*fields, **more))


def snapshot(id: int, parent: int | None = None, sequence: int | None = None, **more: Any) -> Json:
    fields: Json = {
        "snapshot-id": id,
        "timestamp-ms": NOW + id,
        "manifest-list": f"{LOCATION}/metadata/snap-{id}.avro",
        "summary": {"operation": "append", "added-records": "1"},
        "schema-id": 0,
    }
    if sequence != 0:
        fields["sequence-number"] = id if sequence is None else sequence
    if parent is not None:
        fields["parent-snapshot-id"] = parent
    return {**fields, **hyphens(more)}


def add_snapshot(id: int, parent: int | None = None, **more: Any) -> Json:
    return update("add-snapshot", snapshot=snapshot(id, parent, **more))


def set_ref(id: int, name: str = "main", type: str = "branch", **more: Any) -> Json:
    return update("set-snapshot-ref", ref_name=name, type=type, snapshot_id=id, **more)


def append(id: int, parent: int | None = None, **more: Any) -> list[Json]:
    """What a client sends that appends to main."""
    return [add_snapshot(id, parent, **more), set_ref(id)]


def with_snapshots(count: int, version: int = 2, **more: Any) -> Json:
    """A table whose snapshots 1 to `count` were each current, in turn."""
    document = of_version(version, **more)
    for id in range(1, count + 1):
        own: Json = {"sequence": 0} if version == 1 else {}
        if version == 3:
            own = {"first_row_id": id - 1, "added_rows": 1}
        parent = id - 1 if id > 1 else None
        document = committed(document, *append(id, parent, **own), now_ms=NOW + id)
    return document


def statistics(snapshot_id: int, **more: Any) -> Json:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": f"{LOCATION}/metadata/{snapshot_id}.puffin",
        "file-size-in-bytes": 10,
        "file-footer-size-in-bytes": 5,
        "blob-metadata": [
            {
                "type": "apache-datasketches-theta-v1",
                "snapshot-id": snapshot_id,
                "sequence-number": 1,
                "fields": [1],
            }
        ],
        **hyphens(more),
    }


def partition_statistics(snapshot_id: int, **more: Any) -> Json:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": f"{LOCATION}/metadata/{snapshot_id}.parquet",
        "file-size-in-bytes": 10,
        **hyphens(more),
    }


def encryption_key(id: str = "k", **more: Any) -> Json:
    return {"key-id": id, "encrypted-key-metadata": "a2V5", **hyphens(more)}


def snapshot_ids(document: Json) -> list[int]:
    return [each["snapshot-id"] for each in document["snapshots"]]


def logged_ids(document: Json) -> list[int]:
    return [each["snapshot-id"] for each in document["snapshot-log"]]


def hyphens(fields: Json) -> Json:
    return {name.replace("_", "-"): value for name, value in fields.items()}
