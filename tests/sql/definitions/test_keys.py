"""Which queries are followed by keys, by which, and how Spark gets their text."""

import pyarrow as pa
import pytest

from penstock.model.views import KeyPart
from tests.harness.views.definitions import OTHER, fields, make

IDS = ("__source_row_id", "__source_row_id_2", "__source_row_id_3")
RANKED = pa.schema([("name", pa.string()), ("r", pa.int32())])
# By the row ids of the tables of which each row has exactly one.
BY_ROW_IDS = [
    ("SELECT d.id, o.label FROM docs d JOIN other o ON d.id = o.id", 2),
    ("SELECT d.id, o.label FROM docs d JOIN other o USING (id)", 2),
    ("SELECT label FROM docs NATURAL JOIN other", 2),
    ("SELECT d.id FROM docs d, other o WHERE o.id = d.id AND o.label > 'a'", 2),
    ("SELECT d.id FROM other o CROSS JOIN docs d WHERE (o.id = d.id)", 2),
    ("SELECT d.id, o.label FROM docs d LEFT JOIN other o ON d.id = o.id AND o.id > d.price", 1),
    ("SELECT d.id FROM docs d JOIN other o ON d.id = o.id JOIN other p ON p.label = o.label", 3),
    ("SELECT d.id FROM docs d JOIN docs e ON d.id = e.id LEFT JOIN other o ON o.id = e.id", 2),
    ("SELECT d.id FROM docs d LEFT SEMI JOIN other o ON d.id = o.id", 1),
    ("SELECT d.id FROM docs d LEFT ANTI JOIN other o ON d.id = o.id", 1),
    ("SELECT id FROM docs WHERE id IN (SELECT id FROM other)", 1),
    ("SELECT id FROM docs WHERE id IN (SELECT id FROM other GROUP BY id HAVING count(*) > 1)", 1),
    ("SELECT id FROM docs d WHERE EXISTS (SELECT 1 FROM other o WHERE o.id = d.id)", 1),
    ("SELECT id FROM docs d WHERE NOT EXISTS (SELECT 1 FROM other o WHERE o.id = d.id)", 1),
    ("SELECT id FROM docs d WHERE id > 1 OR EXISTS (SELECT 1 FROM other o WHERE o.id = d.id)", 1),
    ("SELECT id FROM docs d WHERE price > (SELECT count(*) FROM other o WHERE o.id = d.id)", 1),
    ("SELECT id FROM docs UNION ALL SELECT id FROM other", 2),
    ("SELECT id FROM docs UNION ALL SELECT o.id FROM other o JOIN docs d ON o.id = d.id", 3),
]
BY_OUTPUTS = [
    ("SELECT o.label, count(*) AS n FROM docs d JOIN other o ON d.id = o.id GROUP BY o.label",
     "label"),
    ("SELECT d.id, o.label, max(d.price) AS m FROM docs d LEFT JOIN other o ON d.id = o.id "
     "GROUP BY d.id, o.label, d.price + 1", "id label"),
    ("SELECT name, count(*) AS n FROM docs GROUP BY name HAVING count(*) > 1", "name"),
    ("SELECT DISTINCT id, upper(name) AS n FROM docs", "id"),
    ("SELECT name, rank() OVER (PARTITION BY name ORDER BY id) AS r FROM docs", "name"),
    ("SELECT name, CAST(count(*) OVER (PARTITION BY name, id) + "
     "sum(id) OVER (PARTITION BY name ORDER BY id) AS INT) AS r FROM docs", "name"),
    ("SELECT name, first_value(id) OVER (PARTITION BY name ORDER BY id) AS r FROM docs", "name"),
    ("SELECT id FROM docs UNION SELECT id FROM other", "id"),
    ("SELECT id, name FROM docs EXCEPT SELECT id, label FROM other", "id name"),
    ("SELECT id FROM docs INTERSECT SELECT id FROM other", "id"),
    ("SELECT id, id AS n FROM docs UNION ALL SELECT id, count(*) AS n FROM other GROUP BY id",
     "id"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "count"), BY_ROW_IDS)
def test_joined_rows_are_told_apart_by_row_ids(sql: str, count: int) -> None:
    made = make(sql)
    assert (made.shape, made.obstacle) == ("keys", "")
    assert made.keys is not None
    assert made.keys.columns == IDS[:count]
    assert [name for name, _ in fields(made)[:count]] == list(IDS[:count])
    assert "__source_row_id" not in made.sql
    assert all(name in made.keys.sql for name in IDS[:count])


@pytest.mark.parametrize(("sql", "columns"), BY_OUTPUTS)
def test_groups_partitions_and_distinct_rows_are_told_apart_by_outputs(
    sql: str, columns: str
) -> None:
    made = make(sql, schema=RANKED if " AS r FROM" in sql else None)
    assert (made.shape, made.obstacle) == ("keys", "")
    assert made.keys is not None
    assert " ".join(made.keys.columns) == columns
    assert "__source_row_id" not in [name for name, _ in fields(made)]


def test_every_place_where_a_table_is_read_has_a_name() -> None:
    sql = "SELECT x.id, y.id AS o FROM other x JOIN other y ON x.label = y.label AND y.id > 3"
    made = make(sql, namespace=())
    assert made.keys is not None
    assert made.keys.sql == (
        "SELECT x.id, y.id AS o, `__penstock_row_id_source_1_1` AS `__source_row_id`, "
        "`__penstock_row_id_source_1_2` AS `__source_row_id_2` FROM `source_1_1` x "
        "JOIN `source_1_2` y ON x.label = y.label AND y.id > 3"
    )
    (branch,) = made.keys.branches
    assert [(each.name, each.source, each.parent) for each in branch.occurrences] == [
        ("source_1_1", "source_1", None),
        ("source_1_2", "source_1", 0),
    ]
    assert branch.keys == (KeyPart(0), KeyPart(1))


def test_a_query_of_a_union_leaves_the_others_row_ids_null() -> None:
    made = make("SELECT id FROM docs UNION ALL SELECT id FROM other")
    assert made.keys is not None
    assert [branch.keys for branch in made.keys.branches] == [
        (KeyPart(0), None),
        (None, KeyPart(0)),
    ]
    assert "SELECT id, CAST(NULL AS BIGINT) AS `__source_row_id`" in made.keys.sql


def test_a_view_without_columns_for_row_ids_is_computed_as_a_whole() -> None:
    sql = "SELECT d.id, o.label FROM docs d JOIN other o ON d.id = o.id"
    created = pa.schema([("id", pa.int64()), ("label", pa.large_string())])
    made = make(sql, created=created)
    assert (made.shape, made.keys) == ("whole", None)
    assert "drop it and create it anew" in made.obstacle
    assert [name for name, _ in fields(made)] == ["id", "label"]


def test_names_that_we_need_are_not_shared() -> None:
    schemas = {
        ("shop", "docs"): pa.schema([("id", pa.int64()), ("__penstock_row_id_x", pa.int64())]),
        ("other",): OTHER,
    }
    made = make("SELECT d.id FROM docs d JOIN other o ON d.id = o.id", schemas=schemas)
    assert made.shape == "whole"
    assert "__penstock_row_id_" in made.obstacle


def test_a_union_of_many_queries_is_computed_as_a_whole() -> None:
    made = make(" UNION ALL ".join(["SELECT id FROM docs"] * 9))
    assert (made.shape, "more than 8 queries" in made.obstacle) == ("whole", True)
    made = make(" UNION ALL ".join(["SELECT id FROM docs"] * 8))
    assert made.shape == "keys"
