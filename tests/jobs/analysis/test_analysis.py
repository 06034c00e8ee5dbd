"""The types of queries by Spark's analyzer: what a view's columns are when nobody declares them."""

from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest, QueryRefused, TypesUnknown
from penstock.jobs.analysis.run import run_analysis
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import AnalysisSpec
from penstock.lance.session.remote import RemoteCatalog
from penstock.model.views import CheckedSql
from penstock.sql.definitions.define import define
from penstock.sql.definitions.queries import add_view, find_references
from penstock.sql.definitions.requests import ViewRequest
from penstock.sql.definitions.schemas import read_schema
from penstock.sql.definitions.untyped import read_untyped
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.definitions import DOCS, OTHER, make_tables

CATALOG = RemoteCatalog.__new__(RemoteCatalog)
TABLES = make_tables({("docs",): DOCS, ("other",): OTHER})
# Expressions over `docs`, and what each gives.
ROWS = {
    "date_trunc('day', at)": "timestamp[us, tz=UTC]",
    "to_timestamp(Name)": "timestamp[us, tz=UTC]",
    "to_timestamp_ntz(Name)": "timestamp[us]",
    "row_number() OVER (PARTITION BY Name ORDER BY id)": "int32",
    "lag(price) OVER (ORDER BY id)": "double",
    "explode(split(Name, ' '))": "string",
    "explode(words)": "string",
    "amount * 2 + 1": "decimal128(13, 2)",
    "amount / 3": "decimal128(14, 6)",
    "from_json(Name, 'a INT, b ARRAY<STRING>')": "struct<a: int32, b: list<item: string>>",
    "from_json(Name, 'a INT, b STRING').b": "string",
    "transform(words, x -> length(x))": "list<item: int32>",
    "aggregate(words, 0, (acc, x) -> acc + length(x))": "int32",
    "map(Name, struct(id, price))": "map<string, struct<id: int64, price: double>>",
    "split(Name, ' ')[0]": "string",
    "coalesce(amount, u)": "decimal128(22, 2)",
    "date_add(CAST(at AS DATE), 1)": "date32[day]",
    "unhex(Name)": "binary",
    "element_at(vector, 1)": "float",
    "CAST(amount AS FLOAT)": "float",
}
QUERIES = {
    "SELECT Name AS name, collect_list(id) AS c FROM docs GROUP BY Name": "list<item: int64>",
    "SELECT percentile_approx(price, array(0.1, 0.9)) AS c FROM docs": "list<item: double>",
    "SELECT w AS c FROM docs LATERAL VIEW OUTER posexplode(words) x AS p, w": "string",
    "SELECT p AS c FROM docs LATERAL VIEW posexplode(words) x AS p, w": "int32",
    "WITH a AS (SELECT split(Name, ' ') AS p FROM docs) SELECT p[0] AS c FROM a": "string",
    "SELECT j.a AS c FROM (SELECT from_json(Name, 'a INT') AS j FROM docs)": "int32",
    "SELECT id AS c FROM docs UNION ALL SELECT u FROM docs": "decimal128(20, 0)",
    "SELECT o.label, b.ids AS c FROM other o JOIN (SELECT id, collect_set(u) AS ids FROM docs"
    " GROUP BY id) b ON o.id = b.id": "list<item: decimal128(20, 0)>",
}


def analyze(engine: Engine, sql: str, views: dict[Any, str] | None = None) -> ViewRequest:
    """The request of a view, with the types that Spark gives to its query."""
    query = find_references(sql, ())
    for name, text in (views or {}).items():
        query = add_view(query, name, text, "spark", ())
    request = ViewRequest(kind="query", query=query)
    untyped = read_untyped(request, TABLES)
    assert untyped is not None
    spec = AnalysisSpec(sql=untyped.sql, schemas=dict(untyped.schemas))
    found = run_analysis(spec, CATALOG, lambda: engine, HeldAttempt())
    return ViewRequest(kind="query", query=query, typed=read_schema(found.schema))


def test_spark_types_expressions(engine: Engine) -> None:
    for expression, kind in ROWS.items():
        made = define(analyze(engine, f"SELECT id, {expression} AS c FROM docs"), TABLES)
        assert str(read_schema(made.schema).field("c").type) == kind, expression


def test_spark_types_queries(engine: Engine) -> None:
    for sql, kind in QUERIES.items():
        with pytest.raises(TypesUnknown):
            define(ViewRequest(kind="query", query=find_references(sql, ())), TABLES)
        made = define(analyze(engine, sql), TABLES)
        assert str(read_schema(made.schema).field("c").type) == kind, sql


def test_columns_that_are_only_selected_keep_their_types(engine: Engine) -> None:
    made = define(analyze(engine, "SELECT vector, u, amount + 1 AS c FROM docs"), TABLES)
    found = read_schema(made.schema)
    kept = [DOCS.field(name).type for name in ("vector", "u")]
    assert [found.field(name).type for name in ("vector", "u")] == kept
    assert found.field("c").type == pa.decimal128(11, 2)


def test_iceberg_views_may_hold_what_only_spark_types(engine: Engine) -> None:
    views = {("parts",): "SELECT id, explode(split(Name, ' ')) AS part FROM docs"}
    request = analyze(engine, "SELECT upper(part) AS PART, part AS raw FROM parts", views)
    found = read_schema(define(request, TABLES).schema)
    assert [(each.name, str(each.type)) for each in found] == [
        ("PART", "string"),
        ("raw", "string"),
    ]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("NULL", "column c is void"),
        ("parse_json(Name)", "column c is variant"),
        ("at - at", "column c is interval day to second"),
        ("struct(NULL AS n)", "column c is void"),
    ],
)
def test_types_that_no_table_holds_are_refused(engine: Engine, expression: str, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says) as caught:
        analyze(engine, f"SELECT {expression} AS c FROM docs")
    assert caught.value.detail


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT array_join(id, ',') AS c FROM docs", "DATATYPE_MISMATCH"),
        ("SELECT from_json(Name, 'a WHAT') AS c FROM docs", "PARSE_SYNTAX_ERROR|UNSUPPORTED"),
        ("SELECT levenshtein(Name) AS c, split(Name, 1) AS d FROM docs", "WRONG_NUM_ARGS"),
    ],
)
def test_what_spark_refuses_is_the_callers_error(engine: Engine, sql: str, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says) as caught:
        analyze(engine, sql)
    # The place is one in a text that nobody has seen.
    assert " pos " not in caught.value.message
    assert "\n" not in caught.value.message


def test_sql_that_was_not_checked_stops_at_the_gate(engine: Engine) -> None:
    for sql in (
        "SELECT * FROM text.`/etc/passwd`",
        "SELECT reflect('java.lang.System', 'getenv', 'HOME') AS c FROM source_1",
        "SELECT * FROM other_table",
    ):
        spec = AnalysisSpec(sql=CheckedSql(sql), schemas={})
        with pytest.raises(QueryRefused):
            run_analysis(spec, CATALOG, lambda: engine, HeldAttempt())
