"""GetTableStats: live rows, bytes, indexes and the sizes of fragments."""

import pytest

from penstock.lance.read.stats import summarise
from tests.harness.clients.generated import Client as Generated
from tests.harness.clients.generated import models
from tests.harness.clients.pylance import Client, connect
from tests.harness.data.tables import Table, code, get_table
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def client(server: Server, namespace: str) -> Client:
    """A table of two fragments with 40 and 10 rows, and a branch `dev` with ten rows less."""
    client = Client(connect(server), [namespace, "t"])
    client.write(*range(40), mode="create")
    client.write(*range(40, 50))
    client.open().create_branch("dev").delete("n < 10")
    return client


@pytest.fixture
def table(server: Server, client: Client) -> Table:
    return get_table(server, "$".join(client.id))


def test_rows_and_fragments_are_counted(table: Table) -> None:
    found = table.ask("stats").json()
    assert (found["num_rows"], found["num_indices"]) == (50, 0)
    assert 50 * 40 < found["total_bytes"] < 20_000
    lengths = {"min": 10, "max": 40, "mean": 25, "p25": 10, "p50": 40, "p75": 40, "p99": 40}
    assert found["fragment_stats"] == {
        "num_fragments": 2,
        "num_small_fragments": 2,
        "lengths": lengths,
    }


def test_deleted_rows_do_not_count(table: Table, client: Client) -> None:
    client.open().delete("n < 5")
    found = table.ask("stats", {}).json()
    assert found["num_rows"] == 45
    assert found["fragment_stats"]["lengths"]["max"] == 35


def test_a_branch_has_its_own(table: Table) -> None:
    assert table.ask("stats", {"branch": "dev"}).json()["num_rows"] == 40
    index = {"column": "n", "index_type": "BTREE", "branch": "dev"}
    assert table.ask("create_scalar_index", index).status_code == 200
    assert table.ask("stats", {"branch": "dev"}).json()["num_indices"] == 1
    assert table.ask("stats").json()["num_indices"] == 0


def test_dropped_columns_do_not_count(table: Table) -> None:
    before = table.ask("stats").json()["total_bytes"]
    assert table.ask("drop_columns", {"columns": ["vector"]}).status_code == 200
    assert table.ask("stats").json()["total_bytes"] < before / 2


def test_the_published_client_reads_the_answer(table: Table, server: Server) -> None:
    request = models.GetTableStatsRequest(branch="dev")
    assert Generated(server.url).get_table_stats(table.id, request).num_rows == 40


def test_what_is_missing_is_named(table: Table, server: Server, namespace: str) -> None:
    assert code(table.ask("stats", {"branch": "missing"})) == (404, 22)
    assert code(table.ask("stats", {"branch": "no such"})) == (400, 13)
    assert code(server.post(f"/v1/table/{namespace}$gone/stats")) == (404, 4)
    assert code(server.post("/v1/table/nowhere$gone/stats")) == (404, 1)
    server.post(f"/v1/table/{namespace}$empty/declare").raise_for_status()
    assert code(server.post(f"/v1/table/{namespace}$empty/stats")) == (400, 19)


def test_no_fragments_are_all_zero(server: Server) -> None:
    assert summarise([]).lengths == summarise([0]).lengths
    assert summarise([]).num_fragments == 0
    assert summarise([100_000, 99_999]).num_small_fragments == 1
