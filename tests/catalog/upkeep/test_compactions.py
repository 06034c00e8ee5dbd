"""Compaction over HTTP: small fragments become large ones, and nothing else changes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.harness.data.arrow import send
from tests.harness.data.tables import code, get_table, open_by_path
from tests.harness.jobs.fake_runner import make_table
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, database_of
from tests.harness.processes.servers import Server

Rows = list[dict[str, Any]]


def ask(server: Server, table: str, operation: str, body: Any = None) -> Any:
    """The answer to an operation, which must work."""
    answer = server.post(f"/v1/table/{table}/{operation}", body)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


def grow(server: Server, times: int, branch: str = "") -> str:
    """A table of three rows and so many fragments of one more."""
    table = make_table(server)
    if branch:
        ask(server, table, "branches/create", {"name": branch})
    for n in range(times):
        insert(server, table, 10 + n, branch)
    return table


def insert(server: Server, table: str, id: int, branch: str = "") -> None:
    rows = pa.table({"id": pa.array([id], pa.int64()), "text": ["x"]})
    where = {"branch": branch} if branch else {}
    send(server, f"/v1/table/{table}/insert", rows, **where).raise_for_status()


def read(server: Server, table: str, branch: str = "") -> Rows:
    found = open_by_path(server, table, branch).to_table(with_row_id=True)
    rows: Rows = found.sort_by("_rowid").to_pylist()
    return rows


def test_fragments_become_one_and_rows_stay_what_they_are(server: Server) -> None:
    table = grow(server, 5)
    ask(server, table, "delete", {"predicate": "id = 2"})
    before = read(server, table)
    done = ask(server, table, "compact")
    assert (done["fragments_removed"], done["fragments_added"]) == (6, 1)
    assert (done["pieces_lost"], done["pieces_left"]) == (0, 0)
    assert read(server, table) == before
    assert len(open_by_path(server, table).get_fragments()) == 1
    assert done["version"] == max(get_table(server, table).listed())
    # There is nothing left to do, which makes no version.
    again = ask(server, table, "compact")
    assert (again["version"], again["fragments_removed"]) == (done["version"], 0)


def test_a_branch_is_compacted_by_itself(server: Server) -> None:
    table = grow(server, 3, "dev")
    before = read(server, table, "dev")
    assert ask(server, table, "compact", {"branch": "dev"})["fragments_removed"] == 4
    assert read(server, table, "dev") == before
    assert len(open_by_path(server, table, "dev").get_fragments()) == 1
    assert [row["id"] for row in read(server, table)] == [1, 2, 3]


def test_writers_and_a_compaction_do_not_lose_anything(server: Server) -> None:
    table = grow(server, 10)
    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(insert, server, table, 100 + n) for n in range(20)]
        for _ in range(4):
            ask(server, table, "compact")
        for each in writers:
            each.result()
    ask(server, table, "compact")
    ids = [row["id"] for row in read(server, table)]
    assert sorted(ids) == [1, 2, 3, *range(10, 20), *range(100, 120)]
    assert len(open_by_path(server, table).get_fragments()) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"seconds": 0}, (400, 13)),
        ({"seconds": 61}, (400, 13)),
        ({"branch": "none"}, (404, 22)),
    ],
)
def test_what_cannot_be_compacted_is_refused(
    server: Server, body: dict[str, Any], status: tuple[int, int]
) -> None:
    table = make_table(server)
    assert code(server.post(f"/v1/table/{table}/compact", body)) == status


@pytest.mark.parametrize("database", EITHER, indirect=True)
def test_a_server_that_dies_between_two_pieces_leaves_a_whole_table(
    database: str, tmp_path: Path
) -> None:
    environ = {"PENSTOCK_CRASH_AT": "piece compacted"}
    with servers.running(tmp_path, database=database) as server:
        table = grow(server, 3)
        before = read(server, table)
    dying = servers.start(tmp_path, database=database, environ=environ)
    with pytest.raises(httpx.HTTPError):
        dying.post(f"/v1/table/{table}/compact")
    dying.process.wait(60)
    with servers.running(tmp_path, database=database) as server:
        assert read(server, table) == before
        assert ask(server, table, "count_rows") == 6
        assert ask(server, table, "compact")["fragments_removed"] == 0
        insert(server, table, 50)
        assert len(read(server, table)) == 7


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    return database_of(request)
