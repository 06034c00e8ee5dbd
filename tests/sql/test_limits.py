"""Text of strangers: short texts with endless trees, deep ones, and nonsense."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.resolving.lineage import trace_columns
from penstock.sql.results import Lineage, Refusal, Translation
from penstock.sql.translating.translate import translate
from tests.sql.schemas import NAMESPACE, TABLES, refused, traced

DOUBLING = "".join(f", c{i + 1} AS (SELECT a.*, b.* FROM c{i} a, c{i} b)" for i in range(25))
STARS = f"WITH c0 AS (SELECT id FROM orders){DOUBLING} SELECT 1 AS x FROM c25"
ALIASES = (
    "SELECT id AS a0" + "".join(f", a{i} + a{i} AS a{i + 1}" for i in range(40)) + " FROM orders"
)
HALVES = "SELECT name FROM customers" + "".join(
    " UNION SELECT name FROM customers" for _ in range(200)
)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (STARS, "stars stand for more than"),
        (ALIASES, "aliases refer to each other"),
        ("SELECT " + "id, " * 2_000 + "id FROM orders", "more than 2000 words"),
        ("SELECT 1 " + " " * 200_000, "longer than"),
        ("SELECT " + "abs(" * 60 + "id" + ")" * 60 + " AS x FROM orders", "too deeply"),
        ("SELECT " + "(" * 50_000, "too deeply"),
        ("SELECT id" + "::bigint" * 600 + " AS x FROM orders", "too deeply"),
    ],
)
def test_a_statement_that_would_grow_is_refused_at_once(sql: str, words: str) -> None:
    start = time.monotonic()
    assert words in refused("trino", sql, "duckdb").reason
    assert time.monotonic() - start < 60


def test_many_unions_are_still_traced() -> None:
    (column,) = traced(HALVES).columns
    assert [source.column for source in column.sources] == ["name"]


def test_a_chain_of_ctes_is_walked_once_and_not_doubled() -> None:
    chain = "".join(
        f", c{i + 1} AS (SELECT name FROM c{i} UNION ALL SELECT name FROM c{i})" for i in range(60)
    )
    start = time.monotonic()
    found = traced(f"WITH c0 AS (SELECT name FROM customers){chain} SELECT name FROM c60")
    assert [source.column for source in found.columns[0].sources] == ["name"]
    assert time.monotonic() - start < 60


PHRASES = """
    SELECT|*|id|name|o.id|FROM|orders o|customers|JOIN|ON|o.id = id|WHERE|GROUP BY|1|count(*)|AS
    x|,|(|)|UNION ALL|WITH a AS (|a|LATERAL VIEW explode(tags) q AS e|USING (id)|ORDER BY|CASE WHEN
    END|IN|QUALIFY|OVER ()|VALUES (1)|PIVOT|address.city|tags[1]|NULL|'s'|LIMIT 1|EXISTS
"""
PIECES = st.sampled_from([piece for line in PHRASES.split("\n") for piece in line.split("|")])
DIALECTS = st.sampled_from(["spark", "trino", "snowflake", "bigquery", "duckdb", "postgres"])
STATEMENTS = st.one_of(
    st.lists(PIECES, max_size=25).map(lambda pieces: "SELECT " + " ".join(pieces)),
    st.text(max_size=60).map(lambda text: f"SELECT {text} FROM orders"),
    st.lists(PIECES, max_size=8).map(
        lambda pieces: f"SELECT id AS x FROM orders {' '.join(pieces)}"
    ),
)


@settings(max_examples=400, deadline=None)
@given(STATEMENTS, DIALECTS, DIALECTS)
def test_nonsense_is_refused_and_never_raises(sql: str, source: str, target: str) -> None:
    found = translate(sql, source, target, TABLES, NAMESPACE)
    assert isinstance(found, Translation | Refusal)
    assert isinstance(trace_columns(sql, source, TABLES, NAMESPACE), Lineage | Refusal)
    if isinstance(found, Translation):
        # What was accepted must be accepted again as a statement of its own dialect.
        again = translate(found.sql, target, target, TABLES, NAMESPACE)
        assert isinstance(again, Translation), (found.sql, again)
        assert set(again.references) == set(found.references)
