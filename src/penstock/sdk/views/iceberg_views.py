"""Iceberg views, where other clients fall short: listed beside tables, and replaced."""

import time
from typing import Any
from urllib.parse import quote

from penstock.errors import InvalidRequest
from penstock.model.identifiers import Identifier
from penstock.sdk.connection.wire import Wire, show_id

# Joins the levels of a namespace in a path of the Iceberg protocol.
LEVELS = "\x1f"


def list_views(wire: Wire, namespace: Identifier) -> list[str]:
    """The names of the Iceberg views in a namespace; the root has none."""
    found: list[str] = []
    token = ""
    while namespace:
        answer = wire.get(f"{_path(namespace)}/views", pageToken=token, pageSize=1000)
        found += [show_id((*each["namespace"], each["name"])) for each in answer["identifiers"]]
        token = answer.get("next-page-token") or ""
        if not token:
            break
    return found


def replace_view(wire: Wire, view: Identifier, sql: str, dialect: str) -> int:
    """Give a view another query for one dialect, and no other; returns the new version."""
    if len(view) < 2:
        raise InvalidRequest(
            f"{show_id(view)} is in no namespace", detail="Iceberg views are in one"
        )
    path = f"{_path(view[:-1])}/views/{quote(view[-1], safe='')}"
    metadata = wire.get(path)["metadata"]
    current = _current(metadata)
    version = {
        "version-id": max(each["version-id"] for each in metadata["versions"]) + 1,
        "schema-id": current["schema-id"],
        "timestamp-ms": int(time.time() * 1000),
        "summary": {"engine-name": "penstock"},
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
        "default-namespace": current["default-namespace"],
    }
    body = {
        "requirements": [{"type": "assert-view-uuid", "uuid": metadata["view-uuid"]}],
        "updates": [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }
    return int(wire.change(path, body)["metadata"]["current-version-id"])


def _current(metadata: dict[str, Any]) -> dict[str, Any]:
    wanted = metadata["current-version-id"]
    return next(each for each in metadata["versions"] if each["version-id"] == wanted)


def _path(namespace: Identifier) -> str:
    return f"/iceberg/v1/namespaces/{quote(LEVELS.join(namespace), safe='')}"
