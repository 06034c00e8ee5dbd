"""Backing up and restoring: what is refused, what is left out, what is kept and what is not."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.backups import dump, holds
from penstock.backups.make_backup import make
from penstock.backups.restore_backup import restore
from penstock.catalog import maintenance
from penstock.catalog.catalog import Catalog
from penstock.catalog.names import table_changes, tables
from penstock.catalog.names.lake_identity import claim
from penstock.catalog.names.tables import plan_table
from penstock.database import schema
from penstock.database.connect import connect, open_catalog
from penstock.database.interface import Transaction
from penstock.errors import DatabaseMismatch, InvalidRequest
from penstock.lance.storage.files import exists, write_new
from penstock.lance.storage.lake import Lake
from penstock.model.origins import NOBODY
from tests.harness.data.backups import look_deep, run
from tests.harness.processes.databases import sqlite_url

pytestmark = pytest.mark.anyio


def tell(done: int, of: int, name: str) -> None:
    """Nobody watches."""


@pytest.fixture
async def claimed(catalog: Catalog) -> Catalog:
    """A catalog that knows where its lake is, with a table that is only declared."""
    await claim(catalog.database, catalog.lake)
    await tables.declare(catalog, plan_table(catalog, ("t",), None, {}, True))
    return catalog


async def test_every_relation_is_kept_or_left_out_on_purpose(catalog: Catalog) -> None:
    sql = (
        "SELECT name FROM sqlite_schema WHERE type = 'table'"
        if catalog.database.kind == "sqlite"
        else "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    found = {str(row[0]) for row in await catalog.database.fetch(sql)}
    assert found == {*dump.KEPT, *dump.LEFT_OUT}


def test_without_a_catalog_there_is_nothing_to_back_up_or_to_look_at(tmp_path: Path) -> None:
    data = ("--data", tmp_path / "data")
    assert "there is no catalog" in run("backup", tmp_path / "backup", *data, code=2)
    assert "there is no catalog" in look_deep(*data, code=1)[0]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "catalog.sqlite").touch()
    assert "holds no catalog" in run("backup", tmp_path / "backup", *data, code=2)
    assert "holds no catalog" in look_deep(*data, code=1)[0]
    assert not (tmp_path / "backup").exists()


async def test_what_signs_tokens_is_in_no_backup(claimed: Catalog, tmp_path: Path) -> None:
    await claimed.database.write(sign_with, "the secret")
    (tmp_path / "backup").mkdir(mode=0o755)
    await make(claimed.database, claimed.lake, Lake(str(tmp_path / "backup")), tell)
    files = [path for path in (tmp_path / "backup").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"the secret" in path.read_bytes()]
    assert (tmp_path / "backup").stat().st_mode & 0o077 == 0


async def sign_with(tx: Transaction, secret: str) -> None:
    await tx.fetch("INSERT INTO signing_keys (id, secret, created_at) VALUES ('k', $1, 0)", secret)


async def test_a_backup_goes_into_a_new_folder_outside_the_lake(
    claimed: Catalog, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for folder, why in (("full", "not empty"), ("lake/b", "in each other"), ("", "in each other")):
        with pytest.raises(InvalidRequest, match=why):
            await make(claimed.database, claimed.lake, Lake(str(tmp_path / folder)), tell)


async def test_nothing_is_restored_over_anything(claimed: Catalog, tmp_path: Path) -> None:
    backup, lake = Lake(str(tmp_path / "backup")), Lake(str(tmp_path / "new"))
    await make(claimed.database, claimed.lake, backup, tell)
    with pytest.raises(DatabaseMismatch, match="holds a catalog already"):
        await restore(claimed.database, backup, lake, tell)
    empty = await connect(sqlite_url(tmp_path / "empty"))
    with pytest.raises(InvalidRequest, match="is not empty"):
        await restore(empty, backup, claimed.lake, tell)
    (tmp_path / "backup" / "backup.json").unlink()
    with pytest.raises(InvalidRequest, match="holds no whole backup"):
        await restore(empty, backup, lake, tell)
    assert (await schema.get_status(empty)).is_fresh
    await empty.close()


async def test_a_restored_catalog_is_another_one(claimed: Catalog, tmp_path: Path) -> None:
    backup, lake = Lake(str(tmp_path / "backup")), Lake(str(tmp_path / "new"))
    made = await make(claimed.database, claimed.lake, backup, tell)
    database = await connect(sqlite_url(tmp_path / "restored"))
    restored = await restore(database, backup, lake, tell)
    assert made.catalog != restored.catalog
    await claim(database, lake)
    with pytest.raises(DatabaseMismatch):
        await claim(database, claimed.lake)
    found = await tables.get(database, ("t",))
    assert found.location.startswith(f"{tmp_path}/new/t-")
    await database.close()


async def test_files_of_a_dropped_table_stay_while_a_backup_is_made(claimed: Catalog) -> None:
    table = await tables.get(claimed.database, ("t",))
    place = claimed.lake.place(table.location)
    write_new(place, "file", b"content")
    async with holds.hold_removals(claimed.database):
        await table_changes.drop(claimed, ("t",), NOBODY)
        assert exists(place, "file")
    await maintenance.run_round(claimed)
    assert not exists(place, "file")


async def test_rows_of_an_older_release_are_brought_up_to_this_one(database_url: str) -> None:
    database = await connect(database_url)
    await database.write(set_up_old)
    rows = await database.fetch("SELECT name, properties FROM namespaces WHERE path = 'n'")
    assert [tuple(row) for row in rows] == [("n", '{"a":"b"}')]
    assert (await schema.get_status(database)).is_current
    await database.close()
    await (await open_catalog(database_url)).close()


async def set_up_old(tx: Transaction) -> None:
    kind = "sqlite" if "Sqlite" in type(tx).__name__ else "postgresql"
    await schema.set_up(tx, kind, 7)
    columns = ["path", "parent", "name", "properties", "created_at"]
    rows: list[list[Any]] = [["", None, "", "{}", 0], ["n", "", "n", '{"a":"b"}', 0]]
    await dump.load(tx, {"namespaces": dump.Relation("namespaces", columns, rows)})
    await schema.upgrade_in(tx, kind)


def test_a_damaged_backup_is_refused_and_nothing_is_left_in_the_database(tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "backup.json").write_text(json.dumps({"format": 1}))
    said = run("restore", tmp_path / "backup", "--data", tmp_path / "new", code=2)
    assert "is damaged" in said
