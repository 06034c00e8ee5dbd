"""How large tables are, and how they grow, as it is noted while somebody looks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.clients.idempotency_keys import query
from tests.harness.data.arrow import people, send
from tests.harness.processes import servers
from tests.harness.processes.databases import KINDS, database_of, sqlite_url
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, because sizes are of all that there is."""
    with servers.running(tmp_path, database=database_of(request)) as started:
        started.post("/v1/namespace/n/create").raise_for_status()
        yield started


def size(lake: Server) -> dict[str, Any]:
    found: dict[str, Any] = lake.post("/v1/overview", {"days": 3}).json()["size"]
    return found


def wait_for(lake: Server, tables: int, rows: int) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def is_there() -> bool:
        found.clear()
        found.update(size(lake))
        return (found["tables"], found["rows"], found["complete"]) == (tables, rows, True)

    until(is_there, f"never {rows} rows in {tables} tables")
    return found


def test_sizes_follow_what_is_written_and_dropped(lake: Server) -> None:
    assert size(lake)["tables"] == 0
    for name in ("a", "b"):
        send(lake, f"/v1/table/n${name}/create", people(1, 2, 3)).raise_for_status()
    lake.post("/v1/table/n$empty/declare").raise_for_status()
    first = wait_for(lake, 2, 6)
    assert first["bytes"] > 0
    assert [day["rows"] for day in first["days"]] == [0, 0, 6]
    send(lake, "/v1/table/n$a/insert", people(4)).raise_for_status()
    lake.post("/v1/table/n$b/delete", {"predicate": "id = 1"}).raise_for_status()
    send(lake, "/v1/table/n$b/insert", people(5, 6)).raise_for_status()
    assert wait_for(lake, 2, 8)["bytes"] > first["bytes"]
    lake.post("/v1/table/n$a/drop").raise_for_status()
    assert wait_for(lake, 1, 4)["days"][-1]["rows"] == 4
    lake.post("/v1/namespace/n/drop", {"behavior": "Cascade"}).raise_for_status()
    assert wait_for(lake, 0, 0)["days"][-1] == {**size(lake)["days"][-1], "rows": 0, "bytes": 0}


def test_growth_is_told_by_days(tmp_path: Path) -> None:
    with servers.running(tmp_path) as lake:
        _grow(lake, tmp_path)


def _grow(lake: Server, folder: Path) -> None:
    lake.post("/v1/namespace/n/create").raise_for_status()
    send(lake, "/v1/table/n$a/create", people(1, 2)).raise_for_status()
    wait_for(lake, 1, 2)
    query(sqlite_url(folder), ["UPDATE table_growth SET day = day - 1"])
    send(lake, "/v1/table/n$a/insert", people(3)).raise_for_status()
    assert [day["rows"] for day in wait_for(lake, 1, 3)["days"]] == [0, 2, 3]


def test_a_table_that_cannot_be_opened_is_left_out(lake: Server) -> None:
    send(lake, "/v1/table/n$a/create", people(1, 2)).raise_for_status()
    send(lake, "/v1/table/n$b/create", people(1)).raise_for_status()
    location = lake.post("/v1/table/n$b/describe").json()["location"].removeprefix("file://")
    for file in Path(location, "_versions").iterdir():
        file.write_bytes(b"damaged")
    assert wait_for(lake, 2, 2)["complete"] is True
