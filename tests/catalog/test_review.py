"""Rare orders of events that once went wrong, each played out step by step."""

import asyncio
import uuid
from pathlib import Path

import pytest

from penstock.catalog import maintenance
from penstock.catalog.catalog import Catalog
from penstock.catalog.names import dependents, removals, table_changes, tables
from penstock.catalog.names.view_sources import ViewSources
from penstock.catalog.versions import commits, reconcile, versions
from penstock.catalog.versions.commits import CreateVersion
from penstock.catalog.versions.settling import LANES, SettleOutcome
from penstock.catalog.versions.staging import NewVersion
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, InvalidRequest, Unavailable
from penstock.jobs.refresh import view_notes
from penstock.lance import refs
from penstock.lance.commit.manifest import manifest_name
from penstock.model.tables import MAIN, Table, TableVersion
from tests.harness.data.manifests import make_manifest, stage

pytestmark = pytest.mark.anyio

# ruff: noqa: ASYNC240 - these tests have the loop for themselves.


async def declare(catalog: Catalog, name: str, location: str | None = None) -> Table:
    new = tables.plan_table(catalog, (name,), location, {}, managed=True)
    await tables.declare(catalog, new)
    return new.table


def create(table: Table, version: int, staged: str, e_tag: str | None = None) -> CreateVersion:
    return CreateVersion(table.identifier, NewVersion(MAIN, version, staged, e_tag=e_tag))


async def test_a_stale_list_of_removals_does_not_touch_a_new_table(catalog: Catalog) -> None:
    first = await declare(catalog, "a", "mine")
    await commits.commit(catalog, [create(first, 1, stage(first.location, 1))])
    await catalog.database.write(removals.enqueue, ["/nowhere"])
    await table_changes.drop(catalog, ("a",))
    stale = [first.location]
    second = await declare(catalog, "a", "mine")
    await commits.commit(catalog, [create(second, 1, stage(second.location, 1))])
    await removals.carry_out(catalog, stale)
    assert (await reconcile.get_version(catalog, second, MAIN, 1)).version == 1
    assert Path(second.location).is_dir()


async def test_the_same_name_with_other_bytes_is_another_commit(catalog: Catalog) -> None:
    table = await declare(catalog, "a")
    staged = stage(table.location, 1)
    await commits.commit(catalog, [create(table, 1, staged)])
    other = make_manifest(1, transaction="0" * 36)
    Path("/" + staged).write_bytes(other)
    with pytest.raises(ConcurrentCommit):
        await commits.commit(catalog, [create(table, 1, staged)])
    final = Path(table.location) / "_versions" / f"{2**64 - 2}.manifest"
    assert final.read_bytes() != other


async def test_a_repeat_in_a_batch_that_fails_keeps_what_was_committed_before(
    catalog: Catalog,
) -> None:
    table = await declare(catalog, "a")
    staged = stage(table.location, 1)
    content = Path("/" + staged).read_bytes()
    await commits.commit(catalog, [create(table, 1, staged, e_tag="x")])
    Path("/" + staged).write_bytes(content)
    other = await declare(catalog, "b")
    with pytest.raises(InvalidRequest):
        await commits.commit(
            catalog, [create(table, 1, staged), create(other, 1, "_versions/none")]
        )
    kept = await versions.find(catalog.database, table.id, MAIN, 1)
    assert kept is not None
    assert kept.e_tag == "x"


async def test_a_disk_that_is_not_there_does_not_empty_the_catalog(catalog: Catalog) -> None:
    table = await declare(catalog, "a")
    await commits.commit(catalog, [create(table, 1, stage(table.location, 1), e_tag="x")])
    lake = Path(catalog.lake.root)
    lake.rename(lake.with_name("away"))
    with pytest.raises(Unavailable, match="is missing"):
        await reconcile.get_version(catalog, table, MAIN, None)
    lake.with_name("away").rename(lake)
    assert (await reconcile.get_version(catalog, table, MAIN, None)).e_tag == "x"


async def test_a_location_around_a_root_is_refused(catalog: Catalog) -> None:
    with pytest.raises(InvalidRequest):
        catalog.lake.accept(str(Path(catalog.lake.root).parent))


async def test_wishes_that_come_when_lanes_end_are_not_forgotten(catalog: Catalog) -> None:
    table = await declare(catalog, "a")
    place = catalog.lake.place(table.location)

    def staged(version: int) -> TableVersion:
        path = stage(table.location, version).removeprefix(f"{place.key}/")
        final = f"_versions/{manifest_name(version, 'V2')}"
        return TableVersion(version, final, 1, 0, staged_path=path, settled=False)

    async def settle_two(version: int) -> list[SettleOutcome]:
        return [
            await catalog.settler.settle(place, staged(2 * version)),
            await catalog.settler.settle(place, staged(2 * version + 1)),
        ]

    wishes = [settle_two(version) for version in range(1, LANES * 10)]
    outcomes = await asyncio.wait_for(asyncio.gather(*wishes), 30)
    assert outcomes == [[SettleOutcome.SETTLED] * 2] * len(wishes)


async def read_by(tx: Transaction, view_id: str, source_id: str) -> None:
    """Make a table a view of another one, as far as tags are concerned."""
    await tx.fetch(
        "INSERT INTO materialized_views "
        "(id, kind, request, definition, owner, auto_refresh, created_at) "
        "VALUES ($1, 'query', '{}', '{}', '[]', 0, 0)",
        view_id,
    )
    await dependents.record(tx, view_id, ViewSources({"a": source_id}), {})


async def test_versions_kept_for_views_that_are_not_there_are_let_go(catalog: Catalog) -> None:
    table = await declare(catalog, "a")
    await commits.commit(catalog, [create(table, 1, stage(table.location, 1))])
    place, reader = catalog.lake.place(table.location), await declare(catalog, "v")
    await catalog.database.write(read_by, reader.id, table.id)
    kept = {view_notes.tag_of(id, 1) for id in (reader.id, table.id)}
    for name in {*kept, view_notes.tag_of(uuid.uuid4().hex, 1), "mine", "penstock-backfill-x"}:
        assert refs.create_tag(place, name, refs.Tag(1))
    for key, (visited, _) in list(catalog.visits.items()):
        catalog.visits[key] = visited, 0.0
    await maintenance.run_round(catalog)
    assert set(refs.list_names(place, refs.TAGS)) == {*kept, "mine", "penstock-backfill-x"}
