"""A lake belongs to one catalog: an empty or foreign database beside it is not opened."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from penstock.catalog.catalog import Catalog
from penstock.catalog.names import lake_identity, tables
from penstock.catalog.names.tables import plan_table
from penstock.database.connect import connect
from penstock.database.interface import Transaction
from penstock.errors import DatabaseMismatch, Unavailable
from penstock.model.origins import NOBODY
from penstock.server.serve import open_parts
from penstock.settings.load import load
from tests.harness.processes import servers
from tests.harness.processes.databases import KINDS, new_postgres_database, sqlite_url
from tests.harness.processes.s3 import BUCKET, running_store

pytestmark = pytest.mark.anyio

MARK = "_penstock.json"


@pytest.fixture(params=KINDS)
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The addresses of two databases with nothing in them."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "one"), sqlite_url(tmp_path / "two")
    postgres = request.getfixturevalue("postgres")
    return new_postgres_database(postgres), new_postgres_database(postgres)


async def open_at(data: Path, url: str = "", **more: str) -> Catalog:
    """The catalog as a server opens it at its start."""
    given = {"storage.data": str(data), "database.url": url or sqlite_url(data), **more}
    return await open_parts(load(None, {}, given).settings)


async def count_tables(data: Path, url: str = "", **more: str) -> int:
    catalog = await open_at(data, url, **more)
    found = await catalog.database.fetch("SELECT id FROM tables")
    await catalog.close()
    return len(found)


async def fill(data: Path, url: str = "") -> None:
    catalog = await open_at(data, url)
    new = plan_table(catalog, ("t",), None, {}, True)
    await catalog.database.write(tables.declare_in, new, NOBODY)
    await catalog.close()
    (data / "lake" / new.table.location.rpartition("/")[2] / "_versions").mkdir(parents=True)


async def test_an_empty_database_does_not_begin_beside_a_lake_of_tables(
    tmp_path: Path, urls: tuple[str, str]
) -> None:
    await fill(tmp_path, urls[0])
    # Not even when it is tried again; and the right one still works.
    for _ in range(2):
        with pytest.raises(DatabaseMismatch, match="belongs to catalog") as refused:
            await open_at(tmp_path, urls[1])
        assert "backup" in refused.value.detail
    assert await count_tables(tmp_path, urls[0]) == 1
    assert await count_tables(tmp_path, urls[1], **{"catalog.begin_anew": "true"}) == 0
    assert await count_tables(tmp_path, urls[1]) == 0
    with pytest.raises(DatabaseMismatch, match="belongs to catalog"):
        await open_at(tmp_path, urls[0])


def test_a_server_says_so_in_a_line_and_what_to_do(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        server.post("/v1/namespace/a/create").raise_for_status()
    (tmp_path / "catalog.sqlite").write_bytes(b"")
    with pytest.raises(AssertionError, match="belongs to catalog") as refused:
        servers.start(tmp_path)
    assert "--begin-anew" in str(refused.value)
    assert "Traceback" not in str(refused.value)
    with servers.running(tmp_path, "--begin-anew") as server:
        assert server.post("/v1/namespace/a/exists").status_code == 404


@pytest.mark.parametrize("is_marked", [True, False])
async def test_a_file_without_content_is_no_catalog(tmp_path: Path, is_marked: bool) -> None:
    await fill(tmp_path)
    shutil.copy(tmp_path / "catalog.sqlite", tmp_path / "backup")
    if not is_marked:
        # As a lake of before there were marks.
        (tmp_path / "lake" / MARK).unlink()
    (tmp_path / "catalog.sqlite").write_bytes(b"")
    with pytest.raises(DatabaseMismatch):
        await open_at(tmp_path)
    shutil.copy(tmp_path / "backup", tmp_path / "catalog.sqlite")
    assert await count_tables(tmp_path) == 1


async def forget_root(tx: Transaction) -> None:
    await lake_identity.leave_root(tx)
    await tx.fetch("UPDATE lake_mark SET root = ''")


async def forget_mark(tx: Transaction) -> None:
    # Locations were absolute then.
    await lake_identity.leave_root(tx)
    await tx.fetch("DELETE FROM lake_mark")


@pytest.mark.parametrize("is_marked", [True, False])
async def test_a_catalog_of_before_there_were_ids_keeps_its_lake(
    tmp_path: Path, urls: tuple[str, str], is_marked: bool
) -> None:
    await fill(tmp_path, urls[0])
    database = await connect(urls[0])
    await database.write(forget_mark)
    await database.close()
    mark = tmp_path / "lake" / MARK
    was = json.loads(mark.read_text())["catalog"]
    if not is_marked:
        mark.unlink()
    for _ in range(2):
        assert await count_tables(tmp_path, urls[0]) == 1
    assert (json.loads(mark.read_text())["catalog"] == was) == is_marked


async def test_another_catalog_of_before_there_were_ids_is_refused(
    tmp_path: Path, urls: tuple[str, str]
) -> None:
    await fill(tmp_path, urls[0])
    await fill(tmp_path / "other", urls[1])
    database = await connect(urls[1])
    await database.write(forget_mark)
    await database.close()
    with pytest.raises(DatabaseMismatch, match="does not know it"):
        await open_at(tmp_path, urls[1])


async def list_locations(data: Path, root: str, allowed: str, sql: str) -> list[str]:
    """Where the tables of a catalog are, by SQL, with another root."""
    config = data / "penstock.toml"
    config.write_text(f'[storage]\nroot = "{data / root}"\nallowed_roots = ["{data / allowed}"]\n')
    given = {"storage.data": str(data), "database.url": sqlite_url(data)}
    catalog = await open_parts(load(config, {}, given).settings)
    found = await catalog.database.fetch(f"SELECT {sql} FROM tables")
    await catalog.close()
    return [str(row[0]) for row in found]


async def test_a_catalog_may_get_a_new_root_and_go_back_if_the_old_one_stays_allowed(
    tmp_path: Path,
) -> None:
    await fill(tmp_path)
    for root, allowed in (("elsewhere", "lake"), ("elsewhere", "lake"), ("lake", "elsewhere")):
        (found,) = await list_locations(tmp_path, root, allowed, "absolute(location)")
        assert found.startswith(f"{tmp_path}/lake/t-")


async def test_a_catalog_does_not_follow_a_setting_to_another_place(
    tmp_path: Path, urls: tuple[str, str]
) -> None:
    await fill(tmp_path, urls[0])
    shutil.copytree(tmp_path / "lake", tmp_path / "drill" / "lake")
    with pytest.raises(DatabaseMismatch, match="the catalog's lake is at") as refused:
        await open_at(tmp_path / "drill", urls[0])
    assert "penstock relocate" in refused.value.detail
    assert await count_tables(tmp_path, urls[0]) == 1


async def test_locations_of_before_become_relative_at_the_first_start(
    tmp_path: Path, urls: tuple[str, str]
) -> None:
    await fill(tmp_path, urls[0])
    database = await connect(urls[0])
    await database.write(forget_root)
    before = await database.fetch("SELECT location FROM tables")
    await database.close()
    catalog = await open_at(tmp_path, urls[0])
    after = await catalog.database.fetch("SELECT location, absolute(location) FROM tables")
    await catalog.close()
    assert before[0][0] == after[0][1] == f"{tmp_path}/lake/{after[0][0]}"


async def test_a_folder_of_somebody_s_own_tables_is_nobody_s_lake(tmp_path: Path) -> None:
    (tmp_path / "lake" / "mine.lance").mkdir(parents=True)
    assert await count_tables(tmp_path) == 0


async def test_a_mark_that_cannot_be_read_is_told_and_written_again(tmp_path: Path) -> None:
    await fill(tmp_path)
    (tmp_path / "lake" / MARK).write_bytes(bytes(80))
    with pytest.raises(Unavailable, match=r"_penstock.json is damaged"):
        await open_at(tmp_path)
    (tmp_path / "lake" / MARK).unlink()
    assert await count_tables(tmp_path) == 1
    assert (tmp_path / "lake" / MARK).is_file()


async def test_servers_that_start_together_agree(tmp_path: Path, postgres: str) -> None:
    url = await asyncio.to_thread(new_postgres_database, postgres)
    opened = await asyncio.gather(*(open_at(tmp_path, url) for _ in range(8)))
    marks = {(await c.database.fetch("SELECT id FROM lake_mark"))[0][0] for c in opened}
    for catalog in opened:
        await catalog.close()
    assert marks == {json.loads((tmp_path / "lake" / MARK).read_text())["catalog"]}


async def test_a_lake_on_s3_belongs_to_one_catalog_as_well(tmp_path: Path) -> None:
    with running_store() as store:
        options = "\n".join(f'{name} = "{value}"' for name, value in store.options.items())
        for root in (f"s3://{BUCKET}/lake", f"s3://{BUCKET}"):
            config = tmp_path / "penstock.toml"
            config.write_text(f'[storage]\nroot = "{root}"\n\n[storage.options]\n{options}\n')
            name = root.rpartition("/")[2]
            for data, is_refused in (("a", False), ("a", False), ("b", True)):
                given = {"storage.data": str(tmp_path / name / data)}
                try:
                    await (await open_parts(load(config, {}, given).settings)).close()
                except DatabaseMismatch:
                    assert is_refused
                else:
                    assert not is_refused
            assert any(key.endswith(MARK) for key in store.keys(""))
