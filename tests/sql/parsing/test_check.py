"""Which statements are marked, where, and that no text is too much."""

import logging
import re
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.parsing.check import check_statement
from penstock.sql.parsing.languages import find_dialect
from penstock.sql.parsing.parse import MAX_CHARACTERS
from penstock.sql.results import SqlProblem


def problem(sql: str, dialect: str = "spark") -> SqlProblem:
    found = check_statement(sql, dialect)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("spark", "SELECT /*+ BROADCAST(a) */ a FROM t LATERAL VIEW explode(b) x AS y"),
        ("spark", "(SELECT 1 AS a) UNION ALL (SELECT 2)"),
        ("trino", "WITH a AS (SELECT 1 AS x) SELECT * FROM a -- the end"),
        ("trino", "VALUES (1, 'a'), (2, 'b')"),
        ("snowflake", "SELECT a:b.c::int FROM t QUALIFY row_number() OVER (ORDER BY 1) = 1;"),
        ("bigquery", "SELECT * EXCEPT (a) FROM `p-x.d.t`, UNNEST(arr) AS e"),
        ("duckdb", "FROM t SELECT a, b GROUP BY ALL"),
        ("postgres", "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b DESC NULLS LAST"),
    ],
)
def test_a_query_of_its_dialect_has_no_problem(dialect: str, sql: str) -> None:
    assert check_statement(sql, dialect) is None


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("SPARK", "spark"),
        ("sparksql", "spark"),
        (" PostgreSQL ", "postgres"),
        ("athena", "trino"),
        ("prql", None),
        ("", None),
        ("mysql, normalization_strategy = case_sensitive", None),
        ("no-such", None),
    ],
)
def test_a_dialect_is_known_by_its_names(name: str, known: str | None) -> None:
    assert find_dialect(name) == known


def test_an_unknown_dialect_is_not_judged() -> None:
    assert check_statement("this is ( no SQL", "flink-cep") is None
    assert check_statement("this is ( no SQL", "spark") is not None


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        ("SELECT a FROM t WHERE", 1, 17),
        ("SELECT a,\n  b c d\nFROM t", 2, 7),
        ("SELECT 'never closed", 1, 8),
        ("SELECT a,\r\n  b c d\rFROM t", 2, 7),
        ("SELECT a,\r\n\r  'b", 3, 3),
        ("SELECT a\nFROM `t", 2, 6),
        ("", 1, 1),
        ("-- only a comment", 1, 1),
    ],
)
def test_a_problem_says_where_it_is(sql: str, line: int, column: int) -> None:
    found = problem(sql)
    assert (found.line, found.column) == (line, column)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT 1; SELECT 2", "2 statements"),
        ("INSERT INTO t SELECT 1", "not a query"),
        ("CREATE TABLE t AS SELECT 1", "not a query"),
        ("DROP TABLE t", "not a query"),
        ("1 + 1", "not a query"),
        ("SELECT", "names no columns"),
        ("WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a", "changes data"),
        ("SELECT a INTO b FROM t", "INTO"),
    ],
)
def test_what_is_not_one_query_is_a_problem(sql: str, words: str) -> None:
    assert (
        words
        in problem(sql, "postgres" if "RETURNING" in sql or "INTO b" in sql else "spark").message
    )


def test_a_problem_becomes_plain_json_with_its_place_if_it_has_one() -> None:
    assert problem("SELECT 'x").to_json() == {
        "message": "Missing ': opened and never closed",
        "line": 1,
        "column": 8,
    }
    assert SqlProblem("no place").to_json() == {"message": "no place"}


@pytest.mark.parametrize("opening", ["(", "f(", "a[", "CASE WHEN a THEN ", "NOT ", "- "])
@pytest.mark.parametrize("depth", [60, 2_500])
def test_deep_nesting_is_a_problem_and_not_a_crash(opening: str, depth: int) -> None:
    start = time.monotonic()
    assert problem("SELECT " + opening * depth).message
    assert time.monotonic() - start < 30


def test_fifty_thousand_parentheses_are_too_deep() -> None:
    assert "too deeply" in problem("SELECT " + "(" * 50_000 + ")" * 40_000).message


def test_a_very_long_text_is_not_judged() -> None:
    assert check_statement("SELECT ( " + "x" * MAX_CHARACTERS, "spark") is None


@pytest.mark.slow
def test_a_text_that_sqlglot_takes_minutes_for_is_given_up() -> None:
    start = time.monotonic()
    assert check_statement("FROM a" + "|> SELECT a " * 4_000, "bigquery") is None
    assert time.monotonic() - start < 60


def test_nothing_reaches_the_root_logger(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert problem("ALTER SESSION SET a = b, c", "snowflake")
    assert caplog.records == []


def test_the_server_may_import_the_results_without_sqlglot() -> None:
    code = "import sys, penstock.sql.results; sys.exit('sqlglot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


VOCABULARY = """
    SELECT FROM WHERE ( ) , a b.c * 'x' " ` ; WITH AS UNION ALL JOIN ON CASE WHEN END CAST(a INT)
    [ ] { } -> :: @ $1 ? -- /* */ |> 1e5 PIVOT LATERAL VIEW VALUES NOT IN
"""
WORDS = st.sampled_from(VOCABULARY.split())
DIALECTS = st.sampled_from(
    ["spark", "trino", "snowflake", "bigquery", "duckdb", "postgres", "clickhouse", "tsql"]
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=40).map(" ".join)), DIALECTS)
def test_no_text_makes_it_raise(sql: str, dialect: str) -> None:
    found = check_statement(sql, dialect)
    if found is not None:
        assert found.message
        assert found.line is None or 1 <= found.line <= len(re.split("\r\n|\r|\n", sql))
