"""What tests of the console share: one browser for the process, a page, and a small lake."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import penstock
from tests.console.lakes import fill_iceberg, fill_lake
from tests.harness.clients.browser import Page, browsing, find_browser
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes import servers
from tests.harness.processes.servers import Server

# Without a browser there is one test, which says what to install.
collect_ignore = (
    []
    if find_browser()
    else [
        path.name for path in Path(__file__).parent.glob("test_*.py") if path.stem != "test_browser"
    ]
)
# Statements are answered by Lance alone: no test here waits for a runner that is not there.
QUICK = {"PENSTOCK__SERVER__SQL_SECONDS": "5"}


@dataclass(frozen=True)
class LakeServer:
    """A server with the lake that the tests look at; the test plays its runner."""

    server: Server
    lake: penstock.Lake

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def runner(self) -> Runner:
        return Runner(self.server)


@pytest.fixture(scope="session")
def tab() -> Iterator[Page]:
    with browsing() as driver:
        yield Page(driver)


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """A new visitor's tab; at its end the browser must have had nothing to complain of."""
    tab.forget()
    yield tab
    assert tab.complaints() == []


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeServer]:
    data = tmp_path_factory.mktemp("data")
    with servers.running(data, environ=QUICK) as server:
        lake = penstock.connect(server.url)
        fill_lake(lake)
        fill_iceberg(lake, server.url)
        yield LakeServer(server, lake)


@pytest.fixture
def console(page: Page, shown: LakeServer) -> Page:
    """The console of the lake that tests look at, and do not change."""
    page.url = shown.url
    return page
