"""Spark makes Iceberg tables, fills them, and changes what they look like."""

from pathlib import Path

from tests.engines.checks import Sql


def list_operations(outside: Path) -> list[Sql]:
    """All of them; a table with a location of its own lies in that folder."""
    return [*_made(), *_again(outside), *_looks()]


def _made() -> list[Sql]:
    return [
        Sql(
            "namespaces",
            (
                "CREATE NAMESPACE shop COMMENT 'all there is'",
                "CREATE NAMESPACE shop.inner",
                "ALTER NAMESPACE shop SET PROPERTIES ('team' = 'red')",
                "USE shop",
            ),
            "SHOW NAMESPACES IN shop",
            [["shop.inner"]],
        ),
        Sql(
            "create a table",
            (
                "CREATE TABLE items (id BIGINT NOT NULL COMMENT 'its number', name STRING, "
                "price DECIMAL(9, 2), at TIMESTAMP, tags ARRAY<STRING>) USING iceberg "
                "PARTITIONED BY (bucket(4, id), days(at)) TBLPROPERTIES ('made.by' = 'spark')",
            ),
            "SELECT count(*) FROM items",
            [[0]],
        ),
        Sql(
            "insert",
            (
                "INSERT INTO items VALUES "
                "(1, 'one', 1.50, TIMESTAMP'2026-01-01 10:00:00', array('a')), "
                "(2, 'two', 2.50, TIMESTAMP'2026-01-02 10:00:00', NULL)",
                "INSERT INTO items SELECT 3, 'three', 3.5, TIMESTAMP'2026-01-03 10:00:00', array()",
            ),
            "SELECT id, name, price, at, tags FROM items WHERE id < 3 ORDER BY id",
            [
                [1, "one", "1.50", "2026-01-01 10:00:00", ["a"]],
                [2, "two", "2.50", "2026-01-02 10:00:00", None],
            ],
        ),
        Sql(
            "create a table by a query",
            ("CREATE TABLE copies USING iceberg AS SELECT id, name FROM items",),
            "SELECT * FROM copies ORDER BY id",
            [[1, "one"], [2, "two"], [3, "three"]],
        ),
    ]


def _again(outside: Path) -> list[Sql]:
    return [
        Sql(
            "replace a table",
            (
                "CREATE OR REPLACE TABLE copies USING iceberg PARTITIONED BY (name) "
                "AS SELECT id, name FROM items WHERE id = 1",
                "REPLACE TABLE copies USING iceberg AS SELECT id + 10 AS id, name FROM items",
            ),
            "SELECT id FROM copies ORDER BY id",
            [[11], [12], [13]],
        ),
        Sql(
            "overwrite",
            (
                "INSERT OVERWRITE copies VALUES (1, 'x'), (2, 'y')",
                "INSERT INTO copies REPLACE WHERE id = 2 VALUES (2, 'z')",
            ),
            "SELECT * FROM copies ORDER BY id",
            [[1, "x"], [2, "z"]],
        ),
        Sql(
            "a location of its own",
            (
                f"CREATE TABLE placed (id INT) USING iceberg LOCATION 'file:{outside}/placed'",
                "INSERT INTO placed VALUES (1)",
            ),
            f"SELECT count(*) FROM shop.placed.files WHERE file_path LIKE '%{outside}/placed/%'",
            [[1]],
        ),
        Sql(
            "format version 1",
            (
                "CREATE TABLE old USING iceberg TBLPROPERTIES ('format-version' = '1') "
                "AS SELECT 1 AS id",
                "ALTER TABLE old SET TBLPROPERTIES ('format-version' = '2')",
                "DELETE FROM old WHERE id = 2",
            ),
            "SELECT * FROM old",
            [[1]],
        ),
        Sql(
            "format version 3",
            (
                "CREATE TABLE young (id INT, name STRING) USING iceberg TBLPROPERTIES "
                "('format-version' = '3', 'write.update.mode' = 'merge-on-read')",
                "INSERT INTO young VALUES (1, 'one'), (2, 'two')",
                "UPDATE young SET name = 'TWO' WHERE id = 2",
            ),
            "SELECT id, name, _row_id, _last_updated_sequence_number FROM young ORDER BY id",
            [[1, "one", 0, 1], [2, "TWO", 1, 2]],
        ),
    ]


def _looks() -> list[Sql]:
    return [
        Sql(
            "columns",
            (
                "CREATE TABLE grown (id INT, name STRING, gone INT, place STRUCT<x: INT>) "
                "USING iceberg",
                "INSERT INTO grown VALUES (1, 'one', 1, named_struct('x', 1))",
                "ALTER TABLE grown ADD COLUMNS (more STRING COMMENT 'later' AFTER id, place.y INT)",
                "ALTER TABLE grown RENAME COLUMN name TO title",
                "ALTER TABLE grown ALTER COLUMN id TYPE BIGINT",
                "ALTER TABLE grown DROP COLUMN gone",
                "INSERT INTO grown VALUES (5000000000, 'm', 'two', named_struct('x', 2, 'y', 3))",
            ),
            "SELECT id, more, title, place.x, place.y FROM grown ORDER BY id",
            [[1, None, "one", 1, None], [5000000000, "m", "two", 2, 3]],
        ),
        Sql(
            "partitions",
            (
                "ALTER TABLE grown ADD PARTITION FIELD truncate(1, title) AS first",
                "INSERT INTO grown VALUES (3, 'm', 'three', NULL)",
                "ALTER TABLE grown REPLACE PARTITION FIELD first WITH bucket(2, id)",
                "INSERT INTO grown VALUES (4, 'm', 'four', NULL)",
                "ALTER TABLE grown DROP PARTITION FIELD bucket(2, id)",
            ),
            "SELECT count(*), count(DISTINCT spec_id) FROM shop.grown.files",
            [[4, 3]],
        ),
        Sql(
            "sort order",
            ("ALTER TABLE grown WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY title DESC",),
            "SHOW TBLPROPERTIES grown ('sort-order')",
            [["sort-order", "title DESC NULLS LAST"]],
        ),
        Sql(
            "properties",
            (
                "ALTER TABLE grown SET TBLPROPERTIES ('a' = '1', 'b' = '2')",
                "ALTER TABLE grown UNSET TBLPROPERTIES ('a')",
            ),
            "SHOW TBLPROPERTIES grown ('b')",
            [["b", "2"]],
        ),
    ]
