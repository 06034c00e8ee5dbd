"""What Spark is asked to do with Lance tables through the catalog."""

from tests.engines.checks import Sql

ROWS = "SELECT id, name FROM shop.items ORDER BY id"


def list_operations() -> list[Sql]:
    return [*_rows(), *_looks(), *_upkeep()]


def _rows() -> list[Sql]:
    return [
        Sql("namespaces", ("CREATE NAMESPACE shop",), "SHOW NAMESPACES", [["shop"]]),
        Sql(
            "create a table",
            ("CREATE TABLE shop.items (id BIGINT NOT NULL, name STRING, price DOUBLE)",),
            "SELECT count(*) FROM shop.items",
            [[0]],
        ),
        Sql(
            "insert",
            (
                "INSERT INTO shop.items VALUES (1, 'one', 1.5), (2, 'two', 2.5)",
                "INSERT INTO shop.items SELECT 3, 'three', 3.5",
            ),
            ROWS,
            [[1, "one"], [2, "two"], [3, "three"]],
        ),
        Sql(
            "create a table by a query",
            ("CREATE TABLE shop.copies AS SELECT id, name FROM shop.items",),
            "SELECT * FROM shop.copies ORDER BY id",
            [[1, "one"], [2, "two"], [3, "three"]],
        ),
        Sql(
            "replace a table",
            ("CREATE OR REPLACE TABLE shop.copies AS SELECT id + 10 AS id FROM shop.items",),
            "SELECT id FROM shop.copies ORDER BY id",
            [[11], [12], [13]],
        ),
        Sql(
            "overwrite",
            ("INSERT OVERWRITE shop.copies VALUES (1), (2)",),
            "SELECT id FROM shop.copies ORDER BY id",
            [[1], [2]],
        ),
        Sql(
            "update",
            ("UPDATE shop.items SET name = upper(name) WHERE id = 2",),
            ROWS,
            [[1, "one"], [2, "TWO"], [3, "three"]],
        ),
        Sql("delete", ("DELETE FROM shop.items WHERE id = 3",), ROWS, [[1, "one"], [2, "TWO"]]),
        Sql(
            "merge",
            (
                "MERGE INTO shop.items AS t USING (SELECT explode(array(1, 2, 9)) AS id) AS s "
                "ON t.id = s.id WHEN MATCHED AND s.id = 1 THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET name = 'second' "
                "WHEN NOT MATCHED THEN INSERT (id, name, price) VALUES (s.id, 'new', 0)",
            ),
            ROWS,
            [[2, "second"], [9, "new"]],
        ),
    ]


def _looks() -> list[Sql]:
    return [
        Sql(
            "time travel by snapshot",
            (
                "CREATE TABLE shop.timed AS SELECT 1 AS id",
                "INSERT INTO shop.timed VALUES (2)",
            ),
            "SELECT * FROM shop.timed VERSION AS OF 1",
            [[1]],
        ),
        Sql(
            "columns",
            ("ALTER TABLE shop.items ADD COLUMNS (more STRING)",),
            limit="Table alteration is not supported",
            reason="lance-spark has no ALTER TABLE for columns but ADD COLUMNS … FROM a view",
        ),
        Sql(
            "columns by a query",
            (
                "CREATE TEMPORARY VIEW twice AS "
                "SELECT _rowaddr, _fragid, id * 2 AS twice FROM shop.items",
                "ALTER TABLE shop.items ADD COLUMNS twice FROM twice",
            ),
            "SELECT id, twice FROM shop.items ORDER BY id",
            [[2, 4], [9, 18]],
        ),
        Sql(
            "vectors",
            (
                "CREATE TABLE shop.vectors (id INT NOT NULL, v ARRAY<FLOAT> NOT NULL) USING lance "
                "TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '2')",
                "INSERT INTO shop.vectors VALUES (1, array(float(0.5), float(1.5)))",
            ),
            "SELECT v FROM shop.vectors",
            [[[0.5, 1.5]]],
        ),
    ]


def _upkeep() -> list[Sql]:
    return [
        Sql(
            "indexes",
            ("ALTER TABLE shop.items CREATE INDEX by_id USING btree (id)",),
            "SELECT name FROM shop.items WHERE id = 9",
            [["new"]],
        ),
        Sql("rewrite data files", ("OPTIMIZE shop.items",), ROWS, [[2, "second"], [9, "new"]]),
        Sql(
            "expire snapshots",
            ("VACUUM shop.items WITH (before_version = 3)",),
            ROWS,
            [[2, "second"], [9, "new"]],
        ),
        Sql(
            "rename a table",
            ("ALTER TABLE shop.timed RENAME TO shop.moments",),
            "SELECT count(*) FROM shop.moments",
            [[2]],
            limit="Table renaming is not supported",
            reason="lance-spark renames no tables",
        ),
        Sql("drop a table", ("DROP TABLE shop.copies",), "SHOW TABLES IN shop LIKE 'copies'", []),
        Sql(
            "drop a namespace and all in it",
            ("DROP NAMESPACE shop CASCADE",),
            "SHOW NAMESPACES",
            [],
        ),
    ]
