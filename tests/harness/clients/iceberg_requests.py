"""Requests for Iceberg views, as clients send them."""

from pathlib import Path
from typing import Any

from tests.harness.clients.iceberg_views import read_metadata
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


def version(sql: str = "select a, b from t", schema_id: int = 0) -> Json:
    return {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": schema_id,
        "summary": {"engine-name": "test"},
        "representations": [{"type": "sql", "dialect": "spark", "sql": sql}],
        "default-namespace": ["ns"],
    }


def create(namespace: str, name: str = "v", sql: str = "select 1", **properties: str) -> Request:
    """A new view; underscores in the names of properties stand for dots."""
    body = {
        "name": name,
        "schema": schema(),
        "view-version": version(sql),
        "properties": {key.replace("_", "."): value for key, value in properties.items()},
    }
    return Request("POST", f"{ROOT}/namespaces/{namespace}/views", body)


def replace(namespace: str, name: str, sql: str, **more: Any) -> Request:
    """A new current version of a view."""
    updates = [
        {"action": "add-view-version", "view-version": version(sql)},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    return Request("POST", path(namespace, name), {"updates": updates, **more})


def drop(namespace: str, name: str = "v") -> Request:
    return Request("DELETE", path(namespace, name))


def rename(namespace: str, name: str, new: str) -> Request:
    source, destination = ({"namespace": [namespace], "name": each} for each in (name, new))
    body = {"source": source, "destination": destination}
    return Request("POST", f"{ROOT}/views/rename", body)


def register(server: Server, namespace: str, name: str = "v") -> Request:
    """A registration of a file that a view, which is gone again, has left."""
    made = create(namespace, "left", **{"gc.enabled": "false"}).send(server).raise_for_status()
    drop(namespace, "left").send(server).raise_for_status()
    body = {"name": name, "metadata-location": made.json()["metadata-location"]}
    return Request("POST", f"{ROOT}/namespaces/{namespace}/register-view", body)


def path(namespace: str, name: str = "v") -> str:
    return f"{ROOT}/namespaces/{namespace}/views/{name}"


def load(server: Server, namespace: str, name: str = "v") -> Json:
    """The view as it is now, which must exist; its file has to say the same."""
    found: Json = server.get(path(namespace, name)).raise_for_status().json()
    assert read_metadata(found["metadata-location"]) == found["metadata"]
    return found


def texts(metadata: Json) -> list[str]:
    """The SQL of all versions, by their ids."""
    found = sorted(metadata["versions"], key=lambda each: int(each["version-id"]))
    return [each["representations"][0]["sql"] for each in found]


def logged(metadata: Json) -> list[int]:
    return [each["version-id"] for each in metadata["version-log"]]


def files(metadata_location: str) -> list[str]:
    """The names of the metadata files beside this one."""
    folder = Path(metadata_location.removeprefix("file://")).parent
    return sorted(each.name for each in folder.iterdir())
