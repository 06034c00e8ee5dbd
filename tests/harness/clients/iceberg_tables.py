"""Requests for Iceberg tables, as clients send them, without any data files."""

import gzip
import json
import uuid
from pathlib import Path
from typing import Any

from tests.harness.clients.idempotency_keys import Request
from tests.harness.processes.servers import Server

ROOT = "/iceberg/v1"

Json = dict[str, Any]


def schema(*names: str) -> Json:
    fields = [
        {"id": number, "name": name, "type": "long", "required": False}
        for number, name in enumerate(names or ("a", "b"), 1)
    ]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def create(namespace: str, name: str = "t", *, stage: bool = False, **more: Any) -> Request:
    """A new table; `more` are further fields, with underscores for hyphens."""
    body = {
        "name": name,
        "schema": schema(),
        "stage-create": stage,
        **{key.replace("_", "-"): value for key, value in more.items()},
    }
    return Request("POST", f"{ROOT}/namespaces/{namespace}/tables", body)


def commit(
    namespace: str, name: str, *updates: Json, requires: list[Json] | None = None
) -> Request:
    body = {"requirements": requires or [], "updates": list(updates)}
    return Request("POST", path(namespace, name), body)


def set_property(namespace: str, name: str = "t", **values: str) -> Request:
    return commit(namespace, name, {"action": "set-properties", "updates": values})


def append(metadata: Json, *, branch: str = "main") -> tuple[list[Json], list[Json]]:
    """The requirements and updates of an append of no files, for a table as it was read."""
    ref = metadata.get("refs", {}).get(branch)
    parent = None if ref is None else ref["snapshot-id"]
    id = uuid.uuid4().int >> 66
    snapshot = {
        "snapshot-id": id,
        **({} if parent is None else {"parent-snapshot-id": parent}),
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": metadata["last-updated-ms"],
        "manifest-list": f"{metadata['location']}/metadata/snap-{id}.avro",
        "summary": {"operation": "append"},
        "schema-id": metadata["current-schema-id"],
    }
    requires = [
        {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": branch, "snapshot-id": parent},
    ]
    refer = {"action": "set-snapshot-ref", "ref-name": branch, "type": "branch", "snapshot-id": id}
    return requires, [{"action": "add-snapshot", "snapshot": snapshot}, refer]


def append_to(namespace: str, name: str, metadata: Json) -> Request:
    requires, updates = append(metadata)
    return commit(namespace, name, *updates, requires=requires)


def created(metadata: Json) -> tuple[list[Json], list[Json]]:
    """The commit that makes a staged table, as Java sends it."""
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": metadata["format-version"]},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-properties", "updates": metadata.get("properties", {})},
    ]
    return [{"type": "assert-create"}], updates


def finish(namespace: str, name: str, metadata: Json) -> Request:
    requires, updates = created(metadata)
    return commit(namespace, name, *updates, requires=requires)


def transaction(*changes: tuple[str, str, list[Json], list[Json]]) -> Request:
    """A commit to several tables: namespace, name, requirements, updates of each."""
    body = {
        "table-changes": [
            {
                "identifier": {"namespace": [namespace], "name": name},
                "requirements": requires,
                "updates": updates,
            }
            for namespace, name, requires, updates in changes
        ]
    }
    return Request("POST", f"{ROOT}/transactions/commit", body)


def drop(namespace: str, name: str = "t", *, purge: bool = False) -> Request:
    return Request(
        "DELETE", path(namespace, name), params={"purgeRequested": "true"} if purge else {}
    )


def rename(namespace: str, name: str, new: str, to: str = "") -> Request:
    body = {
        "source": {"namespace": [namespace], "name": name},
        "destination": {"namespace": [to or namespace], "name": new},
    }
    return Request("POST", f"{ROOT}/tables/rename", body)


def register(
    namespace: str, name: str, metadata_location: str, *, overwrite: bool = False
) -> Request:
    body = {"name": name, "metadata-location": metadata_location, "overwrite": overwrite}
    return Request("POST", f"{ROOT}/namespaces/{namespace}/register", body)


def unregister(namespace: str, name: str = "t") -> Request:
    return Request("POST", f"{path(namespace, name)}/unregister")


def path(namespace: str, name: str = "t") -> str:
    return f"{ROOT}/namespaces/{namespace}/tables/{name}"


def make(server: Server, namespace: str, name: str = "t", **more: Any) -> Json:
    """A new table, as the server answers."""
    found: Json = create(namespace, name, **more).send(server).raise_for_status().json()
    return found


def load(server: Server, namespace: str, name: str = "t", **params: str) -> Json:
    """The table as it is now, which must exist; its file has to say the same."""
    found: Json = server.get(path(namespace, name), **params).raise_for_status().json()
    if not params:
        assert read_file(found["metadata-location"]) == found["metadata"]
    return found


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def read_file(location: str) -> Json:
    """What a metadata file says."""
    raw = local(location).read_bytes()
    found: Json = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    return found


def files(metadata_location: str) -> list[str]:
    """The names of the metadata files beside this one."""
    return sorted(each.name for each in local(metadata_location).parent.glob("*.metadata.json"))
