"""Spark uses branches, tags and earlier snapshots of Iceberg tables."""

from tests.engines.checks import Sql

OF_TIMED = {
    "first": "SELECT snapshot_id FROM shop.timed.snapshots ORDER BY committed_at LIMIT 1",
    "then": "SELECT committed_at FROM shop.timed.snapshots ORDER BY committed_at LIMIT 1",
}


def list_operations() -> list[Sql]:
    return [*_branches(), *_snapshots()]


def _branches() -> list[Sql]:
    return [
        Sql(
            "branches",
            (
                "ALTER TABLE items CREATE BRANCH trial RETAIN 7 DAYS",
                "INSERT INTO shop.items.branch_trial "
                "VALUES (4, 'four', 4.5, TIMESTAMP'2026-01-04 10:00:00', NULL)",
                "UPDATE shop.items.branch_trial SET name = 'ONE' WHERE id = 1",
            ),
            "SELECT count(*), min(name), (SELECT count(*) FROM items) "
            "FROM items VERSION AS OF 'trial'",
            [[4, "ONE", 3]],
        ),
        Sql(
            "fast forward",
            ("CALL lake.system.fast_forward('shop.items', 'main', 'trial')",),
            "SELECT id, name FROM items ORDER BY id",
            [[1, "ONE"], [2, "two"], [3, "three"], [4, "four"]],
        ),
        Sql(
            "tags",
            (
                "ALTER TABLE items CREATE TAG whole RETAIN 365 DAYS",
                "DELETE FROM items WHERE id = 4",
                "ALTER TABLE items DROP BRANCH trial",
            ),
            "SELECT count(*), (SELECT count(*) FROM items VERSION AS OF 'whole'), "
            "(SELECT count(*) FROM shop.items.refs) FROM items",
            [[3, 4, 2]],
        ),
        Sql(
            "write, audit, publish",
            (
                "CREATE TABLE audited (id INT) USING iceberg "
                "TBLPROPERTIES ('write.wap.enabled' = 'true')",
                "INSERT INTO audited VALUES (1)",
                "SET spark.wap.id = w1",
                "INSERT INTO audited VALUES (2)",
                "RESET spark.wap.id",
                "CALL lake.system.publish_changes('shop.audited', 'w1')",
            ),
            "SELECT count(*) FROM audited",
            [[2]],
        ),
    ]


def _snapshots() -> list[Sql]:
    return [
        Sql(
            "time travel by snapshot",
            (
                "CREATE TABLE timed USING iceberg AS SELECT 1 AS id",
                "INSERT INTO timed VALUES (2)",
            ),
            "SELECT count(*) FROM timed VERSION AS OF {first}",
            [[1]],
            OF_TIMED,
        ),
        Sql(
            "time travel by time",
            (),
            "SELECT count(*) FROM timed TIMESTAMP AS OF '{then}'",
            [[1]],
            OF_TIMED,
        ),
        Sql(
            "metadata tables",
            (),
            "SELECT operation FROM shop.timed.snapshots ORDER BY committed_at",
            [["append"], ["append"]],
        ),
        Sql(
            "changes between snapshots",
            (
                "CALL lake.system.create_changelog_view("
                "table => 'shop.timed', changelog_view => 'timed_changes')",
            ),
            "SELECT id, _change_type FROM timed_changes ORDER BY id",
            [[1, "INSERT"], [2, "INSERT"]],
        ),
        Sql(
            "roll back",
            ("CALL lake.system.rollback_to_snapshot('shop.timed', {first})",),
            "SELECT id FROM timed",
            [[1]],
            OF_TIMED,
        ),
    ]
