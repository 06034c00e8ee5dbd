"""What definitions say of Spark's SQL, against Spark itself: one query for all of it."""

import datetime
import itertools
import math
import struct
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.errors import InvalidRequest
from penstock.jobs.spark.tasks import Engine
from penstock.model.views import Definition
from penstock.sql.definitions.define import define
from penstock.sql.definitions.queries import find_references
from penstock.sql.definitions.requests import SourceTable, ViewRequest
from penstock.sql.definitions.schemas import read_schema
from penstock.sql.spark import functions as spark_functions
from penstock.sql.spark.text.checked_sql import check_expression

BYTES = [-128, -1, 0, 1, 127, None]
NUMBERS = [-(2**63), -(2**31), -1, 0, 1, 2**31 - 1, 2**63 - 1, None]
FLOATS = [math.nan, -math.inf, -1.5, -0.0, 0.0, 5e-324, 1.1, 1e308, math.inf, None]
TEXTS = ["", " ", "a", "A", "ab", "a\nb", "a%b", "a_b", "é", "e\u0301", "ß", "İ", "Σς", "😀",
         "a😀b", "\u00a0", "zz", "10", "9", None]  # fmt: skip
DATES = [datetime.date(1, 1, 1), datetime.date(1582, 10, 15), datetime.date(1970, 1, 1),
         datetime.date(2024, 2, 28), datetime.date(9999, 12, 31), None]  # fmt: skip
PLACES = [{"x": 1, "in": {"w": "a"}}, {"x": None, "in": None}, {"x": 7, "in": {"w": None}}, None]

# Each is Lance's to evaluate, as an output and, if it is a condition, as a filter.
VOUCHED = [
    "i64", "s AS `odd name`", "place", "words", "place.x AS place_x", "place.in.w AS place_w",
    "t.I64 AS other_case",
    *(f"i64 {sign} i32 AS compare_{n}" for n, sign in enumerate(("=", "<>", "<", "<=", ">", ">="))),
    *(f"s {sign} s2 AS text_{n}" for n, sign in enumerate(("=", "!=", "<", "<=", ">", ">="))),
    *(f"d {sign} DATE '2024-02-28' AS day_{n}" for n, sign in enumerate(("=", "<", ">="))),
    "i8 = 127 AS byte", "i8 > -128 AS low", "i64 > 2147483647 AS high",
    "i32 <> -2147483648 AS least",
    "i64 = -9223372036854775807 AS lowest", "i64 < 9223372036854775807 AS not_highest",
    "place.x > 1 AS place_big",
    "i16 BETWEEN -1 AND 127 AS between_16", "s BETWEEN 'a' AND 'z' AS between_s",
    "d BETWEEN DATE '1970-01-01' AND d AS between_d",
    "i64 NOT BETWEEN 0 AND 1 AS not_between",
    "i32 IN (0, 1, -1) AS in_i", "s IN ('a', 'é', '😀') AS in_s", "s NOT IN ('a', '') AS not_in",
    "b AS bool", "NOT b AS not_b", "b AND i64 > 0 AS and_b", "b OR s = 'a' AS or_b",
    "(b OR NOT b) AND s <> '' AS mixed",
    "i64 IS NULL AS null_i", "s IS NOT NULL AS some_s", "f64 IS NULL AS null_f",
    "place IS NULL AS null_place", "place.x IS NOT NULL AS some_x", "words IS NULL AS null_words",
    "s LIKE 'a%' AS like_a", "s LIKE '%b' AS like_b", "s LIKE '_' AS like_one",
    "s LIKE 'a_b' AS like_middle", "s LIKE '%\u0301' AS like_accent", "s NOT LIKE '%a%' AS unlike",
    "s LIKE '' AS like_empty",
    "s || s2 AS joined", "concat(s, '-', s2) AS concat_3", "s || 'x' AS with_x",
    "length(s) AS n", "char_length(s2) AS n2", "length(s) > 1 AS longer",
    "coalesce(s, s2, 'none') AS some_text", "coalesce(i32, i32) AS some_i",
    "coalesce(b, false) AS sure", "coalesce(f64, f64) AS some_f",
    "f64 + f64 AS twice_f", "f64 - f64 AS minus_f", "f64 * f64 AS square", "f32 * f32 AS square_32",
    "f32 + f32 AS twice_32", "-f64 AS negative",
    "CAST(i8 AS INT) AS wide_8", "CAST(i32 AS BIGINT) AS wide_32",
    "CAST(i32 AS DOUBLE) AS double_32", "CAST(f32 AS DOUBLE) AS double_f",
    "ls = s2 AS large_same", "ls IN ('a', 'é') AS large_in", "ls LIKE 'a%' AS large_like",
    "ls < 'b' AS large_less", "ls IS NULL AS no_large", "ls AS large",
    "1 AS one", "-7 AS minus_seven", "3000000000 AS many", "'é' AS letter", "true AS yes",
]  # fmt: skip
# Each differs between the engines, or might.
NOT_VOUCHED = [
    "f64 = f64 AS c", "f64 > 0.0 AS c", "f64 IN (0.0) AS c", "i64 + 1 AS c", "i64 * 2 AS c",
    "-i64 AS c", "i64 / 2 AS c", "i64 % 2 AS c", "i64 DIV 2 AS c", "f64 / f64 AS c", "dec = 1 AS c",
    "dec + dec AS c", "upper(s) AS c", "lower(s) AS c", "trim(s) AS c", "substring(s, 1, 2) AS c",
    "s LIKE 'a\\\\_b' AS c", "s LIKE 'a' ESCAPE '/' AS c", "s ILIKE 'a%' AS c", "s LIKE s2 AS c",
    "s RLIKE 'a' AS c", "i64 <=> i32 AS c", "s = 'it''s' AS c", "s = 'a\\'b' AS c",
    "CAST(i64 AS STRING) AS c", "CAST(s AS INT) AS c", "CAST(f64 AS INT) AS c",
    "CAST(i64 AS INT) AS c", "CAST(i64 AS DOUBLE) AS c", "i64::int AS c", "u = 1 AS c",
    "u > i64 AS c", "ts > ts AS c", "ts = TIMESTAMP '2024-01-01' AS c",
    "d > '2024-01-01' AS c", "i64 = '1' AS c",
    "d = DATE '2024-2-8' AS c", "i8 = 1000 AS c", "i64 > 9223372036854775808 AS c",
    "coalesce(i16, 5) AS c", "coalesce(i32, 5) AS c", "BIGINT(i16) = 5 AS c",
    "s LIKE s2 || '' AS c", "coalesce(i32, i64) AS c", "CASE WHEN b THEN 1 ELSE 2 END AS c",
    "if(b, 1, 2) AS c", "nullif(s, s2) AS c", "b = true AS c", "b IS TRUE AS c", "words[0] AS c",
    "size(words) AS c", "1.5 AS c", "1.5 > f64 AS c", "hash(s) AS c", "s || i64 AS c",
    "length(bin) AS c", "length(ls) AS c", "ls || s AS c", "d64 = DATE '2024-01-01' AS c",
    "word = 'a' AS c", "half + half AS c",
    "place = place AS c", "i64 IN (1, NULL) AS c", "s LIKE ANY ('a', 'b') AS c",
]  # fmt: skip
# Outputs whose types are known without Spark.
TYPED = [
    "i64 + 1", "i8 + i8", "i8 * i32", "f32 + f32", "f32 * f64", "i64 * f64", "i64 / i32",
    "i64 / f64", "-i8", "abs(i32)", "CAST(s AS INT)", "try_cast(s AS BIGINT)",
    "CAST(s AS DECIMAL(10, 2))",
    "CAST(s AS TIMESTAMP)", "CAST(s AS TIMESTAMP_NTZ)", "CAST(s AS DATE)", "CAST(i64 AS STRING)",
    "upper(s)", "concat(s, s2)", "substring(s, 1, 2)", "left(s, 1)", "trim(s)",
    "replace(s, 'a', 'b')", "length(s)", "year(d)", "month(d)", "day(d)", "quarter(d)",
    "size(words)", "hour(ts)",
    "coalesce(i32, i64)", "coalesce(NULL, s)", "if(b, i32, i64)", "CASE WHEN b THEN s ELSE 'x' END",
    "greatest(i32, i64)", "nullif(s, s2)", "sqrt(f64)", "exp(i64)", "ln(f64)", "pow(f64, 2)",
    "i64 DIV i32", "s RLIKE 'a'", "s ILIKE 'a%'", "startswith(s, 'a')", "i64 <=> 1", "b IS TRUE",
    "2147483648", "1.19", "0.05", "10.0", "0.0", "f64 * 1.19", "f64 / 2",
    "md5(s)", "hex(i64)", "place.in", "array_contains(words, 'a')", "b AND b",
    "regexp_replace(s, 'a', 'b')", "initcap(s)", "instr(s, 'a')", "datediff(d, d)", "to_date(s)",
    "cbrt(f64)", "translate(s, 'a', 'b')", "min(i32)", "max(s)", "count(*)", "count(DISTINCT s)",
    "sum(i32)", "sum(f32)", "avg(i64)", "avg(f32)", "stddev(f64)", "variance(i64)", "count_if(b)",
    "approx_count_distinct(s)", "bool_and(b)", "sum(DISTINCT i8)", "min(d)",
    "count(*) FILTER (WHERE b)", "sum(i64) + 1", "sum(dec)", "max(dec)", "min(ts)",
]  # fmt: skip


def _rows() -> pa.Table:
    """Rows in which each value meets many of the others."""
    count = 240
    places = pa.struct([("x", pa.int32()), ("in", pa.struct([("w", pa.string())]))])

    def column(values: list[Any], kind: pa.DataType, step: int = 1) -> pa.Array:
        chosen = itertools.islice(itertools.cycle(values), 0, count * step, step)
        return pa.array(list(chosen), kind)

    def clip(bits: int) -> list[int | None]:
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        return [None if n is None else max(low, min(high, n)) for n in NUMBERS]

    return pa.table(
        {
            "i8": column(BYTES, pa.int8()),
            "i16": column(clip(16), pa.int16(), 3),
            "i32": column(clip(32), pa.int32(), 5),
            "i64": column(NUMBERS, pa.int64()),
            "f32": column([f for f in FLOATS if f is None or abs(f) != 1e308], pa.float32()),
            "f64": column(FLOATS, pa.float64(), 3),
            "s": column(TEXTS, pa.string()),
            "s2": column(TEXTS, pa.string(), 7),
            "ls": column(TEXTS, pa.large_string(), 3),
            "b": column([True, False, None], pa.bool_()),
            "d": column(DATES, pa.date32()),
            "ts": pa.array([None] * count, pa.timestamp("us", "UTC")),
            "dec": pa.array([None] * count, pa.decimal128(10, 2)),
            "bin": pa.array([None] * count, pa.binary()),
            "d64": pa.array([None] * count, pa.date64()),
            "word": pa.array(["a"] * count).dictionary_encode(),
            "half": pa.array([None] * count, pa.float16()),
            "u": pa.array([1] * count, pa.uint64()),
            "place": column(PLACES, places),
            "words": column([["a", None], [], None], pa.list_(pa.string())),
        }
    )


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    path: Path = tmp_path_factory.mktemp("lance") / "t"
    return lance.write_dataset(_rows(), path, enable_stable_row_ids=True)


def _define(dataset: lance.LanceDataset, sql: str, schema: pa.Schema | None = None) -> Definition:
    table = SourceTable(id="t", identifier=("t",), schema=dataset.schema, open=lambda: dataset)
    request = ViewRequest(kind="query", query=find_references(sql, ()), output_schema=schema)
    return define(request, {("t",): table})


def _to_spark(dataset: lance.LanceDataset) -> pa.Table:
    """The rows without the types that Spark does not have."""
    rows = dataset.to_table().drop_columns(["u", "d64", "word", "half"])
    return rows.set_column(rows.schema.names.index("ls"), "ls", rows["ls"].cast(pa.string()))


def _show(values: list[Any]) -> list[str]:
    """Values by all of their bits."""
    return [
        f"float {struct.pack('>d', value).hex() if value == value else 'nan'}"
        if isinstance(value, float)
        else repr(value)
        for value in values
    ]


def test_lance_and_spark_give_the_same_for_all_that_is_vouched_for(
    dataset: lance.LanceDataset, engine: Engine
) -> None:
    sql = f"SELECT {', '.join(VOUCHED)} FROM t"
    made = _define(dataset, sql)
    assert made.rows is not None
    assert made.rows.engine == "lance"
    # As the filter of the view and without it: conditions are pushed down by other ways.
    columns = {column.name: column.expression for column in made.rows.columns}
    by_lance = dataset.to_table(columns=columns)
    engine.spark.createDataFrame(_to_spark(dataset)).createOrReplaceTempView("t")
    by_spark = engine.spark.sql(sql).toArrow()
    assert by_lance.num_rows == by_spark.num_rows == 240
    wanted = read_schema(made.schema)
    for name, of_lance, of_spark in zip(columns, by_lance.columns, by_spark.columns, strict=True):
        assert of_lance.type == wanted.field(name).type
        assert _show(of_lance.to_pylist()) == _show(of_spark.to_pylist()), name
        if of_lance.type == pa.bool_():
            kept = dataset.to_table(columns=["i64"], filter=columns[name]).num_rows
            assert kept == of_spark.to_pylist().count(True), name


@pytest.mark.parametrize("expression", NOT_VOUCHED)
def test_what_may_differ_is_sparks(dataset: lance.LanceDataset, expression: str) -> None:
    try:
        made = _define(dataset, f"SELECT {expression} FROM t")
    except InvalidRequest:
        # Where not even the type is known, it is declared.
        made = _define(dataset, f"SELECT {expression} FROM t", pa.schema([("c", pa.int64())]))
    assert made.rows is not None
    assert made.rows.engine == "spark"
    assert made.rows.columns[0].expression == check_expression(expression.removesuffix(" AS c"))


def test_types_are_those_that_spark_gives(dataset: lance.LanceDataset, engine: Engine) -> None:
    engine.spark.createDataFrame(_to_spark(dataset)).createOrReplaceTempView("t")
    plain = TYPED[: TYPED.index("min(i32)")]
    for expressions in (plain, TYPED[len(plain) :]):
        outputs = ", ".join(f"{each} AS c{n}" for n, each in enumerate(expressions))
        sql = f"SELECT {outputs} FROM t"
        said = read_schema(_define(dataset, sql).schema)
        given = to_arrow_schema(engine.spark.sql(sql).schema, timezone="UTC")
        for n, expression in enumerate(expressions):
            assert str(said.field(f"c{n}").type) == str(given.field(f"c{n}").type).replace(
                "element:", "item:"
            ), expression


def test_the_list_of_functions_is_sparks(engine: Engine) -> None:
    names = {row[0] for row in engine.spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    listed = spark_functions.KNOWN - spark_functions.SYNTAX
    assert {name for name in names if name.isidentifier()} == listed
