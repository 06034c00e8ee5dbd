"""WITH, subqueries in FROM and Iceberg views: merged where that means the same, or a reason."""

import pyarrow as pa
import pytest

from tests.harness.views.definitions import DOCS, TABLES, columns, fields, make, make_spec, refusal

OTHER = "(SELECT id, label FROM other WHERE label > 'a')"
BY_ROWS = [
    ("WITH c AS (SELECT id FROM docs) SELECT id FROM c", None, {"id": "`id`"}),
    (
        "WITH c AS (SELECT * FROM docs WHERE price > 1), "
        "d(k, `b``c`) AS (SELECT ID, c.NAME FROM c WHERE id < 5 OR id > 9) "
        "SELECT k + 1 AS next, upper(`b``c`) AS n FROM D WHERE K <> 7",
        "`price` > 1 AND (`id` < 5 OR `id` > 9) AND `id` <> 7",
        {"next": "`id` + 1", "n": "upper(`Name`)"},
    ),
    (
        "SELECT p * 2 AS p, p + 1 AS q FROM (SELECT price + 1 AS p FROM docs) x WHERE p > 3",
        "(`price` + 1) > 3",
        {"p": "(`price` + 1) * 2", "q": "(`price` + 1) + 1"},
    ),
    # A name of the table that the subquery does not give is the output before.
    (
        "SELECT id + 1 AS price, price * 2 AS y FROM (SELECT id FROM docs) q",
        None,
        {"price": "`id` + 1", "y": "(`id` + 1) * 2"},
    ),
    (
        "SELECT q.place.x, z.w FROM (SELECT place, place.`y z` AS z FROM docs) q",
        None,
        {"x": "`place`.`x`", "w": "`place`.`y z`.`w`"},
    ),
    # A table of another name behind the name of a table.
    ("WITH other AS (SELECT price FROM docs) SELECT * FROM other", None, {"price": "`price`"}),
    (
        "SELECT id FROM (WITH c AS (SELECT id, at FROM docs) SELECT id FROM c WHERE id > 1) q",
        "(`id` > 1)",
        {"id": "`id`"},
    ),
]
BY_KEYS = [
    (
        f"SELECT d.id, q.label FROM docs d LEFT JOIN {OTHER} q ON q.id = d.id",
        "FROM `source_1_1` AS `d` LEFT JOIN `source_2_2` AS `other` "
        "ON `other`.`id` = `d`.`id` AND `other`.`label` > 'a'",
    ),
    (
        f"SELECT d.id FROM docs d JOIN {OTHER} q ON q.id = d.id",
        "FROM `source_1_1` AS `d` JOIN `source_2_2` AS `other` ON `other`.`id` = `d`.`id` "
        "WHERE `other`.`label` > 'a'",
    ),
    (
        f"SELECT d.id FROM docs d LEFT ANTI JOIN {OTHER} q ON q.id = d.id",
        "ON `other`.`id` = `d`.`id` AND `other`.`label` > 'a'",
    ),
    # The condition of a join of joins goes to WHERE.
    (
        "SELECT d.id, q.n FROM docs d JOIN (SELECT o.id, m.text AS n FROM other o LEFT JOIN made m "
        "ON o.id = m.id WHERE o.id > 3) q ON q.id = d.id AND (q.n = 'a' OR d.id = 1)",
        "FROM `source_1_1` AS `d` CROSS JOIN `source_2_2` AS `o` LEFT JOIN `source_3_3` AS `m` "
        "ON `o`.`id` = `m`.`id` WHERE `o`.`id` = `d`.`id` AND (`m`.`text` = 'a' OR `d`.`id` = 1) "
        "AND `o`.`id` > 3",
    ),
    # Each use has its own copy.
    (
        "WITH c AS (SELECT id, name AS n FROM docs) SELECT a.id, b.n FROM c a, C b "
        "WHERE a.id = b.id",
        "FROM `source_1_1` AS `docs` CROSS JOIN `source_1_2` AS `docs_2` "
        "WHERE `docs`.`id` = `docs_2`.`id`",
    ),
    (
        "WITH c AS (SELECT d.id FROM other d) SELECT id FROM docs d WHERE EXISTS "
        "(SELECT 1 FROM c WHERE c.id = d.id)",
        "FROM `source_2_1` AS `d` WHERE EXISTS "
        "(SELECT 1 FROM `source_1_2` AS `d_2` WHERE `d_2`.`id` = `d`.`id`)",
    ),
    (
        "SELECT q.name, count(*) AS n, sum(q.gross) AS s FROM (SELECT name, price * 1.19 AS gross "
        "FROM docs WHERE id > 1) q GROUP BY q.name HAVING n > 2",
        "GROUP BY `docs`.`Name` HAVING n > 2",
    ),
    (
        "WITH c AS (SELECT id FROM docs) SELECT id FROM c "
        "UNION ALL (SELECT id FROM c WHERE id > 1)",
        None,
    ),
    ("SELECT id FROM docs WHERE id IN (SELECT k FROM (SELECT id AS k FROM other) q)", None),
]
WHOLE = [
    ("SELECT id FROM (SELECT DISTINCT id FROM docs) q", "subquery q has DISTINCT; make a view"),
    ("SELECT id FROM (SELECT id FROM docs GROUP BY id) q", "subquery q has GROUP BY"),
    ("SELECT n FROM (SELECT count(*) AS n FROM docs) q", "subquery q has count"),
    ("SELECT id FROM (SELECT id, sum(id) OVER (PARTITION BY id) AS s FROM docs) q", "has sum"),
    ("SELECT id FROM (SELECT id FROM docs ORDER BY id LIMIT 3) q", "SELECTs has LIMIT"),
    ("SELECT id FROM (SELECT id FROM docs UNION ALL SELECT id FROM other) q", "q is a union"),
    ("SELECT id FROM (SELECT d.id FROM docs d JOIN other o USING (id)) q", "USING"),
    ("SELECT d.id FROM docs d RIGHT JOIN (SELECT id FROM other) q ON d.id = q.id", "RIGHT JOIN"),
    (
        "SELECT d.id, q.u FROM docs d LEFT JOIN (SELECT id, upper(label) AS u FROM other) q "
        "ON d.id = q.id",
        "u is made below a LEFT JOIN",
    ),
    (
        "SELECT d.id, q.one FROM docs d LEFT JOIN (SELECT id, 1 AS one FROM other) q "
        "ON d.id = q.id",
        "one is made below a LEFT JOIN",
    ),
    (
        "SELECT d.id FROM docs d LEFT JOIN (SELECT o.id FROM other o JOIN made m ON o.id = m.id) q "
        "ON d.id = q.id",
        "LEFT JOIN of subquery q, which has joins",
    ),
    (
        "SELECT q.one, q.name, count(*) AS n FROM (SELECT name, 1 AS one FROM docs) q "
        "GROUP BY q.one, q.name",
        "constant that rows are grouped by",
    ),
    (
        "SELECT id FROM (SELECT id, id + 1 AS k FROM docs) q WHERE EXISTS "
        "(SELECT 1 FROM other o WHERE o.id = q.k)",
        "k of a subquery is an expression that another subquery reads",
    ),
    # HAVING would mean the column of the table.
    (
        "SELECT q.name, count(*) AS u FROM (SELECT name FROM docs) q GROUP BY q.name HAVING u > 2",
        "u can't be told from the columns of subqueries",
    ),
    (
        "WITH c AS (SELECT id FROM docs), d AS (SELECT id FROM other) SELECT id FROM c",
        "nothing reads",
    ),
    ("SELECT d.id FROM docs d JOIN (SELECT id FROM other) q ON d.id < q.id", "not joined by"),
    (
        f"SELECT d.id FROM docs d LEFT JOIN {OTHER} q ON q.id = d.id OR q.id = 3",
        "other is not joined by an equality",
    ),
    ("WITH c AS (SELECT id FROM docs) SELECT id FROM c ORDER BY id LIMIT 3", "ORDER BY and LIMIT"),
    (
        "WITH RECURSIVE c AS (SELECT id FROM docs UNION ALL SELECT id FROM c) SELECT id FROM c",
        "RECURSIVE",
    ),
]


@pytest.mark.parametrize(("sql", "where", "outputs"), BY_ROWS)
def test_layers_over_one_table_are_followed_by_rows(
    sql: str, where: str | None, outputs: dict[str, str]
) -> None:
    made = make(sql)
    assert (made.shape, made.obstacle) == ("rows", "")
    assert made.rows is not None
    assert made.rows.filter == where
    assert columns(made) == outputs


@pytest.mark.parametrize(("sql", "text"), BY_KEYS)
def test_subqueries_of_joins_are_followed_by_keys(sql: str, text: str | None) -> None:
    made = make(sql)
    assert (made.shape, made.obstacle) == ("keys", "")
    assert made.keys is not None
    assert text is None or text in made.keys.sql


@pytest.mark.parametrize(("sql", "why"), WHOLE)
def test_what_can_not_be_merged_says_why(sql: str, why: str) -> None:
    made = make(sql)
    assert made.shape == "whole"
    assert why in made.obstacle


def test_a_subquery_that_doubles_at_each_step_is_left_alone() -> None:
    steps = ", ".join(
        f"c{n + 1} AS (SELECT x.id FROM c{n} x JOIN c{n} y ON x.id = y.id)" for n in range(8)
    )
    made = make(f"WITH c0 AS (SELECT id FROM docs), {steps} SELECT id FROM c8")
    assert (made.shape, "more than 64 tables" in made.obstacle) == ("whole", True)
    grown = ", ".join(f"c{n + 1} AS (SELECT a + a AS a FROM c{n})" for n in range(16))
    made = make(f"WITH c0 AS (SELECT price AS a FROM docs), {grown} SELECT a FROM c16")
    assert (made.shape, "too long" in made.obstacle) == ("whole", True)
    deep = "SELECT id, name FROM docs"
    for n in range(30):
        deep = f"SELECT id, name FROM ({deep} WHERE name <> '{'x' * 500}') q{n}"
    made = make(deep)
    assert (made.shape, "too many layers" in made.obstacle) == ("whole", True)


def test_an_iceberg_view_in_another_namespace_and_dialect() -> None:
    views = {
        ("deep", "v"): ('SELECT id AS k, label FROM "docs" WHERE id > 3', "trino", ("deep", "er")),
        ("shop", "w"): ("SELECT k, label || '!' AS l FROM deep.v", "spark", ("shop",)),
    }
    schemas = {
        **TABLES,
        ("deep", "er", "docs"): pa.schema([("id", pa.int64()), ("label", pa.string())]),
    }
    made = make("SELECT d.id, w.l FROM docs d JOIN w ON w.k = d.id", views=views, schemas=schemas)
    assert (made.shape, made.obstacle) == ("keys", "")
    assert {source.table for source in made.sources} == {("shop", "docs"), ("deep", "er", "docs")}
    made = make("SELECT k AS x FROM w WHERE l > 'a'", views=views, schemas=schemas)
    assert made.shape == "rows"
    assert columns(made) == {"x": "`id`"}
    assert made.sources[0].reads == ("id", "label")


def test_a_star_in_a_subquery_reads_only_what_is_needed() -> None:
    sql = "WITH c AS (SELECT * FROM docs) SELECT id FROM c WHERE price > 1"
    made = make(sql)
    assert made.sources[0].reads == ("id", "price")
    # The others must still be there, or the text names what is not.
    assert set(made.sources[0].named) == set(DOCS.names) - {"id", "price"}
    assert make("SELECT id FROM docs WHERE price > 1").sources[0].named == ()


def test_a_star_over_with_stands_for_the_columns_of_the_day() -> None:
    sql = "WITH c AS (SELECT id, label FROM other) SELECT * FROM c"
    created = pa.schema([("__source_row_id", pa.int64()), ("id", pa.int64())])
    made = make(sql, created=created)
    assert (made.shape, fields(made)) == (
        "rows", [("__source_row_id", "int64"), ("id", "int64")]
    )  # fmt: skip


def test_views_that_were_created_as_a_whole_stay_so() -> None:
    rows = "WITH c AS (SELECT id, label FROM other) SELECT id FROM c"
    made = make(rows, created=pa.schema([("id", pa.int64())]))
    assert (made.shape, fields(made)) == ("whole", [("id", "int64")])
    joined = f"SELECT d.id FROM docs d JOIN {OTHER} q ON q.id = d.id"
    made = make(joined, created=pa.schema([("id", pa.int64())]))
    assert made.shape == "whole"
    assert "kept no row ids" in made.obstacle
    # Groups need no column of their own.
    groups = "SELECT id, count(*) AS n FROM (SELECT id FROM docs) q GROUP BY id"
    made = make(groups, created=pa.schema([("id", pa.int64()), ("n", pa.int64())]))
    assert made.shape == "keys"
    # Unless a type is another one than it had.
    schemas = {("shop", "small"): pa.schema([("k", pa.timestamp("ms"))])}
    small = "SELECT k, count(*) AS n FROM (SELECT k FROM small) q GROUP BY k"
    assert fields(make(small, schemas=schemas))[0] == ("k", "timestamp[ms]")
    created = pa.schema([("k", pa.timestamp("us")), ("n", pa.int64())])
    assert make(small, schemas=schemas, created=created).shape == "whole"


def test_the_merged_text_is_checked_like_any_other() -> None:
    assert "column nix does not exist" in refusal("SELECT nix FROM (SELECT id FROM docs) q")
    assert "rand is not the same" in refusal("SELECT r FROM (SELECT rand() AS r FROM docs) q")
    # The clock is read in the flat query's WHERE.
    made = make("SELECT id FROM (SELECT id, at FROM docs WHERE at > now() - INTERVAL 7 DAYS) q")
    assert (made.shape, made.clock is not None and made.clock.beyond_filter) == ("rows", False)
    assert "may be a column or the current time" in refusal(
        "SELECT current_date AS d FROM (SELECT id AS `current_date` FROM docs) q"
    )


def test_a_chunker_may_read_a_subquery_over_one_table() -> None:
    spec = make_spec("chunker", pa.schema([("chunk", pa.string())]), input_columns=["n"])
    made = make("WITH c AS (SELECT id, name AS n FROM docs) SELECT * FROM c", "chunker", spec=spec)
    assert (made.shape, made.kind) == ("rows", "chunker")
    said = refusal("SELECT id FROM (SELECT DISTINCT id FROM docs) q", kind="chunker", spec=spec)
    assert "the rows of one table: subquery q has DISTINCT" in said
