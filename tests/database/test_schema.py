"""Migrations: fresh equals migrated, and what does not belong to this release is refused."""

import pytest

from penstock.database import schema
from penstock.database.connect import connect, open_catalog
from penstock.database.interface import Database, Transaction
from penstock.errors import DatabaseMismatch
from tests.harness.processes import servers
from tests.harness.processes.databases import sqlite_url

pytestmark = pytest.mark.anyio

COLUMNS = {
    "sqlite": 'SELECT m.type, m.tbl_name, m.name, p.name, p.type, p."notnull", p.dflt_value, p.pk '
    "FROM sqlite_schema m LEFT JOIN pragma_table_info(m.name) p ORDER BY 1, 2, 3, p.cid",
    "postgresql": "SELECT table_name, column_name, ordinal_position, data_type, collation_name, "
    "is_nullable, column_default FROM information_schema.columns "
    "WHERE table_schema = current_schema() ORDER BY 1, 3",
}
KEYS = {
    "sqlite": "SELECT m.tbl_name, i.seqno, i.name "
    "FROM sqlite_schema m, pragma_index_info(m.name) i "
    "WHERE m.type = 'index' ORDER BY m.name, i.seqno",
    "postgresql": "SELECT tablename, indexname, indexdef FROM pg_indexes "
    "WHERE schemaname = current_schema() ORDER BY 1, 2",
}
ROWS = ("SELECT path, parent, name, properties FROM namespaces", "SELECT name FROM locks")


async def describe_schema(database: Database) -> list[list[tuple[object, ...]]]:
    queries = (COLUMNS[database.kind], KEYS[database.kind], *ROWS)
    return [[tuple(row) for row in await database.fetch(query)] for query in queries]


async def migrate_step_by_step(
    tx: Transaction, kind: str, last: int = 9999, first: int = 1
) -> None:
    for statement in schema.PRELUDE_POSTGRES if kind == "postgresql" and first == 1 else ():
        await tx.fetch(statement)
    if first == 1:
        await tx.fetch(schema.LEDGER)
    for migration in schema.list_migrations():
        if first <= migration.number <= last:
            await schema.run_script(tx, migration.text)


async def run_all(tx: Transaction, statements: tuple[str, ...]) -> None:
    for statement in statements:
        await tx.fetch(statement)


# A view `m` of the table `t` and of two Iceberg views, as they were before migration 8.
OLD_VIEWS = (
    *(
        f"INSERT INTO objects VALUES ('{id}', '', '{id}', '{kind}', '{{}}', 0)"
        for id, kind in (("t", "table"), ("m", "table"), ("i", "view"), ("j", "view"))
    ),
    "INSERT INTO tables VALUES ('t', 'a', 1), ('m', 'b', 1)",
    "INSERT INTO views VALUES ('i', 'c', 'c', 'now', '{}'), ('j', 'd', 'd', 'now', '{}')",
    "INSERT INTO materialized_views VALUES "
    "('m', 'query', '{}', '{}', '[]', 0, NULL, NULL, NULL, 0)",
    "INSERT INTO view_sources VALUES ('m', 't', 't', NULL), ('m', 'i', 'i', 'now'), "
    "('m', 'j', 'j', 'then')",
)


async def set_ledger(tx: Transaction, number: int, checksum: str) -> None:
    await tx.fetch("DELETE FROM migrations WHERE number = $1", number)
    await tx.fetch(
        "INSERT INTO migrations (number, name, checksum, applied_at) VALUES ($1, 'x', $2, 0)",
        number,
        checksum,
    )


async def test_a_fresh_schema_equals_a_migrated_one(
    database_url: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fresh = await open_catalog(database_url)
    if fresh.kind == "sqlite":
        other_url = sqlite_url(tmp_path_factory.mktemp("migrated"))
    else:
        other_url = await _other_postgres(database_url)
    migrated = await connect(other_url)
    await migrated.write(migrate_step_by_step, migrated.kind)
    assert await describe_schema(fresh) == await describe_schema(migrated)
    await fresh.close()
    await migrated.close()


@pytest.mark.parametrize(
    ("grants", "author"), [((), "[]"), (("INSERT INTO grants VALUES ('a','b','','c',0,'')",), "")]
)
async def test_what_views_read_before_consent_was_kept_counts_as_consented_to(
    database_url: str, grants: tuple[str, ...], author: str
) -> None:
    database = await connect(database_url)
    await database.write(migrate_step_by_step, database.kind, 7)
    await database.write(run_all, (*OLD_VIEWS, *grants))
    await database.write(migrate_step_by_step, database.kind, 8, 8)
    views = await database.fetch("SELECT edited_in, edited_by FROM views ORDER BY id")
    assert [tuple(row) for row in views] == [("now", author)] * 2
    rows = await database.fetch("SELECT name, edition FROM view_sources ORDER BY name")
    # The second Iceberg view was replaced since the last refresh.
    assert dict(map(tuple, rows)) == {"i": "now", "j": "then", "t": ""}
    await database.close()


async def test_the_definition_that_a_view_has_begins_its_history(database_url: str) -> None:
    database = await connect(database_url)
    await database.write(migrate_step_by_step, database.kind, 7)
    await database.write(run_all, OLD_VIEWS)
    await database.write(migrate_step_by_step, database.kind, 9999, 8)
    rows = await database.fetch("SELECT view_id, edition, request, version FROM view_definitions")
    assert [tuple(row) for row in rows] == [("m", 0, "{}", 1)]
    await database.close()


async def test_views_of_iceberg_views_are_stale_until_the_names_in_these_are_recorded(
    database_url: str,
) -> None:
    database = await connect(database_url)
    await database.write(migrate_step_by_step, database.kind, 7)
    await database.write(run_all, OLD_VIEWS)
    await database.write(migrate_step_by_step, database.kind, 9999, 8)
    rows = await database.fetch(
        "SELECT name, reader, source_id, state, edition FROM view_sources ORDER BY name"
    )
    assert [tuple(row) for row in rows] == [
        ("i", "", "i", None, "now"),
        ("j", "", "j", None, "then"),
        ("t", "", "t", None, ""),
    ]
    await database.close()


async def test_opening_twice_finds_nothing_to_do(database_url: str) -> None:
    await (await open_catalog(database_url)).close()
    database = await open_catalog(database_url)
    status = await schema.get_status(database)
    assert status.is_current
    assert not status.is_fresh
    await database.close()


async def test_a_database_newer_than_the_code_is_refused(database_url: str) -> None:
    database = await open_catalog(database_url)
    await database.write(set_ledger, 9999, "of the future")
    await database.close()
    with pytest.raises(DatabaseMismatch, match="schema 9999") as refused:
        await open_catalog(database_url)
    assert "newer Penstock" in refused.value.detail


async def test_a_database_made_by_other_text_is_refused(database_url: str) -> None:
    database = await open_catalog(database_url)
    await database.write(set_ledger, 1, "other text")
    await database.close()
    with pytest.raises(DatabaseMismatch, match="migration 1"):
        await open_catalog(database_url)


async def test_the_schema_is_upgraded_by_many_servers_at_once(postgres: str) -> None:
    import asyncio

    url = await _other_postgres(postgres)
    opened = await asyncio.gather(*(open_catalog(url, pool_size=2) for _ in range(5)))
    rows = await opened[0].fetch("SELECT number FROM migrations")
    assert len(rows) == len(schema.list_migrations())
    for database in opened:
        await database.close()


def test_two_servers_share_one_postgresql(
    postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from tests.harness.processes.databases import new_postgres_database

    url, data = new_postgres_database(postgres), tmp_path_factory.mktemp("data")
    with (
        servers.running(data, database=url) as first,
        servers.running(data, database=url) as second,
    ):
        first.post("/v1/namespace/a/create").raise_for_status()
        assert second.post("/v1/namespace/a/create").json()["code"] == 2
        assert second.post("/v1/namespace/a/exists").status_code == 200


async def _other_postgres(url: str) -> str:
    import asyncio

    from tests.harness.processes.databases import new_postgres_database

    return await asyncio.to_thread(new_postgres_database, url)


async def test_a_watermark_from_before_is_the_first_of_a_list(database_url: str) -> None:
    database = await connect(database_url)
    await database.write(_migrate_with_a_watermark, database.kind)
    row = await database.fetch_one("SELECT watermarks, function, auto_backfill FROM columns")
    assert row is not None
    assert tuple(row) == ('[{"version":5}]', None, 0)
    await database.close()


async def _migrate_with_a_watermark(tx: Transaction, kind: str) -> None:
    for statement in schema.PRELUDE_POSTGRES if kind == "postgresql" else ():
        await tx.fetch(statement)
    for migration in schema.list_migrations():
        if migration.name == "functions":
            for statement in (
                "INSERT INTO objects VALUES ('t', '', 't', 'table', '{}', 0)",
                "INSERT INTO tables VALUES ('t', '/t', 0)",
                "INSERT INTO columns VALUES ('t', '', 'c', 'b', 'id', '[]', '{}', "
                "'{\"version\":5}', 0)",
            ):
                await tx.fetch(statement)
        await schema.run_script(tx, migration.text)


async def test_a_function_from_before_counts_as_declared(database_url: str) -> None:
    database = await connect(database_url)
    await database.write(_migrate_with_a_function, database.kind)
    rows = await database.fetch("SELECT table_id, binding, function, manifest FROM declarations")
    assert [tuple(row) for row in rows] == [("t", "b", '{"name":"f"}', None)]
    await database.close()


async def _migrate_with_a_function(tx: Transaction, kind: str) -> None:
    for statement in schema.PRELUDE_POSTGRES if kind == "postgresql" else ():
        await tx.fetch(statement)
    for migration in schema.list_migrations():
        if migration.name == "declarations":
            for statement in (
                "INSERT INTO objects VALUES ('t', '', 't', 'table', '{}', 0)",
                "INSERT INTO tables VALUES ('t', '/t', 0)",
                "INSERT INTO columns VALUES ('t', '', 'c', 'b', '', '[]', '{}', NULL, 0, "
                '\'{"name":"f"}\', 0)',
                "INSERT INTO columns VALUES ('t', '', 'd', 'e', 'id', '[]', '{}', NULL, 0, NULL, "
                "0)",
            ):
                await tx.fetch(statement)
        await schema.run_script(tx, migration.text)


# Jobs as they were before migration 13: a backfill, and a refresh with a view on the way.
TABLE, VIEW, OTHER = ("t" * 32, "m" * 32, "o" * 32)
OLD_JOBS = (
    *(
        "INSERT INTO jobs (id, number, kind, object, target, slot, spec, spec_hash, cluster, "
        "properties, state, attempt, max_attempts, runner, ready_at, lease_until, "
        "cancel_requested, progress, result, error, retryable, last_report, created_at) "
        f"VALUES ('{id}', {number}, 'k', 'o', 't', '{slot}', '{{}}', 'h', 'local', '{{}}', "
        "'QUEUED', 0, 3, '', 0, 0, 0, '{}', '{}', '', 0, '', 0)"
        for id, number, slot in (("a", 1, f"{TABLE}/dev/c"), ("b", 2, f"{VIEW}//refresh"))
    ),
    f"INSERT INTO job_slots VALUES ('b', '{OTHER}//refresh')",
)


async def test_jobs_from_before_name_the_table_that_they_work_on(database_url: str) -> None:
    database = await connect(database_url)
    await database.write(migrate_step_by_step, database.kind, 12)
    await database.write(run_all, OLD_JOBS)
    await database.write(migrate_step_by_step, database.kind, 13, 13)
    rows = await database.fetch("SELECT object_id FROM jobs ORDER BY number")
    assert [row[0] for row in rows] == [TABLE, VIEW]
    rows = await database.fetch("SELECT object_id FROM job_slots")
    assert [row[0] for row in rows] == [OTHER]
    await database.close()
