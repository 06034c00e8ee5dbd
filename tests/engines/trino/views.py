"""Trino makes Iceberg views over Iceberg tables, and drops all that it made."""

from tests.engines.checks import Sql


def list_operations() -> list[Sql]:
    return [
        Sql(
            "create a view",
            (
                "CREATE VIEW lake.shop.cheap COMMENT 'below three' SECURITY DEFINER "
                "AS SELECT id, name FROM lake.shop.items WHERE price < 3",
            ),
            "SELECT * FROM lake.shop.cheap ORDER BY id",
            [[1, "one"], [2, "two"]],
        ),
        Sql(
            "a view of a view, joined",
            (
                "CREATE VIEW lake.shop.cheaper AS SELECT c.id, i.price FROM lake.shop.cheap AS c "
                "JOIN lake.shop.items AS i ON c.id = i.id",
            ),
            "SELECT sum(price) FROM lake.shop.cheaper",
            [["4.00"]],
        ),
        Sql(
            "replace a view",
            (
                "CREATE OR REPLACE VIEW lake.shop.cheap SECURITY INVOKER "
                "AS SELECT id, name FROM lake.shop.items WHERE price < 3",
                "CREATE OR REPLACE VIEW lake.shop.cheap AS SELECT id FROM lake.shop.items "
                "WHERE id = 1",
            ),
            "SELECT * FROM lake.shop.cheap",
            [[1]],
        ),
        Sql(
            "properties of a view",
            (
                "COMMENT ON VIEW lake.shop.cheap IS 'one'",
                "COMMENT ON COLUMN lake.shop.cheap.id IS 'its number'",
            ),
            "SELECT table_type FROM lake.information_schema.tables "
            "WHERE table_schema = 'shop' AND table_name = 'cheap'",
            [["VIEW"]],
        ),
        Sql(
            "rename a view",
            ("DROP VIEW lake.shop.cheaper", "ALTER VIEW lake.shop.cheap RENAME TO lake.shop.dear"),
            "SELECT * FROM lake.shop.dear",
            [[1]],
        ),
        Sql(
            "drop a view",
            ("DROP VIEW lake.shop.dear",),
            "SHOW TABLES FROM lake.shop LIKE 'dear'",
            [],
        ),
        Sql(
            "drop a namespace and all in it",
            ("DROP SCHEMA lake.shop CASCADE",),
            "SHOW SCHEMAS FROM lake LIKE 'shop%'",
            [],
        ),
    ]
