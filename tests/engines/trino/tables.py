"""Trino makes Iceberg tables, changes their rows and their looks, and keeps them in order."""

from pathlib import Path

from tests.engines.checks import Sql

SNAPSHOTS = 'lake.shop."timed$snapshots"'
OF_TIMED = {
    "first": f"SELECT snapshot_id FROM {SNAPSHOTS} ORDER BY committed_at LIMIT 1",
    "then": f"SELECT to_iso8601(committed_at) FROM {SNAPSHOTS} ORDER BY committed_at LIMIT 1",
}
OF_KEPT = {
    "folder": "SELECT regexp_replace(\"$path\", '/data/[^/]+$') FROM lake.shop.kept LIMIT 1",
    "file": "SELECT regexp_extract(file, '[^/]+$') FROM lake.shop.\"kept$metadata_log_entries\" "
    "ORDER BY timestamp DESC LIMIT 1",
}


def list_operations(outside: Path) -> list[Sql]:
    return [*_made(outside), *_changed(), *_looks(), *_upkeep()]


def _made(outside: Path) -> list[Sql]:
    return [
        Sql(
            "namespaces",
            ("CREATE SCHEMA lake.shop", 'CREATE SCHEMA lake."shop.inner"'),
            "SHOW SCHEMAS FROM lake LIKE 'shop%'",
            [["shop"], ["shop.inner"]],
        ),
        Sql(
            "a location of the namespace's own",
            (
                f"CREATE SCHEMA lake.placed WITH (location = 'file://{outside}/placed')",
                "CREATE TABLE lake.placed.items AS SELECT 1 AS id",
            ),
            "SELECT count(*) FROM lake.placed.items "
            f"WHERE \"$path\" LIKE 'file://{outside}/placed/items-%'",
            [[1]],
        ),
        Sql(
            "create a table",
            (
                "CREATE TABLE lake.shop.items (id BIGINT NOT NULL COMMENT 'its number', "
                "name VARCHAR, price DECIMAL(9, 2), at TIMESTAMP(6), tags ARRAY(VARCHAR)) "
                "COMMENT 'things' WITH (partitioning = ARRAY['bucket(id, 4)', 'day(at)'], "
                "sorted_by = ARRAY['name'])",
            ),
            "SELECT count(*) FROM lake.shop.items",
            [[0]],
        ),
        Sql(
            "insert",
            (
                "INSERT INTO lake.shop.items VALUES "
                "(1, 'one', 1.50, TIMESTAMP '2026-01-01 10:00:00', ARRAY['a']), "
                "(2, 'two', 2.50, TIMESTAMP '2026-01-02 10:00:00', NULL), "
                "(3, 'three', 3.50, TIMESTAMP '2026-01-03 10:00:00', ARRAY[])",
            ),
            "SELECT id, name, price, tags FROM lake.shop.items WHERE id < 3 ORDER BY id",
            [[1, "one", "1.50", ["a"]], [2, "two", "2.50", None]],
        ),
        Sql(
            "create a table by a query",
            ("CREATE TABLE lake.shop.copies AS SELECT id, name FROM lake.shop.items",),
            "SELECT * FROM lake.shop.copies ORDER BY id",
            [[1, "one"], [2, "two"], [3, "three"]],
        ),
        Sql(
            "replace a table",
            (
                "CREATE OR REPLACE TABLE lake.shop.copies "
                "AS SELECT id + 10 AS id FROM lake.shop.items",
            ),
            "SELECT id FROM lake.shop.copies ORDER BY id",
            [[11], [12], [13]],
        ),
        Sql(
            "format version 1",
            (
                "CREATE TABLE lake.shop.old WITH (format_version = 1) AS SELECT 1 AS id",
                "ALTER TABLE lake.shop.old SET PROPERTIES format_version = 2",
                "DELETE FROM lake.shop.old WHERE id = 2",
            ),
            "SELECT * FROM lake.shop.old",
            [[1]],
        ),
        Sql(
            "format version 3",
            ("CREATE TABLE lake.shop.young (id INT) WITH (format_version = 3)",),
            limit="format_version must be between 1 and 2",
            reason="Trino 476 writes format versions 1 and 2",
        ),
    ]


def _changed() -> list[Sql]:
    query = "SELECT * FROM lake.shop.some ORDER BY id"
    return [
        Sql(
            "update (merge-on-read)",
            (
                "CREATE TABLE lake.shop.some AS SELECT id, name FROM lake.shop.items",
                "UPDATE lake.shop.some SET name = upper(name) WHERE id = 2",
            ),
            query,
            [[1, "one"], [2, "TWO"], [3, "three"]],
        ),
        Sql(
            "delete (merge-on-read)",
            ("DELETE FROM lake.shop.some WHERE name = 'three'",),
            query,
            [[1, "one"], [2, "TWO"]],
        ),
        Sql(
            "merge (merge-on-read)",
            (
                "MERGE INTO lake.shop.some AS t USING (VALUES 1, 2, 9) AS s (id) ON t.id = s.id "
                "WHEN MATCHED AND s.id = 1 THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET name = 'second' "
                "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')",
            ),
            query,
            [[2, "second"], [9, "new"]],
        ),
        Sql(
            "delete all rows",
            ("TRUNCATE TABLE lake.shop.some",),
            query,
            [],
        ),
    ]


def _looks() -> list[Sql]:
    return [
        Sql(
            "columns",
            (
                "CREATE TABLE lake.shop.grown (id INT, name VARCHAR, gone INT, place ROW(x INT))",
                "INSERT INTO lake.shop.grown VALUES (1, 'one', 1, ROW(1))",
                "ALTER TABLE lake.shop.grown ADD COLUMN more VARCHAR COMMENT 'later'",
                "ALTER TABLE lake.shop.grown ADD COLUMN place.y INT",
                "ALTER TABLE lake.shop.grown RENAME COLUMN name TO title",
                "ALTER TABLE lake.shop.grown ALTER COLUMN id SET DATA TYPE BIGINT",
                "ALTER TABLE lake.shop.grown DROP COLUMN gone",
                "INSERT INTO lake.shop.grown VALUES (5000000000, 'two', ROW(2, 3), 'm')",
            ),
            "SELECT id, more, title, place.x, place.y FROM lake.shop.grown ORDER BY id",
            [[1, None, "one", 1, None], [5000000000, "m", "two", 2, 3]],
        ),
        Sql(
            "partitions",
            (
                "ALTER TABLE lake.shop.grown SET PROPERTIES partitioning = ARRAY['bucket(id, 2)']",
                "INSERT INTO lake.shop.grown VALUES (3, 'three', NULL, 'm')",
            ),
            'SELECT count(*) FROM lake.shop."grown$files"',
            [[3]],
        ),
        Sql(
            "sort order",
            ("ALTER TABLE lake.shop.grown SET PROPERTIES sorted_by = ARRAY['title DESC']",),
            "SELECT count(*) FROM lake.shop.grown",
            [[3]],
        ),
        Sql(
            "properties",
            (
                "COMMENT ON TABLE lake.shop.grown IS 'it grew'",
                "COMMENT ON COLUMN lake.shop.grown.title IS 'its name'",
            ),
            "SELECT comment FROM system.metadata.table_comments "
            "WHERE catalog_name = 'lake' AND schema_name = 'shop' AND table_name = 'grown'",
            [["it grew"]],
        ),
        Sql(
            "time travel by snapshot",
            (
                "CREATE TABLE lake.shop.timed AS SELECT 1 AS id",
                "INSERT INTO lake.shop.timed VALUES 2",
            ),
            "SELECT count(*) FROM lake.shop.timed FOR VERSION AS OF {first}",
            [[1]],
            OF_TIMED,
        ),
        Sql(
            "time travel by time",
            (),
            "SELECT count(*) FROM lake.shop.timed "
            "FOR TIMESTAMP AS OF from_iso8601_timestamp_nanos('{then}')",
            [[1]],
            OF_TIMED,
        ),
        Sql(
            "metadata tables",
            (),
            f"SELECT operation FROM {SNAPSHOTS} ORDER BY committed_at",
            [["append"], ["append"]],
        ),
        Sql(
            "roll back",
            ("ALTER TABLE lake.shop.timed EXECUTE rollback_to_snapshot({first})",),
            "SELECT id FROM lake.shop.timed",
            [[1]],
            OF_TIMED,
        ),
    ]


def _upkeep() -> list[Sql]:
    count = "SELECT count(*) FROM lake.shop.kept"
    return [
        Sql(
            "rewrite data files",
            (
                "CREATE TABLE lake.shop.kept (id INT, name VARCHAR)",
                *[f"INSERT INTO lake.shop.kept VALUES ({n}, 'n{n}')" for n in range(4)],
                "ALTER TABLE lake.shop.kept EXECUTE optimize",
            ),
            'SELECT count(*), sum(record_count) FROM lake.shop."kept$files"',
            [[1, 4]],
        ),
        Sql(
            "rewrite manifests",
            ("ALTER TABLE lake.shop.kept EXECUTE optimize_manifests",),
            count,
            [[4]],
        ),
        Sql(
            "statistics",
            ("ANALYZE lake.shop.kept",),
            count,
            [[4]],
        ),
        Sql(
            "expire snapshots",
            (
                "SET SESSION lake.expire_snapshots_min_retention = '0s'",
                "ALTER TABLE lake.shop.kept EXECUTE expire_snapshots(retention_threshold => '0s')",
            ),
            'SELECT count(*) FROM lake.shop."kept$snapshots"',
            [[1]],
        ),
        Sql(
            "remove orphan files",
            ("ALTER TABLE lake.shop.kept EXECUTE remove_orphan_files",),
            count,
            [[4]],
        ),
        Sql(
            "register a table",
            (
                "SELECT '{folder}', '{file}'",
                "CALL lake.system.unregister_table('shop', 'kept')",
                # Without the file Trino looks for one, and tells it with a scheme of its own.
                "CALL lake.system.register_table('shop', 'kept', '{folder}', '{file}')",
            ),
            count,
            [[4]],
            OF_KEPT,
        ),
        Sql(
            "rename a table",
            ('ALTER TABLE lake.shop.kept RENAME TO lake."shop.inner".held',),
            'SELECT count(*) FROM lake."shop.inner".held',
            [[4]],
        ),
        Sql(
            "drop a table",
            ('DROP TABLE lake."shop.inner".held',),
            'SHOW TABLES FROM lake."shop.inner"',
            [],
        ),
        Sql(
            "drop a namespace",
            ('DROP SCHEMA lake."shop.inner"',),
            "SHOW SCHEMAS FROM lake LIKE 'shop%'",
            [["shop"]],
        ),
    ]
