"""Spark updates, deletes and merges rows, in both of the ways that Iceberg has."""

from tests.engines.checks import Rows, Sql

MODES = ("copy-on-write", "merge-on-read")


def list_operations() -> list[Sql]:
    return [each for mode in MODES for each in _changes(mode)]


def _changes(mode: str) -> list[Sql]:
    name = f"some_{mode.replace('-', '_')}"
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("update", "delete", "merge"))
    query = f"SELECT * FROM {name} ORDER BY id"
    updated: Rows = [[1, "one"], [2, "TWO"], [3, "three"]]
    return [
        Sql(
            f"update ({mode})",
            (
                f"CREATE TABLE {name} USING iceberg TBLPROPERTIES ({modes}) "
                "AS SELECT id, name FROM items",
                f"UPDATE {name} SET name = upper(name) WHERE id = 2",
            ),
            query,
            updated,
        ),
        Sql(f"delete ({mode})", (f"DELETE FROM {name} WHERE id = 3",), query, updated[:2]),
        Sql(
            f"merge ({mode})",
            (
                f"MERGE INTO {name} AS t USING (SELECT explode(array(1, 2, 9)) AS id) AS s "
                "ON t.id = s.id WHEN MATCHED AND s.id = 1 THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET name = 'second' "
                "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')",
            ),
            query,
            [[2, "second"], [9, "new"]],
        ),
    ]
