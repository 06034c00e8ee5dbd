"""The columns of a view: what a query gives, what is declared, and what stays as it was created."""

import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.sql.definitions.schemas import read_schema
from tests.harness.views.definitions import (
    DOCS,
    OTHER,
    TABLES,
    columns,
    encode_schema,
    fields,
    make,
    refusal,
)


def test_a_column_keeps_the_type_that_it_has_in_lance() -> None:
    made = make("SELECT vector, u, at, words, place FROM docs")
    assert [read_schema(made.schema).field(name).type for name, _ in fields(made)[1:]] == [
        DOCS.field(name).type for name in ("vector", "u", "at", "words", "place")
    ]
    assert fields(make("SELECT label FROM other"))[1:] == [("label", "large_string")]


def test_types_that_only_spark_knows_must_be_declared() -> None:
    sql = "SELECT amount + 1 AS more FROM docs"
    assert "the type of column more is only known to Spark" in refusal(sql)
    schema = pa.schema([("more", pa.decimal128(11, 2))])
    assert fields(make(sql, schema=schema))[1:] == [("more", "decimal128(11, 2)")]


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ([("id", pa.int32())], "column id of output_schema is int32, and the query gives int64"),
        ([("idd", pa.int64())], "output_schema has column idd, and the query does not give it"),
        ([], "the query gives column id, and output_schema does not have it"),
    ],
)
def test_a_declared_schema_that_does_not_fit(schema: list[object], says: str) -> None:
    said = refusal("SELECT id FROM docs", schema=pa.schema(schema))
    assert said.startswith("SchemaMismatch: ")
    assert says in said


def test_a_declared_schema_may_have_system_columns_another_order_and_other_storage() -> None:
    schema = pa.schema(
        [
            ("__is_set", pa.bool_()),
            ("__source_row_id", pa.int64()),
            ("label", pa.string()),
            pa.field("id", pa.int64(), nullable=False),
        ]
    )
    made = make("SELECT id, label FROM other", schema=schema)
    assert fields(made) == [("__source_row_id", "int64"), ("label", "string"), ("id", "int64")]
    assert columns(made) == {"id": "`id`", "label": "`label`"}


def test_a_schema_comes_as_a_message_or_as_a_stream() -> None:
    assert read_schema(encode_schema(OTHER)) == OTHER
    import base64
    import io

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, OTHER):
        pass
    assert read_schema(base64.b64encode(sink.getvalue()).decode()) == OTHER
    for wrong in ("", "%%%", "AAAA", base64.b64encode(b"no schema at all").decode()):
        with pytest.raises(InvalidRequest, match="output_schema"):
            read_schema(wrong)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT id + 1 FROM docs", "column 1 of the result has no name"),
        ("SELECT id, price AS ID FROM docs", "two columns called id"),
        ("SELECT id AS __source_row_id FROM docs", "is the view's own"),
        ("SELECT id AS `a.b` FROM docs", "without a dot"),
        ("SELECT id AS _rowid FROM docs", "not legal"),
        ("SELECT place.q FROM docs", "has no field q"),
        ("SELECT nam FROM docs", "column nam does not exist (line 1, column 8) | near names: name"),
        ("SELECT id\nFROM dosc", "table shop.dosc is not in the catalog (line 2, column 6)"),
        ("SELECT uper(name) AS n FROM docs", "Spark has no function uper (line 1, column 8)"),
        ("SELECT my.f(name) AS n FROM docs", "not one of Spark's own"),
        ("SELECT id FROM docs WHERE", "(line 1, column 21)"),
        ("SELECT * FROM docs d JOIN other o ON d.id = o.id", "two columns called id"),
        ("SELECT * FROM range(3)", "table function"),
    ],
)
def test_errors_name_the_place_and_the_remedy(sql: str, says: str) -> None:
    said = refusal(sql) if "range" not in sql else refusal("SELECT r.id FROM docs, range(3) r")
    assert said.startswith("InvalidRequest: ")
    assert says in said


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT nam FROM docs", "column nam does not exist (line 1, column 8) | near names: Name"),
        ("SELECT id + 1 FROM docs", ["has no name", " give it one with AS"][0]),
        ("SELECT count(*) AS n FROM docs", "COUNT is not offered in Lance's SQL"),
        ("SELECT docs.id FROM docs JOIN other ON true", "reads one table"),
        ("SELECT DISTINCT id FROM docs", "DISTINCT is not offered"),
        ("SELECT id FROM docs LIMIT 3 OFFSET 2", "OFFSET"),
        ("SELECT id FROM docs ORDER BY id LIMIT 2", "ORDER BY with LIMIT"),
        ("SELECT id + Name AS x FROM docs", "column x"),
        ("SELECT id, id FROM docs", "two columns called id"),
        ("SELECT id FROM docs WHERE id + 1", "not a boolean"),
        ("SELECT nosuch(id) AS x FROM docs", "nosuch"),
        ("SELECT id FROM (SELECT id FROM docs) q", "reads one table"),
    ],
)
def test_errors_of_lances_sql(sql: str, says: str) -> None:
    said = refusal({"query": sql})
    assert said.startswith("InvalidRequest: ")
    assert says in said


def test_lances_order_alone_means_nothing() -> None:
    assert columns(make({"query": "SELECT id FROM docs ORDER BY id"})) == {"id": "`id`"}


def test_odd_names() -> None:
    names = ["é ü", "select", "😀", "UPPER", "a-b", "it's"]
    schema = pa.schema([(name, pa.int64()) for name in names])
    tables = {("shop", "odd"): schema}
    made = make("SELECT *, `it's` + `😀` AS n FROM odd", schemas=tables)
    assert [name for name, _ in fields(made)[1:]] == [*names, "n"]
    quoted = {("shop", "odd"): pa.schema([("x`y", pa.int64())])}
    assert "holds a back-quote" in refusal("SELECT * FROM odd", schemas=quoted)
    assert columns(make("SELECT `x``y` AS z FROM odd", schemas=quoted)) == {"z": "`x``y`"}
    made = make("SELECT `É Ü` AS x, `a-b`, upper AS y FROM odd WHERE `select` > 1", schemas=tables)
    assert columns(made) == {"x": "`é ü`", "a-b": "`a-b`", "y": "`UPPER`"}
    made = make({"query": 'SELECT "it\'s", "a-b" AS "select" FROM odd'}, schemas=tables)
    assert columns(made) == {"it's": "`it's`", "select": "`a-b`"}


def test_a_table_with_columns_that_spark_cannot_tell_apart() -> None:
    tables = {("shop", "t"): pa.schema([("a", pa.int64()), ("A", pa.int64())])}
    assert "can't tell apart" in refusal("SELECT 1 AS x FROM t", schemas=tables)
    assert columns(make({"query": 'SELECT "A" FROM t'}, schemas=tables)) == {"A": "`A`"}


def test_a_star_leaves_another_views_own_columns_out_unless_they_are_named() -> None:
    assert columns(make("SELECT * FROM made")) == {"id": "`id`", "text": "`text`"}
    assert columns(make({"query": "SELECT * FROM made"})) == {"id": "`id`", "text": "`text`"}
    made = make("SELECT __source_row_id AS source FROM made")
    assert columns(made) == {"source": "`__source_row_id`"}


GROWN = {**TABLES, ("other",): OTHER.append(pa.field("more", pa.int64()))}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM other",
        "SELECT o.* FROM other AS o WHERE id > 1",
        "SELECT DISTINCT * FROM other",
        "SELECT *, id + 1 AS n FROM other",
        "SELECT o.*, d.price FROM other o JOIN docs d ON o.id = d.id",
        {"query": "SELECT * FROM other"},
        {"base": {}, "source_table": "other"},
    ],
)
def test_a_star_stands_for_the_columns_of_creation(query: object) -> None:
    before = make(query)
    created = read_schema(before.schema)
    after = make(query, schemas=GROWN, created=created)
    assert after == before
    assert "more" in dict(fields(make(query, schemas=GROWN)))


def test_a_view_whose_column_is_gone_or_has_another_type() -> None:
    created = read_schema(make("SELECT * FROM other").schema)
    for schema, says in (
        (OTHER.remove(1), "the view has column label, and the query does not give it"),
        (OTHER.set(0, pa.field("id", pa.int32())), "column id of the view is int64"),
    ):
        said = refusal("SELECT * FROM other", schemas={("other",): schema}, created=created)
        assert said.startswith("SchemaMismatch")
        assert says in said


def test_a_view_that_went_by_rows_and_does_not_any_more() -> None:
    created = read_schema(make("SELECT id FROM other").schema)
    said = refusal("SELECT DISTINCT id FROM other", created=created)
    assert "of another kind now" in said


def test_the_digest_is_of_what_decides_about_rows() -> None:
    sql = "SELECT id, upper(label) AS n FROM other"
    digest = make(sql).digest
    assert make(sql, schemas=GROWN).digest == digest
    renamed = {("shop", "x"): OTHER}
    assert make(sql.replace("other", "x"), schemas=renamed).digest != digest  # another id
    assert make(sql + " WHERE id > 1").digest != digest
    # Whoever evaluates it: another name of a table says nothing either.
    alias = make("SELECT o.id, upper(o.label) AS n FROM other AS o").digest
    assert alias == digest
    other = {("other",): pa.schema([("id", pa.int64()), ("label", pa.string())])}
    assert make(sql, schemas=other).digest != digest


def test_the_least_number_of_a_type_has_that_type() -> None:
    kinds = {"-2147483648": "int32", "-(2147483648)": "int64", "-9223372036854775808": "int64"}
    for number, kind in kinds.items():
        assert fields(make(f"SELECT id, {number} AS n FROM docs"))[-1] == ("n", kind), number
