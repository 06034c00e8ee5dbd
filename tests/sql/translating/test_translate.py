"""What a translation says, in every direction that is offered."""

import pytest

from penstock.sql.resolving.resolve import ResolvedStatement, resolve
from penstock.sql.results import Translation
from penstock.sql.translating.translate import translate
from tests.sql.schemas import NAMESPACE, TABLES, refused, to

TARGETS = ["spark", "trino", "snowflake", "bigquery", "duckdb", "postgres", "databricks", "presto"]


@pytest.mark.parametrize(
    ("target", "sql"),
    [
        ("trino", 'SELECT "orders"."id" AS "id" FROM "orders" AS "orders" WHERE "orders"."open"'),
        (
            "snowflake",
            'SELECT "orders"."id" AS "id" FROM "orders" AS "orders" WHERE "orders"."open"',
        ),
        (
            "bigquery",
            "SELECT `orders`.`id` AS `id` FROM `orders` AS `orders` WHERE `orders`.`open`",
        ),
    ],
)
def test_names_are_written_in_full_and_quoted(target: str, sql: str) -> None:
    assert to(target, "SELECT id FROM orders WHERE open").sql == sql


def test_a_translation_carries_what_it_reads_and_gives() -> None:
    found = to(
        "trino",
        "SELECT o.id AS Order_Id, c.name FROM orders o JOIN customers c ON o.customer_id = c.id",
    )
    assert found.to_json() == {
        "sql": 'SELECT "o"."id" AS "Order_Id", "c"."name" AS "name" FROM "orders" AS "o" '
        'JOIN "customers" AS "c" ON "o"."customer_id" = "c"."id"',
        "dialect": "trino",
        "references": [["shop", "orders"], ["shop", "customers"]],
        "output-columns": ["Order_Id", "name"],
    }


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM customers",
        "WITH c AS (SELECT * FROM customers WHERE region = 'EU') SELECT c.name, count(*) AS n "
        "FROM c JOIN orders o ON o.customer_id = c.id "
        "GROUP BY c.name HAVING count(*) > 1 ORDER BY n",
        "SELECT id FROM orders UNION ALL SELECT id FROM customers",
        "SELECT id, sum(quantity) OVER (PARTITION BY customer_id ORDER BY id) AS s FROM orders",
        "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o "
        "WHERE o.customer_id = c.id)",
        "SELECT (SELECT max(o.quantity) FROM orders o "
        "WHERE o.customer_id = c.id) AS most FROM customers c",
        "SELECT CASE WHEN open THEN 'yes' ELSE 'no' END AS s, coalesce(note, '') AS n FROM orders",
        "SELECT c.name FROM customers c LEFT SEMI JOIN orders o ON o.customer_id = c.id",
        "SELECT Amount / quantity AS each FROM orders WHERE placed >= DATE '2024-01-01'",
        "SELECT id, c.name FROM orders JOIN (SELECT id, name FROM customers) c USING (id)",
    ],
)
def test_plain_sql_goes_everywhere_and_reads_the_same(target: str, sql: str) -> None:
    found = to(target, sql)
    again = resolve(found.sql, target, TABLES, NAMESPACE)
    assert isinstance(again, ResolvedStatement)
    assert set(found.references) == set(again.references)
    names = [name.lower() for name in found.output_columns]
    assert names == [name.lower() for name in again.output_columns]


def test_an_order_keeps_its_place_for_nulls() -> None:
    assert "NULLS FIRST" in to("trino", "SELECT id FROM orders ORDER BY quantity").sql
    assert "NULLS LAST" in to("spark", "SELECT id FROM orders ORDER BY quantity", "postgres").sql
    assert "NULLS" not in to("postgres", "SELECT id FROM orders ORDER BY quantity", "duckdb").sql


def test_a_division_of_integers_stays_a_fraction() -> None:
    sql = to("trino", "SELECT id / quantity AS r FROM orders").sql
    assert 'CAST("orders"."id" AS DOUBLE) / NULLIF("orders"."quantity", 0)' in sql


def test_qualify_becomes_a_subquery_where_there_is_none() -> None:
    sql = (
        "SELECT id FROM orders QUALIFY row_number() OVER (PARTITION BY customer_id ORDER BY id) = 1"
    )
    assert "QUALIFY" in to("duckdb", sql, "snowflake").sql
    assert "QUALIFY" not in to("trino", sql, "snowflake").sql


def test_a_lateral_view_becomes_an_unnest() -> None:
    sql = to("trino", "SELECT id, tag FROM orders LATERAL VIEW explode(tags) x AS tag").sql
    assert 'CROSS JOIN UNNEST("orders"."tags") AS "x"("tag")' in sql


def test_texts_are_escaped_as_the_target_does() -> None:
    assert (
        "'it''s \\'" in to("trino", r"SELECT 'it\'s \\' AS a, \"b\" AS c".replace('\\"', '"')).sql
    )
    assert r"'it\'s'" in to("bigquery", "SELECT 'it''s' AS a", "postgres").sql


def test_concat_of_postgres_skips_nulls_elsewhere_too() -> None:
    assert "COALESCE" in to("spark", "SELECT concat(note, 'x') AS n FROM orders", "postgres").sql


def test_hints_and_comments_are_dropped() -> None:
    sql = "SELECT /*+ BROADCAST(orders) */ id /* sqlglot.meta case_sensitive */ FROM orders -- end"
    assert to("trino", sql).sql == 'SELECT "orders"."id" AS "id" FROM "orders" AS "orders"'


@pytest.mark.parametrize(
    ("source", "sql", "outputs"),
    [
        ("spark", "SELECT ID, Note AS MyNote FROM Orders", ("ID", "MyNote")),
        ("snowflake", 'SELECT id, note AS "MyNote" FROM orders', ("ID", "MyNote")),
        ("postgres", 'SELECT ID, "Amount" FROM orders', ("id", "Amount")),
        ("trino", 'SELECT ID, note AS "MyNote" FROM orders', ("id", "mynote")),
    ],
)
def test_outputs_are_called_what_their_engine_calls_them(
    source: str, sql: str, outputs: tuple[str, ...]
) -> None:
    assert to("duckdb", sql, source).output_columns == outputs


def test_columns_are_written_as_the_catalog_spells_them() -> None:
    assert '"orders"."Amount" AS "AMOUNT"' in to("postgres", "SELECT AMOUNT FROM orders").sql
    assert '"Amount"' in to("postgres", "SELECT * FROM orders").sql


def test_names_with_quotes_dots_and_other_letters_survive() -> None:
    sql = 'SELECT `täglich`, `q"q`, `a.b` FROM `odd."name```'
    found = to("postgres", sql)
    assert 'FROM "odd.""name`"' in found.sql
    assert found.output_columns == ("täglich", 'q"q', "a.b")


def test_a_table_that_a_cte_shadows_is_still_the_table() -> None:
    found = to("trino", "WITH orders AS (SELECT id FROM orders) SELECT id FROM orders")
    assert found.references == (("shop", "orders"),)


def test_a_catalog_that_is_written_stays_written() -> None:
    assert 'FROM "prod"."shop"."orders"' in to("trino", "SELECT id FROM prod.shop.orders").sql
    assert 'FROM "shop"."orders"' in to("trino", "SELECT shop.orders.id FROM shop.orders").sql


def test_the_same_dialect_is_resolved_and_written_out() -> None:
    found = to("spark", "SELECT my_udf(id) AS x FROM orders")
    assert found.sql == "SELECT MY_UDF(`orders`.`id`) AS `x` FROM `orders` AS `orders`"


@pytest.mark.parametrize("name", ["sparksql", "SPARK"])
def test_dialects_may_go_by_their_other_names(name: str) -> None:
    found = translate("SELECT id FROM orders", name, "Athena", TABLES, NAMESPACE)
    assert isinstance(found, Translation)
    assert found.dialect == "trino"


def test_a_refusal_becomes_plain_json() -> None:
    assert refused("trino", "SELECT nam FROM customers").to_json() == {
        "reason": "column nam does not exist; near names: name",
        "line": 1,
        "column": 8,
    }
