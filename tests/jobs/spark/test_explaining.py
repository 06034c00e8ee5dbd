"""What Spark says of queries that fail, and what is said to be done about it."""

import pytest

from penstock.errors import InvalidRequest
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine, explain

CASES = {
    "SELECT id, count(*) FROM range(3)": ("GROUP BY", "correct the query"),
    "SELECT from_json('x', 'a INTT, (')": ("Syntax", "correct the query"),
    "SELECT id + 9223372036854775807 FROM range(3)": ("try_add", "change the query so"),
    "SELECT 1 / id FROM range(3)": ("try_divide", "change the query so"),
}


@pytest.mark.slow
@pytest.mark.parametrize("query", CASES)
def test_a_query_that_fails_is_told_what_fits_it(engine: Engine, query: str) -> None:
    told, remedy = CASES[query]
    with open_sql(engine, 1) as sql:
        with pytest.raises(Exception, match=r"\[") as raised:
            sql.spark.sql(query).collect()
        found = explain(raised.value)
    assert isinstance(found, InvalidRequest)
    assert told in found.message
    assert found.detail == remedy
    assert "ansi" not in found.message
