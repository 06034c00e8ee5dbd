"""Which columns feed which outputs, and which only decide about rows."""

import pytest
from sqlglot import exp
from sqlglot.lineage import lineage as sqlglot_lineage

from penstock.sql.resolving.lineage import trace_columns
from penstock.sql.results import Refusal
from tests.sql.schemas import NAMESPACE, TABLES, filters, sources, traced


@pytest.mark.parametrize(
    ("sql", "feeding", "deciding"),
    [
        (
            "SELECT * FROM customers",
            {"id": ["customers.id"], "name": ["customers.name"], "region": ["customers.region"]},
            [],
        ),
        (
            "SELECT amount * quantity AS total FROM orders WHERE open",
            {"total": ["orders.Amount", "orders.quantity"]},
            ["orders.open"],
        ),
        (
            "WITH a AS (SELECT * FROM orders), b AS (SELECT id, note AS n FROM a "
            "WHERE quantity > 1) "
            "SELECT b.n, c.name FROM b JOIN customers c ON b.id = c.id",
            {"n": ["orders.note"], "name": ["customers.name"]},
            ["customers.id", "orders.id", "orders.quantity"],
        ),
        (
            "SELECT id AS x FROM orders UNION ALL SELECT region FROM customers",
            {"x": ["customers.region", "orders.id"]},
            [],
        ),
        (
            "SELECT id FROM orders EXCEPT SELECT id FROM customers",
            {"id": ["orders.id"]},
            ["customers.id"],
        ),
        (
            "SELECT id FROM orders INTERSECT SELECT id FROM customers",
            {"id": ["customers.id", "orders.id"]},
            [],
        ),
        (
            "SELECT (SELECT max(o.quantity) FROM orders o "
            "WHERE o.customer_id = c.id) AS m FROM customers c",
            {"m": ["orders.quantity"]},
            ["customers.id", "orders.customer_id"],
        ),
        (
            "SELECT name FROM customers WHERE id IN (SELECT customer_id FROM orders WHERE open)",
            {"name": ["customers.name"]},
            ["customers.id", "orders.customer_id", "orders.open"],
        ),
        (
            "SELECT c.name FROM customers c LEFT ANTI JOIN orders o ON o.customer_id = c.id",
            {"name": ["customers.name"]},
            ["customers.id", "orders.customer_id"],
        ),
        (
            "SELECT region, count(*) AS n FROM customers GROUP BY region HAVING max(id) > 3",
            {"region": ["customers.region"], "n": []},
            ["customers.id"],
        ),
        (
            "SELECT tag FROM orders LATERAL VIEW explode(tags) x AS tag",
            {"tag": ["orders.tags"]},
            [],
        ),
        ("SELECT address.city FROM orders", {"city": ["orders.address"]}, []),
        (
            "SELECT sum(quantity) OVER (PARTITION BY note) AS s FROM orders",
            {"s": ["orders.note", "orders.quantity"]},
            [],
        ),
        (
            "WITH unread AS (SELECT note FROM orders WHERE open) SELECT name FROM customers",
            {"name": ["customers.name"]},
            [],
        ),
        (
            "WITH orders AS (SELECT id, note FROM orders) SELECT note FROM orders",
            {"note": ["orders.note"]},
            [],
        ),
        (
            "SELECT id, name FROM orders JOIN customers USING (id)",
            {"id": ["customers.id", "orders.id"], "name": ["customers.name"]},
            [],
        ),
        (
            "SELECT x.b FROM (SELECT id, name FROM customers) AS x(a, b)",
            {"b": ["customers.name"]},
            [],
        ),
        (
            "SELECT quantity + 1 AS q, q * 2 AS r FROM orders",
            {"q": ["orders.quantity"], "r": ["orders.quantity"]},
            [],
        ),
        ("SELECT 1 AS one, current_date() AS today", {"one": [], "today": []}, []),
        (
            "WITH RECURSIVE r AS (SELECT id, name FROM customers UNION ALL "
            "SELECT r.id + o.quantity, r.name "
            "FROM r JOIN orders o ON o.customer_id = r.id) SELECT id, name FROM r",
            {"id": ["customers.id", "orders.quantity"], "name": ["customers.name"]},
            ["orders.customer_id"],
        ),
    ],
)
def test_columns_are_traced(sql: str, feeding: dict[str, list[str]], deciding: list[str]) -> None:
    found = traced(sql)
    assert sources(found) == feeding
    assert filters(found) == deciding


@pytest.mark.parametrize(
    ("dialect", "sql", "feeding"),
    [
        ("trino", "SELECT t FROM orders CROSS JOIN UNNEST(tags) AS x(t)", {"t": ["orders.tags"]}),
        (
            "snowflake",
            "SELECT note n FROM orders QUALIFY row_number() OVER (ORDER BY id) = 1",
            {"N": ["orders.note"]},
        ),
        (
            "bigquery",
            "SELECT * EXCEPT (region) FROM customers",
            {"id": ["customers.id"], "name": ["customers.name"]},
        ),
        ("duckdb", "FROM customers SELECT name", {"name": ["customers.name"]}),
        (
            "postgres",
            "SELECT l.x FROM customers c, LATERAL (SELECT o.note AS x FROM orders o "
            "WHERE o.id = c.id) l",
            {"x": ["orders.note"]},
        ),
    ],
)
def test_each_dialect_has_its_ways(dialect: str, sql: str, feeding: dict[str, list[str]]) -> None:
    assert sources(traced(sql, dialect)) == feeding


def test_outputs_that_share_a_name_keep_their_own_sources() -> None:
    found = traced("SELECT o.id, c.id FROM orders o JOIN customers c ON o.customer_id = c.id")
    tables = [[source.table[-1] for source in column.sources] for column in found.columns]
    assert tables == [["orders"], ["customers"]]


def test_an_output_without_a_name_has_an_empty_one_and_its_expression() -> None:
    (column,) = traced("SELECT count(*) FROM orders").columns
    assert (column.name, column.expression) == ("", "COUNT(*)")


def test_an_outer_table_with_the_name_of_a_cte_is_not_mistaken_for_it() -> None:
    sql = (
        "WITH o AS (SELECT name FROM customers) "
        "SELECT (SELECT max(o.name) FROM o) AS m, o.note FROM orders o"
    )
    assert sources(traced(sql)) == {"m": ["customers.name"], "note": ["orders.note"]}


def test_json_is_plain() -> None:
    found = traced("SELECT name FROM customers WHERE id > 1")
    assert found.to_json() == {
        "columns": [
            {
                "name": "name",
                "sources": [{"table": ["shop", "customers"], "column": "name"}],
                "expression": "`customers`.`name`",
            }
        ],
        "filters": [{"table": ["shop", "customers"], "column": "id"}],
        "references": [["shop", "customers"]],
    }


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT x FROM missing", "not in the catalog"),
        ("SELECT x FROM customers", "column x does not exist"),
        ("SELECT FROM", "does not parse"),
        ("SELECT id FROM customers PIVOT (max(name) FOR region IN ('a'))", "PIVOT"),
    ],
)
def test_what_does_not_resolve_is_refused(sql: str, words: str) -> None:
    found = trace_columns(sql, "spark", TABLES, NAMESPACE)
    assert isinstance(found, Refusal)
    assert words in found.reason


def test_an_unknown_dialect_is_refused() -> None:
    found = trace_columns("SELECT 1 AS a", "no-such", TABLES, NAMESPACE)
    assert found == Refusal("the dialect no-such is not known here")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id + quantity AS x, note FROM orders",
        "WITH a AS (SELECT id, note FROM orders) SELECT note AS n, id FROM a "
        "UNION SELECT name, id FROM customers",
        "SELECT x.n FROM (SELECT max(name) AS n, region FROM customers GROUP BY region) x",
        "SELECT o.note, c.name FROM orders o LEFT JOIN customers c ON o.customer_id = c.id",
        "SELECT CASE WHEN region = 'EU' THEN name ELSE region END AS v FROM customers",
    ],
)
def test_sqlglots_own_lineage_agrees(sql: str) -> None:
    schema = {table[-1]: dict(TABLES[table] or {}) for table in list(TABLES)[:2]}
    theirs = {}
    for name, node in sqlglot_lineage(None, sql, schema, dialect="spark").items():
        leaves = [leaf for leaf in node.walk() if isinstance(leaf.expression, exp.Table)]
        theirs[name] = sorted(
            {f"{leaf.expression.name}.{leaf.name.rpartition('.')[2]}" for leaf in leaves}
        )
    assert sources(traced(sql)) == theirs
