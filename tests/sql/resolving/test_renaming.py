"""Renamed columns and tables in the text of a statement."""

import pytest

from penstock.sql.resolving.renaming import rename_column, rename_table
from penstock.sql.results import Refusal, Tables

TABLES: Tables = {
    ("s", "t"): {"id": "BIGINT", "text": "VARCHAR", "st": "STRUCT<x INT>"},
    ("s", "u"): {"id": "BIGINT", "text": "VARCHAR"},
}

FOLLOWED = [
    ("spark", "SELECT text FROM t", "SELECT `w` AS `text` FROM t"),
    ("spark", "SELECT t.text b -- text\nFROM t", "SELECT t.`w` b -- text\nFROM t"),
    ("spark", "SELECT st.x FROM t", "SELECT st.x FROM t"),
    ("spark", "SELECT id FROM t WHERE text > 'text'", "SELECT id FROM t WHERE `w` > 'text'"),
    ("spark", "SELECT TEXT FROM t ORDER BY text", "SELECT `w` AS `TEXT` FROM t ORDER BY text"),
    (
        "spark",
        "SELECT max(text) m FROM t GROUP BY id HAVING min(text) > 'a'",
        "SELECT max(`w`) m FROM t GROUP BY id HAVING min(`w`) > 'a'",
    ),
    (
        "spark",
        "SELECT b.text, a.text x FROM t a JOIN u b ON a.text = b.text",
        "SELECT b.text, a.`w` x FROM t a JOIN u b ON a.`w` = b.text",
    ),
    (
        "trino",
        "WITH c AS (SELECT text FROM t) SELECT text FROM c",
        'WITH c AS (SELECT "w" AS "text" FROM t) SELECT text FROM c',
    ),
    (
        "spark",
        "SELECT text FROM t UNION ALL SELECT text FROM u",
        "SELECT `w` AS `text` FROM t UNION ALL SELECT text FROM u",
    ),
    (
        "spark",
        "SELECT row_number() OVER (PARTITION BY text ORDER BY id) r FROM s.t",
        "SELECT row_number() OVER (PARTITION BY `w` ORDER BY id) r FROM s.t",
    ),
    ("spark", "SELECT * FROM u", "SELECT * FROM u"),
    (
        "spark",
        "SELECT DISTINCT * FROM t WHERE text = '*'",
        "SELECT DISTINCT `t`.`id` AS `id`, `t`.`w` AS `text`, `t`.`st` AS `st` FROM t "
        "WHERE `w` = '*'",
    ),
    ("lance", "SELECT length(text) AS n FROM t", 'SELECT length("w") AS n FROM t'),
]


@pytest.mark.parametrize(("dialect", "sql", "expected"), FOLLOWED)
def test_only_the_names_of_the_column_change(dialect: str, sql: str, expected: str) -> None:
    found = rename_column(sql, dialect, TABLES, ("s",), None, [("s", "t")], "text", "w")
    assert found == expected


def test_a_star_stands_for_what_it_stood_for() -> None:
    found = rename_column(
        "SELECT * FROM t", "spark", TABLES, ("s",), None, [("s", "t")], "text", "w", ["text", "id"]
    )
    assert found == "SELECT `t`.`id` AS `id`, `t`.`w` AS `text` FROM t"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id FROM t a JOIN u b USING (text)",
        "SELECT id FROM (SELECT * FROM t) AS s",
        "SELECT t.* FROM t",
        "SELECT id, text FROM t NATURAL JOIN u",
        "SELECT text FROM absent",
        "no query",
    ],
)
def test_what_cannot_be_told_is_refused(sql: str) -> None:
    found = rename_column(sql, "spark", TABLES, ("s",), None, [("s", "t")], "text", "w")
    assert isinstance(found, Refusal)


def test_a_name_that_would_mean_something_else_is_refused() -> None:
    sql = "SELECT u.id FROM u WHERE EXISTS (SELECT 1 FROM t WHERE text = id)"
    # The inner id is t's; as "other" it would be found outside.
    found = rename_column(sql, "spark", TABLES, ("s",), None, [("s", "t")], "id", "other")
    assert found == sql.replace("= id)", "= `other`)")
    both = {**TABLES, ("s", "u"): {"id": "BIGINT", "w": "VARCHAR"}}
    clash = "SELECT text FROM t JOIN u ON t.id = u.id"
    found = rename_column(clash, "spark", both, ("s",), None, [("s", "t")], "text", "w")
    assert isinstance(found, Refusal)


RENAMED = [
    ("spark", None, "SELECT t.id FROM t", "SELECT t.id FROM `z`.`new` AS `t`"),
    ("spark", None, "SELECT id FROM s.t AS x", "SELECT id FROM `z`.`new` AS x"),
    ("trino", None, "SELECT s.t.id FROM s.t", 'SELECT t.id FROM "z"."new" AS "t"'),
    ("spark", "cat", "SELECT id FROM cat.s.t", "SELECT id FROM `cat`.`z`.`new` AS `t`"),
    ("spark", None, "SELECT id FROM lake.s.t", "SELECT id FROM `lake`.`z`.`new` AS `t`"),
    ("spark", None, "SELECT t.id FROM s.u t", "SELECT t.id FROM s.u t"),
    ("spark", None, "WITH t AS (SELECT 1 a) SELECT a FROM t", None),
]


@pytest.mark.parametrize(("dialect", "catalog", "sql", "expected"), RENAMED)
def test_a_table_gets_its_new_name_under_its_old_alias(
    dialect: str, catalog: str | None, sql: str, expected: str | None
) -> None:
    spellings = [("s", "t"), ("lake", "s", "t")]
    found = rename_table(sql, dialect, ("s",), catalog, ("s", "t"), ("z", "new"), spellings)
    assert found == (expected or sql)


def test_a_table_that_stays_in_its_namespace_needs_no_more_than_its_name() -> None:
    found = rename_table(
        "SELECT 1 x FROM t", "spark", ("s",), None, ("s", "t"), ("s", "n"), [("s", "t")]
    )
    assert found == "SELECT 1 x FROM `n` AS `t`"
