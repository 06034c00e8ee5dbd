"""Servers that die at a named point of each of many requests, and what their clients see then."""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.harness.clients import iceberg_requests
from tests.harness.clients.changes.every import CHANGES
from tests.harness.clients.idempotency_keys import Request, count_effects, new_key
from tests.harness.data.tables import new_name
from tests.harness.processes import servers
from tests.harness.processes.databases import new_postgres_database
from tests.harness.processes.servers import Server

# The name of a change, and the point at which the server dies.
Case = tuple[str, str]

# Processes on their way up; more would only wait for each other.
WORKERS = 2


@dataclass
class Crash:
    """A request that killed its server, and the answers to its repetitions at the next one."""

    namespace: str
    request: Request
    key: str
    server: Server
    # The change notes of its namespace before the crash, after it, and after the repetitions.
    effects: tuple[int, int, int]
    # What the next server had at the view or table, before the repetitions.
    found: httpx.Response
    answers: list[httpx.Response]


def die(data: Path, database: str, point: str, request: Request, key: str) -> None:
    """Start a server that dies at the point, and let it."""
    dying = servers.start(data, database=database, environ={"PENSTOCK_CRASH_AT": point})
    try:
        with pytest.raises(httpx.HTTPError):
            request.send(dying, key)
        assert dying.process.wait(60) == -9
    finally:
        dying.process.kill()


@contextlib.contextmanager
def crash_each(folder: Path, postgres: str, cases: Sequence[Case]) -> Iterator[dict[Case, Crash]]:
    """Let a server die in each change; yields what came of them, with servers that run."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(WORKERS) as threads:

        def work(number: int) -> dict[Case, Crash]:
            data = folder / str(number)
            data.mkdir()
            database = new_postgres_database(postgres) if postgres else ""
            return _crash(stack, data, database, cases[number::WORKERS])

        found: dict[Case, Crash] = {}
        for part in threads.map(work, range(WORKERS)):
            found |= part
        yield found


def _crash(
    stack: contextlib.ExitStack, data: Path, database: str, cases: Sequence[Case]
) -> dict[Case, Crash]:
    url = database or f"sqlite:///{data / 'catalog.sqlite'}"
    prepared: list[tuple[str, Request, str]] = []
    with servers.running(data, database=database) as server:
        for name, _ in cases:
            namespace = new_name("ns")
            server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
            prepared.append((namespace, CHANGES[name](server, namespace), new_key()))
    namespaces = [namespace for namespace, _, _ in prepared]
    before = count_effects(url, namespaces)
    for (_, request, key), (_, point) in zip(prepared, cases, strict=True):
        die(data, database, point, request, key)
    server = stack.enter_context(servers.running(data, database=database))
    crashed = count_effects(url, namespaces)
    found = [server.get(iceberg_requests.path(namespace)) for namespace in namespaces]
    # At once, because a server may wait for another one's answer.
    with ThreadPoolExecutor(max(1, len(prepared))) as threads:
        rounds = [
            list(threads.map(lambda each: each[1].send(server, each[2]), prepared))
            # On PostgreSQL each one takes as long as another server may need to answer.
            for _ in range(1 if database else 2)
        ]
    effects = list(zip(before, crashed, count_effects(url, namespaces), strict=True))
    return {
        case: Crash(*prepared[n], server, effects[n], found[n], [each[n] for each in rounds])
        for n, case in enumerate(cases)
    }
