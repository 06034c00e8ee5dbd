"""Servers that need credentials, on each kind of database."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.processes.access import GuardedServer, Issuer, guarded, issuing
from tests.harness.processes.databases import KINDS, database_of
from tests.harness.processes.servers import Server

# Long, and the same on both databases but for what the other tests show.
LONG = ("test_matrix", "test_clients", "test_injection", "test_tokens", "test_oidc", "test_mixed")
# Where tests that play runners have their jobs, so that they get no others'.
CLUSTER = "crew"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and Path(__file__).parent in item.path.parents:
            params = item.callspec.params if hasattr(item, "callspec") else {}
            if item.path.stem in LONG and params.get("gate") == "postgresql":
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="package")
def issuer() -> Iterator[Issuer]:
    with issuing() as found:
        yield found


@pytest.fixture(scope="package", params=KINDS)
def gate(
    request: pytest.FixtureRequest,
    issuer: Issuer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[GuardedServer]:
    """One server for all tests of this folder, which know keys and tokens of an issuer."""
    database = database_of(request)
    data = tmp_path_factory.mktemp("data")
    clusters = {"PENSTOCK__CLUSTERS": f'{{"{CLUSTER}": {{"master": "local[1]"}}}}'}
    with guarded(data, database=database, environ={**issuer.environ(), **clusters}) as found:
        yield found


@pytest.fixture
def admin(gate: GuardedServer) -> Server:
    return gate.admin()


@pytest.fixture
def ns(admin: Server) -> str:
    """A namespace with the tables a, b and c, the view v, and an empty namespace below."""
    name = f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{name}/create").raise_for_status()
    admin.post(f"/v1/namespace/{name}$below/create").raise_for_status()
    for table in "abc":
        admin.post(f"/v1/table/{name}${table}/declare").raise_for_status()
    views.create(name).send(admin).raise_for_status()
    return name
