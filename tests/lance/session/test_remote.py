"""Tables of a catalog elsewhere, while its server goes away and comes back."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.errors import Unavailable
from penstock.lance.session.remote import RemoteCatalog
from tests.harness.processes import servers
from tests.harness.processes.flaky_proxy import Fate, flaky
from tests.harness.processes.servers import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("data")
    with servers.running(folder) as started:
        yield started


@pytest.mark.parametrize("lost", [1, 2])
def test_an_answer_that_is_cut_off_is_no_error_of_the_table(server: Server, lost: int) -> None:
    """A job that meets it is tried again: the server may have been restarted."""
    with penstock.connect(server.url) as lake:
        lake.create_namespace("cut", if_exists="ok")
        lake.create_table(f"cut.t{lost}", pa.table({"id": [1]}))
    with flaky(server.url) as way:
        catalog = RemoteCatalog(way.url)
        assert catalog.open_latest(("cut", f"t{lost}"), "").count_rows() == 1
        assert len(way.seen) >= 2
        # pylance asks again by itself, a few times.
        passed: list[Fate] = ["pass"] * (lost - 1)
        cut: list[Fate] = ["lose"] * 20
        way.fates = passed + cut
        with pytest.raises(Unavailable):
            catalog.open_latest(("cut", f"t{lost}"), "")
        way.fates.clear()
        assert catalog.open_latest(("cut", f"t{lost}"), "").count_rows() == 1
