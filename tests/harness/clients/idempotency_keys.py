"""Requests under idempotency keys, and everything that a second effect would change."""

import asyncio
import contextlib
import sqlite3
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from tests.harness.processes.servers import Server

HEADER = "Idempotency-Key"
CLIENTS = 16

# What settles in its own time, and the keys themselves, are left out.
RELATIONS = {
    "namespaces": "path, properties",
    "objects": "id, namespace, name, kind, properties",
    "tables": "id, location",
    "table_versions": "table_id, branch, version, manifest_path, transaction_id",
    "transactions": "id, operation, target, properties",
    "views": "id, metadata_location, metadata",
    "iceberg_tables": "id, uuid, location, metadata_location",
    "jobs": "id, spec, state, cancel_requested",
    "manifests": "name, content",
    "columns": "table_id, branch, name, binding, function",
    "function_code": "sha256, name, version",
    "functions": "id, newest, disabled",
    "function_versions": "function_id, version, digest, disabled",
}

Answer = tuple[int, bytes]
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Request:
    """A change that a client asks for, as often as it likes; a body of bytes goes as it is."""

    method: str
    path: str
    body: Any = None
    params: Mapping[str, str] = field(default_factory=dict)

    def send(self, server: Server, key: str = "") -> httpx.Response:
        headers = {HEADER: key} if key else {}
        content = self.body if isinstance(self.body, bytes) else None
        return server.client.request(
            self.method,
            self.path,
            json=self.body if content is None and self.body is not None else None,
            content=content,
            params=dict(self.params) or None,
            headers=headers,
        )


def new_key() -> str:
    return str(uuid.uuid4())


def answer(response: httpx.Response) -> Answer:
    """What must be the same each time."""
    return response.status_code, response.content


def at_once(act: Callable[[int], httpx.Response], count: int = CLIENTS) -> list[httpx.Response]:
    """Let all clients act at the same moment; returns their answers in order."""
    start = threading.Barrier(count)

    def run(number: int) -> httpx.Response:
        start.wait()
        return act(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


def read_records(database: str) -> dict[str, Rows]:
    """What the catalog has on record, in any order."""
    queries = {name: f"SELECT {columns} FROM {name}" for name, columns in RELATIONS.items()}
    found = query(database, list(queries.values()))
    return {name: sorted(rows, key=repr) for name, rows in zip(queries, found, strict=True)}


def count_all_effects(database: str) -> int:
    """How many changes the catalog has noted."""
    return int(query(database, ["SELECT count(*) FROM transactions"])[0][0][0])


def count_effects(database: str, namespaces: list[str]) -> list[int]:
    """How many changes in each of the namespaces the catalog has noted."""
    targets = [row[0] for row in query(database, ["SELECT target FROM transactions"])[0]]
    return [sum(namespace in target for target in targets) for namespace in namespaces]


def query(database: str, statements: list[str]) -> list[Rows]:
    """Run statements beside the servers that use the database."""
    if database.startswith("sqlite:///"):
        with contextlib.closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as opened:
            found = [opened.execute(sql).fetchall() for sql in statements]
            opened.commit()
            return found
    return asyncio.run(_query_postgres(database, statements))


async def _query_postgres(database: str, statements: list[str]) -> list[Rows]:
    connection = await asyncpg.connect(database)
    try:
        return [[tuple(row) for row in await connection.fetch(sql)] for sql in statements]
    finally:
        await connection.close()


def list_files(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())
