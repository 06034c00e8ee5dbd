"""Whatever a client sends is a definition or an error of ours, never anything else."""

import base64
import contextlib
import json
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.model.udtfs import read_udtf
from penstock.model.views import Definition
from penstock.sql.definitions.schemas import read_schema
from tests.harness.views.definitions import make, make_column_udf, make_spec

WORDS = """
SELECT DISTINCT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET JOIN ON USING WITH AS UNION ALL IN
NOT NULL IS LIKE BETWEEN AND OR CASE WHEN THEN END CAST OVER LATERAL VIEW explode VALUES EXISTS
( ) ( ) [ ] , , . * = < > + - / || -> :: ; ' " ` -- /* */ /*+
docs other made id Name `a b` price place.x place.`y z`.w d.* docs.id words vector u t d x y a
1 0 -1 2147483648 9223372036854775808 1.5 'a' 'it''s' '\\' "x" true DATE'2024-01-01' INTERVAL
count(*) sum(price) min(id) upper(name) rand() now() length(name) coalesce(id,1) nosuch(x) é 😀
"""
# Mostly right, so that more than the parser is reached.
CLAUSES = st.tuples(
    st.lists(st.sampled_from([
        "id", "*", "d.*", "name AS n", "id + 1 AS m", "count(*) AS c", "place.x", "price AS `p q`",
        "sum(price) AS s", "upper(name) AS k", "m * 2 AS mm", "words[0] AS w", "1 AS one", "u",
        "CASE WHEN id = 1 THEN 2 END AS z", "max(name) OVER () AS o",
        "explode(words) AS e", "`a b`",
        "CAST(NULL AS INT) AS nothing", "transform(words, x -> upper(x)) AS up", "(SELECT 1) AS q",
    ]), min_size=1, max_size=4).map(", ".join),
    st.sampled_from(["docs d", "docs AS d", "shop.docs", "other o, docs d", "made", "nothing",
                     "docs d JOIN other o ON d.id = o.id", "(SELECT * FROM docs) AS d", "docs d(a)",
                     "docs d LATERAL VIEW explode(words) e AS w", "VALUES (1)", "docs DOCS"]),
    st.sampled_from(["", "WHERE id > 1", "WHERE d.price IS NOT NULL", "WHERE id IN (SELECT 1)",
                     "WHERE name LIKE 'a%' AND NOT `a b` = 3", "WHERE"]),
    st.sampled_from(["", "GROUP BY name", "GROUP BY 1", "GROUP BY ALL", "HAVING count(*) > 1"]),
    st.sampled_from(["", "ORDER BY id", "LIMIT 3", "ORDER BY 1 LIMIT 2", "LIMIT 1 OFFSET 1", ";"]),
).map(lambda parts: "SELECT {} FROM {} {} {} {}".format(*parts))  # fmt: skip
TEXTS = st.one_of(
    CLAUSES, st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join), st.text()
)
DIALECTS = st.sampled_from(["spark", "lance", "trino", "duckdb", "postgres", "snowflake", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)  # fmt: skip
SCHEMAS = st.one_of(st.none(), st.just(pa.schema([("id", pa.int64()), ("n", pa.string())])))


def check(query: object, **options: Any) -> None:
    try:
        made = make(query, **options)
    except PenstockError:
        return
    assert isinstance(made, Definition)
    assert made.sources
    assert read_schema(made.schema).names
    assert (made.shape == "rows") == (made.rows is not None)
    assert made.language == "lance" or made.sql
    # A view that was created is defined alike when nothing has changed.
    again = make(query, **options | {"created": read_schema(made.schema)})
    assert again.digest == made.digest


@settings(max_examples=40, deadline=None)
@given(TEXTS, SCHEMAS)
def test_any_text(text: str, schema: pa.Schema | None) -> None:
    check(text, schema=schema)


@settings(max_examples=40, deadline=None)
@given(TEXTS, DIALECTS)
def test_any_text_in_any_dialect(text: str, dialect: str) -> None:
    check({"sql": text, "dialect": dialect})


@settings(max_examples=40, deadline=None)
@given(TEXTS, st.sampled_from(["spark", "trino", "lance"]))
def test_any_iceberg_view(text: str, dialect: str) -> None:
    views = {("shop", "v"): (text, dialect, ("shop",))}
    check("SELECT * FROM v", views=views)
    check({"iceberg_view": ["shop", "v"]}, views=views)


@settings(max_examples=40, deadline=None)
@given(
    st.fixed_dictionaries(
        {"base": JSON | st.fixed_dictionaries({}, optional={
            "filter": TEXTS,
            "columns": JSON | st.dictionaries(st.text(max_size=5), TEXTS, max_size=2),
            "limit": JSON, "offset": JSON, "order_by": JSON, "vector": JSON}),
         "source_table": JSON | st.sampled_from(["docs", "shop$docs", "$", "a$"])},
        optional={
            "column_udfs": JSON | st.just([make_column_udf("n", "id")]), "fragment_ids": JSON,
        },
    ),
    SCHEMAS,
)  # fmt: skip
def test_any_dump(dump: dict[str, Any], schema: pa.Schema | None) -> None:
    check(dump, schema=schema)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["query", "udtf", "chunker", "scalar_udtf"]),
    JSON | st.dictionaries(st.sampled_from([
        "udtf", "udtf_sha", "kind", "input_columns", "partition_by", "num_cpus", "memory", "batch",
        "error_handling", "manifest", "manifest_checksum", "udtf_name",
    ]), JSON).map(lambda more: {**make_spec("udtf", pa.schema([("n", pa.string())])), **more}),
)  # fmt: skip
def test_any_udtf_spec(kind: str, spec: object) -> None:
    try:
        # As JSON has it: no surrogates, no NaN.
        found = read_udtf(kind, json.loads(json.dumps(spec, allow_nan=True)))
    except PenstockError:
        return
    assert (found is None) == (kind == "query")


@settings(max_examples=40, deadline=None)
@given(st.text() | st.binary().map(lambda content: base64.b64encode(content).decode()))
def test_any_schema(text: str) -> None:
    with contextlib.suppress(PenstockError):
        read_schema(text)
