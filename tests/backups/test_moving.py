"""What else names places: consents to Iceberg views, old catalogs, and versions held for a copy."""

from datetime import timedelta
from pathlib import Path

import lance
import pytest

from penstock.backups import holds
from penstock.backups.moved_views import Move, MovedView, settle_in
from penstock.backups.relocate_lake import relocate
from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views.metadata_files import MetadataDocument
from penstock.catalog.names import lake_identity, tables
from penstock.catalog.names.tables import plan_table
from penstock.database.interface import Transaction
from penstock.errors import DatabaseMismatch
from penstock.lance.copies.copy_plan import HOLD
from penstock.lance.storage.files import write_new
from penstock.lance.storage.lake import Lake
from tests.harness.data.arrow import people

pytestmark = pytest.mark.anyio

FIRST, NOW, NEXT = "file:///old/i/0.json", "file:///old/i/1.json", "file:///new/i/2.json"
# A materialized view that has consented to the SQL of an Iceberg view, whose file came later.
ROWS = (
    "INSERT INTO objects VALUES ('m', '', 'm', 'table', '{}', 0), ('i', '', 'i', 'view', '{}', 0)",
    "INSERT INTO tables VALUES ('m', 'm.lance', 1)",
    f"INSERT INTO views VALUES ('i', 'i', 'i', '{NOW}', '{{}}', '{FIRST}', '[]')",
    "INSERT INTO materialized_views VALUES "
    "('m', 'query', '{}', '{}', '[]', 0, NULL, NULL, NULL, 0, 0)",
    f"INSERT INTO view_sources VALUES ('m', '', 'i', '[]', 'i', '{NOW}', '{FIRST}', '', 0)",
)


async def run_all(tx: Transaction) -> None:
    for statement in ROWS:
        await tx.fetch(statement)


async def test_what_was_consented_to_is_still_consented_to(catalog: Catalog) -> None:
    await catalog.database.write(run_all)
    moved = MovedView("i", NOW, MetadataDocument(NEXT, "{}", "/new/i"))
    await catalog.database.write(settle_in, Move("/old", "/new"), [moved])
    view = await catalog.database.fetch_one("SELECT metadata_location, edited_in FROM views")
    source = await catalog.database.fetch_one("SELECT state, edition FROM view_sources")
    assert view is not None
    assert source is not None
    assert tuple(view) == tuple(source) == (NEXT, "file:///new/i/0.json")


async def test_a_copy_of_a_catalog_of_before_does_not_write_to_the_old_lake(
    catalog: Catalog, tmp_path: Path
) -> None:
    new = plan_table(catalog, ("t",), None, {}, True)
    await tables.declare(catalog, new)
    elsewhere = Lake(str(tmp_path / "copy"))
    write_new(elsewhere.place(elsewhere.root), "file", b"")
    with pytest.raises(DatabaseMismatch, match="none of the catalog's tables") as refused:
        await lake_identity.claim(catalog.database, elsewhere)
    assert "--was" in refused.value.detail
    await relocate(catalog.database, elsewhere, lambda *_: None, catalog.lake.root)
    await lake_identity.claim(catalog.database, elsewhere)
    found = await tables.get(catalog.database, ("t",))
    assert found.location == new.table.location.replace(catalog.lake.root, elsewhere.root)


def test_a_version_that_is_held_survives_a_cleanup(tmp_path: Path) -> None:
    place = Lake(str(tmp_path)).place(str(tmp_path / "t.lance"))
    dataset = lance.write_dataset(people(1), place.location)
    # A backup that died left this.
    dataset.tags.create(f"{HOLD}dead-0", 1)
    with holds.hold_versions(place, "mine", {"": 1}, ["mine"]):
        lance.write_dataset(people(2), place.location, mode="overwrite")
        newest = lance.dataset(place.location)
        newest.cleanup_old_versions(
            timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
        )
        assert list(newest.tags.list()) == [f"{HOLD}mine-0"]
        assert lance.dataset(place.location, version=1).count_rows() == 1
    assert newest.tags.list() == {}
