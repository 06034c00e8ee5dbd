"""Which tables a statement reads."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.parsing.references import find_references


def read(sql: str, dialect: str = "spark") -> list[str]:
    return ["/".join(parts) for parts in find_references(sql, dialect, ("ns",), "prod")]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT * FROM t", ["ns/t"]),
        ("SELECT * FROM t AS x JOIN u y ON x.a = y.a", ["ns/t", "ns/u"]),
        ("SELECT * FROM other.t", ["other/t"]),
        ("SELECT * FROM a.b.c.d.e", ["a/b/c/d/e"]),
        ("SELECT * FROM prod.other.t", ["other/t"]),
        ("SELECT * FROM prod.t", ["prod/t"]),
        ("SELECT * FROM `a.b`.`c d`.`Ünï`", ["a.b/c d/Ünï"]),
        ("SELECT * FROM t, t AS t2, ns.t", ["ns/t"]),
        (
            "SELECT (SELECT max(a) FROM u) FROM t WHERE b IN (SELECT c FROM v)",
            ["ns/u", "ns/t", "ns/v"],
        ),
        ("SELECT * FROM t LEFT ANTI JOIN u ON t.a = u.a", ["ns/t", "ns/u"]),
        ("SELECT a FROM t UNION SELECT a FROM u EXCEPT SELECT a FROM v", ["ns/t", "ns/u", "ns/v"]),
        ("SELECT * FROM range(10)", []),
        ("SELECT 1", []),
    ],
)
def test_tables_are_found_in_the_order_of_the_text(sql: str, found: list[str]) -> None:
    assert read(sql) == found


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("WITH a AS (SELECT * FROM t) SELECT * FROM a", ["ns/t"]),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["ns/t"]),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b", []),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", ["ns/b"]),
        ("WITH a AS (SELECT 1) SELECT * FROM ns.a", ["ns/a"]),
        ("WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT * FROM a) SELECT * FROM a", []),
        ("SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q) z, q", ["ns/q"]),
        ("WITH q AS (SELECT 1) SELECT * FROM (SELECT * FROM q) z", []),
    ],
)
def test_names_of_ctes_are_not_tables_where_they_are_in_reach(sql: str, found: list[str]) -> None:
    assert read(sql) == found


@pytest.mark.parametrize(
    ("dialect", "sql", "found"),
    [
        ("spark", "SELECT * FROM MyTable", ["ns/MyTable"]),
        ("snowflake", 'SELECT * FROM MyTable, "MyTable"', ["ns/MYTABLE", "ns/MyTable"]),
        ("postgres", 'SELECT * FROM MyTable, "MyTable"', ["ns/mytable", "ns/MyTable"]),
        ("trino", 'SELECT * FROM "MyTable"', ["ns/mytable"]),
        ("bigquery", "SELECT * FROM `proj.Set.T`", ["proj/Set/T"]),
        ("duckdb", 'SELECT * FROM "My Table"', ["ns/My Table"]),
        ("snowflake", "WITH A AS (SELECT 1) SELECT * FROM a", []),
        ("postgres", 'WITH "A" AS (SELECT 1) SELECT * FROM a', ["ns/a"]),
    ],
)
def test_names_are_folded_as_their_dialect_does(dialect: str, sql: str, found: list[str]) -> None:
    assert read(sql, dialect) == found


@pytest.mark.parametrize(
    "sql", ["SELECT FROM WHERE", "DROP TABLE t", "SELECT * FROM t" + " " * 200_000]
)
def test_what_can_not_be_judged_reads_nothing(sql: str) -> None:
    assert read(sql) == []
    assert read("SELECT * FROM t", "no-such") == []


@settings(deadline=None)
@given(
    st.text(
        st.characters(exclude_characters="`", exclude_categories=["Cs"]), min_size=1, max_size=20
    )
)
def test_a_quoted_name_is_kept_as_it_is(name: str) -> None:
    if not name.strip() or "\\" in name:
        return
    assert find_references(f"SELECT * FROM `{name}`", "spark", ("ns",)) == (("ns", name),)
