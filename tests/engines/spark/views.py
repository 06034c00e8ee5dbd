"""Spark makes Iceberg views over Iceberg tables."""

from tests.engines.checks import Sql


def list_operations() -> list[Sql]:
    return [
        Sql(
            "create a view",
            (
                "CREATE VIEW cheap (id COMMENT 'its number', name) COMMENT 'below three' "
                "TBLPROPERTIES ('a' = '1') AS SELECT id, name FROM items WHERE price < 3",
            ),
            "SELECT * FROM cheap ORDER BY id",
            [[1, "ONE"], [2, "two"]],
        ),
        Sql(
            "a view of a view, joined",
            (
                "CREATE VIEW cheaper AS SELECT c.id, i.price FROM cheap AS c "
                "JOIN items AS i ON c.id = i.id",
            ),
            "SELECT sum(price) FROM cheaper",
            [["4.00"]],
        ),
        Sql(
            "replace a view",
            ("CREATE OR REPLACE VIEW cheap AS SELECT id FROM items WHERE id = 1",),
            "SELECT * FROM cheap",
            [[1]],
        ),
        Sql(
            "properties of a view",
            (
                "ALTER VIEW cheap SET TBLPROPERTIES ('b' = '2')",
                "ALTER VIEW cheap UNSET TBLPROPERTIES ('b')",
            ),
            "SHOW VIEWS IN shop LIKE 'cheap'",
            [["shop", "cheap", False]],
        ),
        Sql(
            "alter a view's query",
            ("ALTER VIEW cheap AS SELECT 1 AS id",),
            limit="not supported",
            reason="Iceberg's catalog for Spark has no ALTER VIEW … AS: CREATE OR REPLACE VIEW",
        ),
        Sql(
            "rename a view",
            ("DROP VIEW cheaper", "ALTER VIEW cheap RENAME TO dear"),
            "SELECT * FROM dear",
            [[1]],
        ),
        Sql("drop a view", ("DROP VIEW dear",), "SHOW VIEWS IN shop LIKE 'dear'", []),
    ]
