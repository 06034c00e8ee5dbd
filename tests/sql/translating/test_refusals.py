"""Every reason for which a translation is refused, in words that somebody can act on."""

import pytest

from tests.sql.schemas import refused, to


@pytest.mark.parametrize(
    ("sql", "reason", "column"),
    [
        ("SELECT id FROM missing", "table shop.missing is not in the catalog", 16),
        ("SELECT id FROM other.orders", "table other.orders is not in the catalog", 16),
        ("SELECT nam FROM customers", "column nam does not exist; near names: name", 8),
        ("SELECT c.nam FROM customers c", "column nam of shop.customers does not exist", 10),
        ("SELECT x.nam FROM (SELECT name FROM customers) x", "column nam of x does not exist", 10),
        ("SELECT zz.id FROM customers", "zz is no table or alias", 11),
        ("SELECT id FROM orders, customers", "id is ambiguous: it is in orders, customers", 8),
        ("SELECT q.id FROM (SELECT o.id, c.id FROM orders o, customers c) q", "q has it twice", 10),
        ("SELECT k FROM opaque", "the columns of table shop.opaque are not known", 15),
        ("SELECT id FROM twins", "can't tell apart: Id and id", 16),
        ("SELECT * FROM range(3)", "calls a table function", None),
        ("SELECT a FROM customers AS z(a, b, c)", "z renames the columns of its table", 15),
        ("SELECT id FROM customers z(name, id)", "z renames the columns of its table", 16),
        (
            "WITH q AS (SELECT id, name FROM customers) SELECT id FROM q AS z(name, id)",
            "z renames the columns of its table",
            59,
        ),
        ("SELECT a FROM", "does not parse", 10),
        ("SELECT 1; SELECT 2", "2 statements", 1),
        ("SELECT id FROM customers PIVOT (max(name) FOR region IN ('a'))", "PIVOT", None),
        (
            "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.idd = o.id)",
            "column idd of shop.customers does not exist; near names: id",
            73,
        ),
    ],
)
def test_what_does_not_resolve_is_named_with_its_place(
    sql: str, reason: str, column: int | None
) -> None:
    found = refused("trino", sql)
    assert reason in found.reason
    assert found.column == column


@pytest.mark.parametrize(
    ("source", "sql"),
    [
        ("postgres", 'SELECT "ID" FROM orders'),
        ("snowflake", 'SELECT "ID" FROM orders'),
        ("postgres", 'SELECT id FROM "Orders"'),
    ],
)
def test_a_quoted_name_must_be_spelled_right_where_case_counts(source: str, sql: str) -> None:
    reason = refused("duckdb", sql, source).reason
    assert "does not exist; near names: id" in reason or "shop.orders is spelled" in reason
    assert to("duckdb", sql.replace('"', ""), source).references == (("shop", "orders"),)


@pytest.mark.parametrize(
    ("target", "sql", "words"),
    [
        ("trino", "SELECT my_udf(id) AS x FROM orders", "function my_udf is not known"),
        ("trino", "SELECT db.my_udf(id) AS x FROM orders", "struct"),
        ("trino", "SELECT note RLIKE 'a+' AS x FROM orders", "REGEXP_LIKE"),
        ("trino", "SELECT date_format(shipped, 'yyyy') AS x FROM orders", "TIME_TO_STR"),
        (
            "trino",
            "SELECT to_date(note, 'yyyy-MM-dd') AS x FROM orders",
            "not known to be a date",
        ),
        ("trino", "SELECT collect_list(id) AS x FROM orders", "ARRAY"),
        ("trino", "SELECT tags[0] AS x FROM orders", "BRACKET"),
        ("trino", "SELECT size(tags) AS x FROM orders", "ARRAY_SIZE"),
        ("trino", "SELECT split(note, ',') AS x FROM orders", "SPLIT"),
        ("trino", "SELECT placed + INTERVAL '1' DAY AS x FROM orders", "arithmetic"),
        ("trino", "SELECT datediff(placed, placed) AS x FROM orders", "DIFF"),
        ("trino", "SELECT dayofweek(placed) AS x FROM orders", "DAY_OF_WEEK"),
        ("trino", "SELECT year(paid) AS x FROM orders", "time zone"),
        ("trino", "SELECT date_trunc('month', paid) AS x FROM orders", "zone"),
        ("trino", "SELECT date_trunc('week', shipped) AS x FROM orders", "unit"),
        ("trino", "SELECT extract(second FROM shipped) AS x FROM orders", "SECOND"),
        ("trino", "SELECT id DIV 2 AS x FROM orders", "INTDIV"),
        (
            "snowflake",
            "SELECT id / quantity AS x FROM orders",
            "double here and decimal in snowflake",
        ),
        ("trino", "SELECT price / 3 AS x FROM orders", "rounded otherwise"),
        ("snowflake", "SELECT avg(quantity) AS x FROM orders", "average"),
        ("trino", "SELECT cast(Amount AS INT) AS x FROM orders", "cutting in one engine"),
        ("trino", "SELECT cast(Amount AS STRING) AS x FROM orders", "text in another format"),
        ("postgres", "SELECT cast(note AS INT) AS x FROM orders", "an error in postgres"),
        ("trino", "SELECT cast(id AS INT) AS x FROM orders", "narrower"),
        ("trino", "SELECT greatest(id, quantity) AS x FROM orders", "NULL is skipped"),
        ("trino", "SELECT trim(note) AS x FROM orders", "TRIM"),
        ("trino", "SELECT substring(note, 0, 2) AS x FROM orders", "SUBSTRING must start"),
        ("trino", "SELECT right(note, 2) AS x FROM orders", "no RIGHT"),
        ("trino", r"SELECT note LIKE 'a\\_b' AS x FROM orders", "backslash"),
        ("trino", "SELECT note = 1 AS x FROM orders", "compared with another type"),
        ("trino", "SELECT concat(note, Amount) AS x FROM orders", "not text"),
        ("trino", "SELECT lower(id) AS x FROM orders", "only for text"),
        ("trino", "SELECT open IS TRUE AS x FROM orders", "IS TRUE"),
        ("postgres", "SELECT round(Amount) AS x FROM orders", "halves"),
        ("postgres", "SELECT count_if(open) AS x FROM orders", "COUNTIF"),
        ("postgres", "SELECT quarter(placed) AS x FROM orders", "QUARTER"),
        ("postgres", "SELECT address.city AS x FROM orders", "structs"),
        (
            "trino",
            "SELECT tag FROM orders LATERAL VIEW OUTER explode(tags) x AS tag",
            "empty arrays",
        ),
        (
            "postgres",
            "SELECT tag FROM orders LATERAL VIEW explode(tags) x AS tag",
            "arrays become rows",
        ),
        ("trino", "SELECT explode(tags) AS x FROM orders", "explode outside"),
        ("trino", "SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("trino", "SELECT count(DISTINCT id, note) AS x FROM orders", "COUNT of several"),
        ("trino", "SELECT id, count(*) AS n FROM orders GROUP BY ROLLUP (id)", "ROLLUP"),
        ("trino", "SELECT note FROM orders SORT BY note", "SORT"),
        (
            "snowflake",
            "SELECT id FROM orders INTERSECT ALL SELECT id FROM customers",
            "not supported",
        ),
        ("trino", "SELECT ${x} AS y FROM orders", "PARAMETER"),
    ],
)
def test_what_would_mean_something_else_is_refused(target: str, sql: str, words: str) -> None:
    assert words in refused(target, sql).reason


@pytest.mark.parametrize(
    ("source", "target", "sql", "words"),
    [
        ("postgres", "spark", "SELECT id / quantity AS x FROM orders", "integer here and double"),
        ("postgres", "trino", "SELECT DISTINCT ON (id) id FROM orders ORDER BY id", "DISTINCT ON"),
        ("trino", "spark", "SELECT trim(note) AS x FROM orders", "TRIM"),
        ("trino", "spark", "SELECT greatest(id, quantity) AS x FROM orders", "NULL"),
        ("bigquery", "trino", "SELECT AS STRUCT id FROM orders", "AS STRUCT"),
        ("snowflake", "trino", "SELECT address:city AS x FROM orders", "JSON"),
        (
            "duckdb",
            "trino",
            "SELECT id FROM orders UNION BY NAME SELECT id FROM customers",
            "BY NAME",
        ),
        ("postgres", "trino", "SELECT id FROM orders FOR UPDATE", "LOCK"),
        ("postgres", "trino", "SELECT id FROM orders FETCH FIRST 2 ROWS WITH TIES", "TIES"),
        ("trino", "spark", "SELECT id FROM orders FOR VERSION AS OF 3", "VERSION"),
    ],
)
def test_other_directions_have_their_own_reasons(
    source: str, target: str, sql: str, words: str
) -> None:
    assert words in refused(target, sql, source).reason


def test_what_is_refused_across_engines_is_fine_within_a_family() -> None:
    sql = "SELECT trim(note) AS x, tags[0] AS t, note RLIKE 'a' AS r FROM orders"
    assert to("databricks", sql).output_columns == ("x", "t", "r")
    assert "my_udf" in refused("databricks", "SELECT my_udf(id) AS x FROM orders").reason


@pytest.mark.parametrize(
    "sql", ["SELECT count(*) FROM orders", "SELECT id + 1 FROM orders", "VALUES (1)"]
)
def test_an_output_without_a_name_is_refused(sql: str) -> None:
    assert "column 1 of the result has no name" in refused("trino", sql).reason


def test_two_outputs_of_one_name_are_refused_where_case_does_not_count() -> None:
    sql = 'SELECT id AS "X", note AS "x" FROM orders'
    assert "two columns called x in trino" in refused("trino", sql, "postgres").reason
    assert to("snowflake", sql, "postgres").output_columns == ("X", "x")


def test_a_name_that_is_both_column_and_output_is_refused_where_it_is_used() -> None:
    sql = "SELECT coalesce(note, '') AS note, count(*) AS n FROM orders GROUP BY note"
    assert "note is the name of a column and of an output" in refused("trino", sql).reason
    assert to("trino", "SELECT coalesce(note, '') AS note FROM orders ORDER BY note").sql


def test_a_doubled_quote_is_refused_where_engines_of_one_dialect_differ() -> None:
    found = refused("trino", "SELECT 'it''s' AS a FROM orders")
    assert "two quotes in a row" in found.reason
    assert (found.line, found.column) == (1, 12)
    assert to("trino", "SELECT 'it''s' AS a FROM orders", "postgres").sql.startswith(
        "SELECT 'it''s'"
    )


def test_a_table_that_the_target_can_not_name_is_refused() -> None:
    assert "trino lowers every name" in refused("trino", "SELECT key FROM MixedCase").reason
    assert '"MixedCase"' in to("duckdb", "SELECT key FROM MixedCase").sql
    assert "would take the first part" in refused("trino", "SELECT k FROM a.b.deep").reason
    assert to("databricks", "SELECT k FROM a.b.deep").references == (("a", "b", "deep"),)


@pytest.mark.parametrize(
    ("source", "target"), [("spark", "oracle"), ("mysql", "trino"), ("x", "y")]
)
def test_a_dialect_that_nobody_vouches_for_is_refused(source: str, target: str) -> None:
    assert "not offered" in refused(target, "SELECT id FROM orders", source).reason
