"""Spark keeps Iceberg tables in order, registers, renames and drops them."""

from tests.engines.checks import Sql

METADATA = "SELECT file FROM shop.kept.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
ONE = "SELECT count(*) FROM kept"
OLDER = "older_than => TIMESTAMP'2100-01-01 00:00:00'"


def list_operations() -> list[Sql]:
    return [*_files(), *_names()]


def _files() -> list[Sql]:
    return [
        Sql(
            "rewrite data files",
            (
                "CREATE TABLE kept (id INT, name STRING) USING iceberg",
                *[f"INSERT INTO kept VALUES ({n}, 'n{n}')" for n in range(6)],
                "CALL lake.system.rewrite_data_files("
                "table => 'shop.kept', options => map('min-input-files', '2'))",
            ),
            "SELECT (SELECT count(*) FROM shop.kept.files), (SELECT count(*) FROM kept)",
            [[1, 6]],
        ),
        Sql(
            "rewrite manifests",
            (
                *[f"INSERT INTO kept VALUES ({n}, 'n{n}')" for n in (6, 7)],
                "CALL lake.system.rewrite_manifests('shop.kept')",
            ),
            "SELECT (SELECT count(*) FROM shop.kept.manifests), (SELECT count(*) FROM kept)",
            [[1, 8]],
        ),
        Sql(
            "rewrite delete files",
            (
                "ALTER TABLE kept SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')",
                "DELETE FROM kept WHERE id IN (0, 1)",
                "CALL lake.system.rewrite_position_delete_files("
                "table => 'shop.kept', options => map('rewrite-all', 'true'))",
            ),
            ONE,
            [[6]],
        ),
        Sql(
            "statistics",
            (
                "CALL lake.system.compute_table_stats('shop.kept')",
                "CALL lake.system.compute_partition_stats('shop.items')",
            ),
            ONE,
            [[6]],
        ),
        Sql(
            "expire snapshots",
            (
                "CALL lake.system.expire_snapshots("
                f"table => 'shop.kept', {OLDER}, retain_last => 1)",
            ),
            "SELECT (SELECT count(*) FROM shop.kept.snapshots), (SELECT count(*) FROM kept)",
            [[1, 6]],
        ),
        Sql(
            "remove orphan files",
            ("CALL lake.system.remove_orphan_files(table => 'shop.kept', dry_run => true)",),
            ONE,
            [[6]],
        ),
    ]


def _names() -> list[Sql]:
    return [
        Sql(
            "register a table",
            (
                "SELECT '{file}'",
                "DROP TABLE kept",
                "CALL lake.system.register_table('shop.known', '{file}')",
            ),
            "SELECT count(*) FROM known",
            [[6]],
            {"file": METADATA},
        ),
        Sql(
            "rename a table",
            ("ALTER TABLE known RENAME TO shop.inner.held",),
            "SELECT count(*) FROM shop.inner.held",
            [[6]],
        ),
        Sql(
            "drop a table",
            ("CREATE TABLE kept (id INT) USING iceberg", "DROP TABLE kept"),
            "SHOW TABLES IN shop LIKE 'kept'",
            [],
        ),
        Sql(
            "drop a table and its files",
            ("DROP TABLE shop.inner.held PURGE",),
            "SHOW TABLES IN shop.inner",
            [],
        ),
        Sql(
            "drop a namespace",
            ("DROP NAMESPACE shop.inner",),
            "SHOW NAMESPACES IN shop",
            [],
        ),
        Sql(
            "drop a namespace and all in it",
            ("DROP NAMESPACE shop CASCADE",),
            limit="not empty",
            reason="Iceberg's catalog for Spark does not know CASCADE: drop what is in it first",
        ),
    ]
