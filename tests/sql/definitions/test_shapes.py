"""Is my view incremental? Which queries are followed by rows, by groups, or as a whole."""

import pyarrow as pa
import pytest

from penstock.model.views import KeyPart
from tests.harness.views.definitions import columns, fields, make, refusal

# Types that only Spark knows.
DECLARED = {
    "explode": pa.schema([("w", pa.string())]),
    "rank": pa.schema([("id", pa.int64()), ("r", pa.int32())]),
    "collect_list": pa.schema([("name", pa.string()), ("ids", pa.list_(pa.int64()))]),
}
WHOLE = [
    ("SELECT d.id FROM docs d JOIN other o ON d.id < o.id", "o is not joined by an equality"),
    ("SELECT d.id FROM docs d, other o", "o is not joined by an equality"),
    ("SELECT d.id FROM docs d JOIN other o ON d.id <=> o.id", "o is not joined by an equality"),
    ("SELECT d.id FROM docs d JOIN other o ON upper(d.name) = o.label", "by an equality"),
    ("SELECT d.id FROM docs d JOIN other o ON d.price = o.id", "only Spark can compare"),
    ("SELECT d.id FROM docs d JOIN other o ON d.u = o.id", "only Spark can compare"),
    ("SELECT o.id FROM docs d RIGHT JOIN other o ON d.id = o.id", "RIGHT JOIN"),
    ("SELECT o.id FROM docs d FULL JOIN other o ON d.id = o.id", "FULL JOIN"),
    (
        "SELECT d.id FROM docs d JOIN (other o JOIN made m ON o.id = m.id) ON d.id = o.id",
        "joins in brackets",
    ),
    ("SELECT DISTINCT upper(name) AS n FROM docs", "no output is a plain column"),
    ("SELECT id FROM docs WHERE id NOT IN (SELECT id FROM other)", "by an equality"),
    ("SELECT id FROM docs WHERE EXISTS (SELECT 1 FROM other)", "by an equality"),
    ("SELECT id FROM docs WHERE price > (SELECT max(id) FROM other)", "by an equality"),
    ("SELECT id FROM docs WHERE id = 1 OR id IN (SELECT id FROM other)", "by an equality"),
    (
        "SELECT id FROM docs d WHERE id IN (SELECT id FROM other ORDER BY id LIMIT 3)",
        "a subquery with more",
    ),
    ("SELECT id, rank() OVER (ORDER BY id) AS r FROM docs", "PARTITION BY"),
    ("SELECT id, rank() OVER (PARTITION BY name ORDER BY id) AS r FROM docs", "no output"),
    ("SELECT explode(words) AS w FROM docs", "explode"),
    ("SELECT w FROM docs LATERAL VIEW explode(words) t AS w", "explode"),
    ("SELECT count(*) AS n FROM docs", "without GROUP BY"),
    ("SELECT count(*) AS n FROM docs d JOIN other o ON d.id = o.id", "without GROUP BY"),
    (
        "SELECT count(*) AS n FROM docs d WHERE EXISTS "
        "(SELECT o.id FROM other o WHERE o.id = d.id GROUP BY o.id)",
        "without GROUP BY",
    ),
    ("SELECT name, collect_list(id) AS ids FROM docs GROUP BY name", "order of rows"),
    (
        "SELECT name, CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY price) AS DOUBLE) AS m "
        "FROM docs GROUP BY name",
        "order of rows",
    ),
    ("SELECT upper(name) AS n, count(*) AS c FROM docs GROUP BY upper(name)", "plain column"),
    ("SELECT upper(name) AS name, count(*) AS c FROM docs GROUP BY name", "name"),
    ("SELECT count(*) AS c FROM docs GROUP BY name", "no output is a plain column"),
    ("SELECT words, count(*) AS c FROM docs GROUP BY words", "told apart"),
    ("SELECT name, count(*) AS c FROM docs GROUP BY ROLLUP (name)", "more than a list"),
    ("SELECT id FROM docs ORDER BY id LIMIT 3", "ORDER BY and LIMIT"),
    ("SELECT name, count(*) AS c FROM docs GROUP BY name ORDER BY c LIMIT 3", "ORDER BY and LIMIT"),
    ("FROM docs SELECT id", "taken apart"),
]


@pytest.mark.parametrize(("sql", "why"), WHOLE)
def test_what_is_refreshed_as_a_whole_says_why(sql: str, why: str) -> None:
    made = make(sql, schema=next((DECLARED[word] for word in DECLARED if word in sql), None))
    assert made.shape == "whole"
    assert why in made.obstacle
    assert made.rows is None
    assert made.keys is None
    assert "__source_row_id" not in [name for name, _ in fields(made)]


def test_filter_and_projection_go_by_rows() -> None:
    made = make(
        "SELECT d.id, id + 1 AS next FROM docs AS d WHERE d.price > 1 ORDER BY id LIMIT ALL"
    )
    assert (made.shape, made.obstacle) == ("rows", "")
    assert made.rows is not None
    assert made.rows.engine == "spark"
    assert made.rows.filter == "price > 1"
    assert columns(made) == {"id": "id", "next": "id + 1"}
    assert made.sources[0].reads == ("id", "price")
    assert fields(made)[0] == ("__source_row_id", "int64")


BESIDE = [
    "SELECT count(*) AS n, n + 1 AS m FROM docs",
    "SELECT max(id) AS m, 1 AS one, max(id) + min(price) AS s FROM docs",
    "SELECT max(price) FILTER (WHERE id > 1) AS m FROM docs",
    "SELECT id, count(*) OVER (PARTITION BY name) AS n FROM docs",
    "SELECT id, sum(price) FILTER (WHERE id > 1) OVER (PARTITION BY id) AS n FROM docs",
    "SELECT id, (SELECT max(o.id) FROM other o) AS m FROM docs",
    "SELECT id FROM docs d WHERE id = (SELECT max(o.id) + d.id FROM other o WHERE o.id = d.id)",
    "SELECT transform(collect_set(id), each -> CAST(each + 1 AS BIGINT)) AS a FROM docs",
    "SELECT max(id) AS m FROM (SELECT id, name FROM docs) AS x",
    "SELECT greatest(id, 1) AS g, any(id > 1) OVER (PARTITION BY id) AS e FROM docs",
    "SELECT max(x.place.x) AS m FROM docs x",
]


@pytest.mark.parametrize("sql", BESIDE)
def test_columns_within_an_aggregate_or_another_query_need_no_group(sql: str) -> None:
    kinds = {
        "transform": [("a", pa.list_(pa.int64()))],
        "count(*) OVER": [("id", pa.int64()), ("n", pa.int64())],
        "sum(price)": [("id", pa.int64()), ("n", pa.float64())],
        "any": [("g", pa.int64()), ("e", pa.bool_())],
    }
    found = next((pa.schema(kinds[word]) for word in kinds if word in sql), None)
    assert make(sql, schema=found).shape != "rows"


def test_hints_are_about_speed() -> None:
    made = make("SELECT /*+ COALESCE(1) */ id FROM docs")
    assert columns(made) == {"id": "`id`"}


def test_each_column_knows_what_it_reads() -> None:
    made = make("SELECT id, upper(name) AS n, place.x FROM docs")
    assert made.rows is not None
    assert [column.reads for column in made.rows.columns] == [("id",), ("Name",), ("place",)]
    assert [column.path for column in made.rows.columns] == ["id", None, "place.x"]


def test_an_output_may_be_used_by_the_next_and_columns_come_first() -> None:
    made = make("SELECT id + 1 AS a, a * 2 AS b, price AS id, id AS c FROM docs")
    assert columns(made) == {"a": "id + 1", "b": "(id + 1) * 2", "id": "price", "c": "id"}
    assert fields(made)[1:] == [("a", "int64"), ("b", "int64"), ("id", "double"), ("c", "int64")]


def test_limit_keeps_the_smallest_row_ids() -> None:
    made = make("SELECT id FROM docs LIMIT 7")
    assert made.rows is not None
    assert made.rows.limit == 7


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT id FROM docs LIMIT 3 OFFSET 1", "OFFSET"),
        ("SELECT id FROM docs OFFSET 1", "OFFSET"),
        ("SELECT name, count(*) AS c FROM docs GROUP BY name LIMIT 3", "add ORDER BY"),
        ("SELECT d.id FROM docs d JOIN other o ON d.id = o.id LIMIT 3", "add ORDER BY"),
        ("SELECT id FROM docs WHERE id IN (SELECT id FROM other LIMIT 1)", "add ORDER BY"),
        ("SELECT id FROM docs LIMIT 1 + 1", "whole number"),
        ("SELECT name, price FROM docs GROUP BY name", "neither grouped"),
        ("SELECT id, count(*) AS n FROM docs", "add GROUP BY id, or use min or max of it"),
        ("SELECT count(*) AS n, upper(name) AS u FROM docs", "column name is beside an aggregate"),
        ("SELECT id FROM docs HAVING count(*) > 1", "column id is beside an aggregate"),
        ("SELECT d.id, sum(o.id) AS s FROM docs d JOIN other o ON d.id = o.id", "add GROUP BY id"),
        ("SELECT id, max(price) FILTER (WHERE id > 1) AS m FROM docs", "add GROUP BY id"),
        ("WITH x AS (SELECT id, count(*) AS n FROM docs) SELECT id FROM x", "add GROUP BY id"),
        ("SELECT id FROM other UNION ALL SELECT id + count(*) FROM docs", "add GROUP BY id"),
        ("SELECT id FROM docs VERSION AS OF 3", "newest version"),
        ("SELECT id FROM docs TABLESAMPLE (3 ROWS)", "remove sample"),
        ("SELECT x FROM docs AS d(x, b, c, e, f, g, h, i, j, k)", "d renames the columns"),
        ("FROM docs SELECT id LIMIT 3", "plain SELECT only"),
        ("SELECT struct(*) AS s FROM docs", "list the columns"),
        ("SELECT hash(d.*) AS s FROM docs d", "list the columns"),
        ("SELECT place.* FROM docs", "no name"),
    ],
)
def test_what_would_not_be_the_same_at_every_refresh_is_refused(sql: str, why: str) -> None:
    said = refusal(sql)
    assert said.startswith("InvalidRequest: source_query: ")
    assert why in said


@pytest.mark.parametrize("function", [
    "rand()", "uuid()", "current_time()", "current_time", "current_user()", "unix_timestamp()",
    "monotonically_increasing_id()", "input_file_name()", "shuffle(words)", "`rand`()", "RANDN(3)",
    "localtime",
])  # fmt: skip
def test_volatile_functions_are_refused_by_name_and_place(function: str) -> None:
    said = refusal(f"SELECT id,\n  {function} AS x FROM docs")
    name = function.split("(")[0].strip("`").lower()
    assert f"{name} is not the same at every refresh" in said
    assert "(line 2, column 3)" in said


def test_volatile_functions_of_other_dialects_and_of_iceberg_views() -> None:
    assert "random is not the same" in refusal({"query": "SELECT random() AS r FROM docs"})
    sql = {"sql": "SELECT gen_random_uuid() AS r FROM docs", "dialect": "postgres"}
    assert "gen_random_uuid is not the same" in refusal(sql)
    views = {("shop", "v"): ("SELECT rand() AS r FROM docs", "spark", ("shop",))}
    assert "view shop$v can't be read: source_query: rand" in refusal(
        "SELECT r FROM v", views=views
    )


def test_groups_by_plain_columns_that_are_outputs() -> None:
    made = make(
        "SELECT NAME AS label, `a b`, count(*) AS n, sum(price) / count(price) AS mean "
        "FROM docs WHERE id > 1 GROUP BY 1, `a b` HAVING count(*) > 1"
    )
    assert (made.shape, made.obstacle) == ("keys", "")
    assert made.keys is not None
    assert made.keys.columns == ("label", "a b")
    assert made.keys.branches[0].keys == (KeyPart(0, "Name"), KeyPart(0, "a b"))
    assert made.sources[0].filter == "(`id` > 1)"
    assert made.sources[0].reads == ("Name", "a b", "id", "price")
    assert fields(made) == [
        ("label", "string"), ("a b", "int32"), ("n", "int64"), ("mean", "double"),
    ]  # fmt: skip
    assert made.sql.endswith(
        "FROM `source_1` AS `docs` WHERE id > 1 GROUP BY 1, `a b` HAVING count(*) > 1"
    )


def test_the_filter_of_an_aggregate_reads_columns_that_are_not_grouped() -> None:
    made = make("SELECT name, count(*) FILTER (WHERE id > 3) AS n FROM docs GROUP BY name")
    assert (made.shape, made.sources[0].reads) == ("keys", ("Name", "id"))
    assert "column id is neither grouped" in refusal(
        "SELECT name, count(*) FILTER (WHERE id > 3) + id AS n FROM docs GROUP BY name"
    )


def test_the_text_for_spark_is_written_anew_from_the_authors_words() -> None:
    made = make(
        "select  D.id , /* both */ shop.other2.label\nfrom shop.docs D join `shop`.other2 "
        "on D.id = shop.other2.id -- the end\n;",
        schemas={
            ("shop", "docs"): make_schema("id"),
            ("shop", "other2"): make_schema("id", "label"),
        },
    )
    assert made.sql == (
        "select D.id, other2.label from `source_1` D join `source_2` AS `other2` "
        "on D.id = other2.id"
    )


def make_schema(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names])


def test_reads_are_all_columns_that_decide() -> None:
    made = make("SELECT q.id FROM (SELECT DISTINCT id, price FROM docs) AS q")
    assert made.sources[0].reads == ("id", "price")
    assert make("SELECT count(*) AS n FROM docs").sources[0].reads == ()


@pytest.mark.parametrize(
    ("sql", "docs", "other"),
    [
        ("SELECT 1 AS x FROM docs d WHERE EXISTS (SELECT 1 FROM other o WHERE o.label = d.name)",
         ("Name",), ("label",)),
        ("SELECT d.id FROM docs d LEFT SEMI JOIN other o ON d.`a b` = o.id",
         ("a b", "id"), ("id",)),
        ("SELECT label FROM docs JOIN other USING (id)", ("id",), ("id", "label")),
        ("SELECT label FROM docs NATURAL JOIN other", ("id",), ("id", "label")),
        ("SELECT (SELECT max(o.id) FROM other o WHERE o.id = d.u) AS m FROM docs d",
         ("u",), ("id",)),
        ("SELECT d.id FROM docs d JOIN (SELECT DISTINCT * FROM other) o ON true",
         ("id",), ("id", "label")),
    ],
)  # fmt: skip
def test_reads_of_several_tables(sql: str, docs: object, other: object) -> None:
    found = {source.table: source.reads for source in make(sql).sources}
    assert found == {("shop", "docs"): docs, ("other",): other}


def test_reads_of_what_makes_rows() -> None:
    schema = pa.schema([("w", pa.string())])
    sql = "SELECT w FROM docs LATERAL VIEW explode(words) t AS w WHERE u > 0"
    assert make(sql, schema=schema).sources[0].reads == ("u", "words")


def test_one_table_under_two_names_is_one_source() -> None:
    made = make("SELECT a.id FROM docs a JOIN shop.docs b ON a.id = b.`a b`")
    assert [(source.name, source.reads) for source in made.sources] == [("source_1", ("a b", "id"))]
