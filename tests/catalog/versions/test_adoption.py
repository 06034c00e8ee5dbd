"""Commits by path and commits through the catalog on one table: neither loses the other."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.catalog.catalog import Catalog
from penstock.catalog.names import tables
from penstock.catalog.versions import commits, reconcile, versions
from penstock.catalog.versions.commits import CommittedVersion, CreateVersion
from penstock.catalog.versions.staging import NewVersion
from penstock.errors import ConcurrentCommit, InvalidRequest, VersionNotFound
from penstock.model.paging import PageRequest
from penstock.model.tables import MAIN, Table, VersionRange
from tests.harness.data.manifests import commit_by_path, stage

pytestmark = pytest.mark.anyio


async def declare(catalog: Catalog, name: str = "t") -> Table:
    new = tables.plan_table(catalog, (name,), None, {}, managed=True)
    await tables.declare(catalog, new)
    return new.table


async def commit(catalog: Catalog, table: Table, version: int, branch: str = MAIN) -> None:
    staged = stage(table.location, version, branch)
    operation = CreateVersion(table.identifier, NewVersion(branch, version, staged))
    done = await commits.commit(catalog, [operation])
    assert isinstance(done.results[0], CommittedVersion)


async def listed(catalog: Catalog, table: Table, branch: str = MAIN) -> list[int]:
    await reconcile.reconcile(catalog, table, branch)
    page = await versions.list_page(
        catalog.database, table.id, branch, PageRequest("", 1000), descending=False
    )
    return [v.version for v in page.items]


async def test_versions_written_before_the_first_commit_are_adopted(catalog: Catalog) -> None:
    table = await declare(catalog)
    for version in (1, 2, 3):
        commit_by_path(table.location, version)
    await commit(catalog, table, 4)
    assert await listed(catalog, table) == [1, 2, 3, 4]


async def test_a_branch_may_start_at_any_version(catalog: Catalog) -> None:
    table = await declare(catalog)
    await commit(catalog, table, 7, "dev")
    assert await listed(catalog, table, "dev") == [7]


async def test_a_gap_after_adoption_names_the_next_version(catalog: Catalog) -> None:
    table = await declare(catalog)
    commit_by_path(table.location, 1)
    commit_by_path(table.location, 2)
    with pytest.raises(InvalidRequest, match="leaves a gap") as refused:
        await commit(catalog, table, 4)
    assert refused.value.detail == "the next version is 3"


async def test_a_deleted_newest_record_does_not_block_the_next_commit(catalog: Catalog) -> None:
    table = await declare(catalog)
    for version in (1, 2, 3):
        await commit(catalog, table, version)
    everything = commits.DeleteVersions(table.identifier, MAIN, [VersionRange(0, None)])
    assert (await commits.commit(catalog, [everything])).results == [3]
    assert await listed(catalog, table) == []
    with pytest.raises(ConcurrentCommit):
        await commit(catalog, table, 3)
    assert (await reconcile.get_version(catalog, table, MAIN, 3)).version == 3
    await commit(catalog, table, 4)
    assert await listed(catalog, table) == [3, 4]


async def test_a_table_emptied_by_path_starts_again(catalog: Catalog) -> None:
    table = await declare(catalog)
    await commit(catalog, table, 1)
    await commit(catalog, table, 2)
    for file in (Path(table.location) / "_versions").iterdir():
        file.unlink()
    await commit(catalog, table, 1)
    assert await listed(catalog, table) == [1]


STEPS = st.lists(
    st.tuples(st.sampled_from(["catalog", "path", "retry", "clean", "list", "delete"])), max_size=12
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
async def test_random_histories_keep_every_version_once(
    catalog: Catalog, steps: list[tuple[str]]
) -> None:
    table = await declare(catalog, f"t{id(steps)}-{len(steps)}-{hash(tuple(steps)) & 0xFFFF}")
    newest, alive = 0, set[int]()
    for (step,) in steps:
        if step in ("catalog", "path"):
            newest += 1
            alive.add(newest)
            if step == "catalog":
                await commit(catalog, table, newest)
            else:
                commit_by_path(table.location, newest)
        elif step == "retry" and newest:
            with pytest.raises(ConcurrentCommit):
                await commit_other(catalog, table, newest)
        elif step == "clean" and len(alive) > 1:
            oldest = min(alive)
            alive.discard(oldest)
            (Path(table.location) / "_versions" / f"{2**64 - 1 - oldest}.manifest").unlink()
        elif step == "list":
            assert set(await listed(catalog, table)) == alive
        elif step == "delete" and len(alive) > 1:
            oldest = min(alive)
            await listed(catalog, table)
            one = VersionRange(oldest, oldest + 1)
            await commits.commit(catalog, [commits.DeleteVersions(table.identifier, MAIN, [one])])
            alive.discard(oldest)
    assert set(await listed(catalog, table)) == alive
    for version in range(1, newest + 1):
        if version in alive:
            assert (await reconcile.get_version(catalog, table, MAIN, version)).version == version
        else:
            with pytest.raises(VersionNotFound):
                await reconcile.get_version(catalog, table, MAIN, version)


async def commit_other(catalog: Catalog, table: Table, version: int) -> None:
    staged = stage(table.location, version, filler=99)
    operation = CreateVersion(table.identifier, NewVersion(MAIN, version, staged))
    await commits.commit(catalog, [operation])
