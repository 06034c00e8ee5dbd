"""How large tables are, and how they grow, as it is noted while somebody looks."""

import time
from pathlib import Path
from typing import Any

import lance
import pytest

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs.queue import DAY_MILLIS
from penstock.catalog.names import namespace_changes, namespaces, table_changes, tables
from penstock.catalog.overview import sizes
from penstock.catalog.overview.sizes import Size
from penstock.catalog.versions import reconcile
from penstock.model.tables import MAIN, Table
from tests.harness.clients.idempotency_keys import query
from tests.harness.data.arrow import people, send
from tests.harness.processes import servers
from tests.harness.processes.databases import sqlite_url
from tests.harness.processes.waiting import until


async def declare(catalog: Catalog, name: str) -> Table:
    new = tables.plan_table(catalog, ("n", name), None, {}, managed=True)
    await tables.declare(catalog, new)
    return new.table


async def write(catalog: Catalog, table: Table, *ids: int) -> None:
    lance.write_dataset(people(*ids), table.location, mode="append")
    await reconcile.reconcile(catalog, table, MAIN)


async def look(catalog: Catalog) -> Size:
    assert await sizes.look(catalog)
    return await sizes.sum_up(catalog.database, None, int(time.time() * 1000) // DAY_MILLIS, 3)


def rows_by_day(size: Size) -> list[int]:
    return [day.rows for day in size.days]


@pytest.mark.anyio
async def test_sizes_follow_what_is_written_and_dropped(catalog: Catalog) -> None:
    await namespaces.create(catalog, ("n",), {}, "create")
    assert (await look(catalog)).tables == 0
    a, b, _ = [await declare(catalog, name) for name in ("a", "b", "empty")]
    for table in (a, b):
        await write(catalog, table, 1, 2, 3)
    first = await look(catalog)
    assert (first.tables, rows_by_day(first)) == (2, [0, 0, 6])
    assert first.bytes > 0
    await write(catalog, a, 4)
    lance.dataset(b.location).delete("id = 1")
    await write(catalog, b, 5, 6)
    second = await look(catalog)
    assert (second.tables, rows_by_day(second)) == (2, [0, 0, 8])
    assert second.bytes > first.bytes
    await table_changes.drop(catalog, a.identifier)
    third = await look(catalog)
    assert (third.tables, rows_by_day(third)) == (1, [0, 0, 4])
    await namespace_changes.drop(catalog, ("n",), "fail", "cascade")
    last = await look(catalog)
    assert (last.tables, last.rows, last.bytes, rows_by_day(last)) == (0, 0, 0, [0, 0, 0])


@pytest.mark.anyio
async def test_a_table_that_cannot_be_opened_is_left_out(catalog: Catalog) -> None:
    await namespaces.create(catalog, ("n",), {}, "create")
    a, b = [await declare(catalog, name) for name in "ab"]
    await write(catalog, a, 1, 2)
    await write(catalog, b, 1)
    damage(b)
    found = await look(catalog)
    assert (found.tables, found.rows) == (2, 2)


def damage(table: Table) -> None:
    for file in Path(table.location.removeprefix("file://"), "_versions").iterdir():
        file.write_bytes(b"damaged")


def test_a_server_looks_again_and_tells_growth_by_days(tmp_path: Path) -> None:
    with servers.running(tmp_path) as lake:
        lake.post("/v1/namespace/n/create").raise_for_status()

        def tell(rows: int) -> list[int] | None:
            found: dict[str, Any] = lake.post("/v1/overview", {"days": 3}).json()["size"]
            known = (found["tables"], found["rows"], found["complete"]) == (1, rows, True)
            return [day["rows"] for day in found["days"]] if known else None

        send(lake, "/v1/table/n$a/create", people(1, 2)).raise_for_status()
        assert until(lambda: tell(2), "never two rows") == [0, 0, 2]
        query(sqlite_url(tmp_path), ["UPDATE table_growth SET day = day - 1"])
        for id in (3, 4):
            send(lake, "/v1/table/n$a/insert", people(id)).raise_for_status()
        assert until(lambda: tell(4), "never four rows") == [0, 2, 4]
        days = lake.post("/v1/overview", {"days": 3}).json()["size"]["days"]
        assert [day["commits"] for day in days] == [0, 1, 2]
