"""The demo's view: created by pyiceberg, replaced over plain HTTP, loaded by pyiceberg again."""

from collections.abc import Callable
from typing import Any

import click
import httpx
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import ViewVersion

VIEW = "demo.adults"
FIRST = "SELECT id, name FROM people"
SECOND = "SELECT id, name FROM people WHERE id >= 18"


def show(url: str, tell: Callable[[str, str], None]) -> None:
    """Create, replace and load a view in the namespace of the demo's table."""
    catalog = RestCatalog("demo", uri=f"{url}/iceberg")
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "name", StringType(), required=False),
    )
    catalog.create_view(VIEW, schema, ViewVersion.model_validate(_version(FIRST)))
    tell("view", f"{VIEW} created by pyiceberg: {FIRST}")
    path = f"{url}/iceberg/v1/namespaces/demo/views/adults"
    with httpx.Client() as client:
        client.post(path, json=_replacement(SECOND)).raise_for_status()
        tell("view", f"replaced over HTTP: {SECOND}")
        answer = client.get(f"{path}/dialects", params={"target": "trino"}).json()
    tell("view", f"for Trino, checked against the table's columns: {answer['sql']}")
    metadata = catalog.load_view(VIEW).metadata
    current = next(v for v in metadata.versions if v.version_id == metadata.current_version_id)
    sql = current.representations[0].root.sql
    tell("view", f"loaded by pyiceberg: version {current.version_id} of {len(metadata.versions)}")
    if sql != SECOND:
        raise click.ClickException(f"expected the replacement, found {sql}")


def _replacement(sql: str) -> dict[str, Any]:
    return {
        "updates": [
            {"action": "add-view-version", "view-version": {"version-id": 2, **_version(sql)}},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
    }


def _version(sql: str) -> dict[str, Any]:
    return {
        "schema-id": 0,
        "timestamp-ms": 1_790_000_000_000,
        "summary": {"engine-name": "penstock-demo"},
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
        "default-namespace": ["demo"],
    }
