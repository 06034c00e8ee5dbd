"""Functions of views: chunkers, udtfs, and columns of a query that functions fill."""

import base64
import hashlib
from typing import Any

import pyarrow as pa
import pytest

from penstock.model.functions import OnError
from penstock.model.udtfs import read_kind
from tests.harness.views.definitions import (
    columns,
    encode_schema,
    fields,
    make,
    make_column_udf,
    make_spec,
    refusal,
)

CHUNKS = pa.schema([("chunk", pa.string()), ("start", pa.int32())])


def test_a_chunker_with_inherited_columns() -> None:
    spec = make_spec("chunker", CHUNKS, kind="scalar_udtf", input_columns=["Name"], batch=True)
    schema = pa.schema([("__source_row_id", pa.int64()), ("id", pa.int64()), *CHUNKS])
    made = make(
        "SELECT id, name AS Name, price FROM docs WHERE u > 0", "chunker", spec=spec, schema=schema
    )
    assert fields(made) == [
        ("__source_row_id", "int64"), ("__child_index", "int32"), ("id", "int64"),
        ("chunk", "string"), ("start", "int32"),
    ]  # fmt: skip
    assert made.inherited == ("id",)
    assert made.function is not None
    assert (made.function.kind, made.function.form) == ("batch_chunker", "udtf_spec")
    assert made.function.inputs == ("Name",)
    assert [output.column for output in made.function.outputs] == ["chunk", "start"]
    # What neither the function nor an inherited column needs is not read.
    assert columns(made) == {"id": "id", "Name": "`name`"}
    assert made.sources[0].reads == ("Name", "id", "u")


def test_a_chunker_may_read_columns_that_the_query_does_not_give() -> None:
    spec = make_spec("chunker", CHUNKS, input_columns=["place.x", "Name"])
    made = make("SELECT id FROM docs", "chunker", spec=spec, schema=CHUNKS)
    assert columns(made) == {"place.x": "`place`.`x`", "Name": "`Name`"}
    assert made.function is not None
    assert made.function.inputs == ("place.x", "Name")
    assert made.sources[0].reads == ("Name", "place")


def test_a_udtf_by_partitions() -> None:
    needs = {"num_cpus": 2, "memory": 1024, "error_handling": {"action": "skip"}}
    spec = make_spec("udtf", CHUNKS, input_columns=["id"], partition_by="a b", **needs)
    made = make("SELECT id FROM docs", "udtf", spec=spec, schema=CHUNKS)
    assert fields(made)[0] == ("__partition", "string")
    assert (made.partition_by, made.partition_by_indexed_column) == ("a b", None)
    assert columns(made) == {"id": "`id`", "a b": "`a b`"}
    assert made.function is not None
    assert made.function.kind == "udtf"
    assert made.function.inputs == ("id",)
    assert made.function.on_error == OnError(action="skip")
    assert (made.function.needs.num_cpus, made.function.needs.memory) == (2, 1024)


def test_a_udtf_by_the_lists_of_an_index() -> None:
    spec = make_spec("udtf", CHUNKS, partition_by_indexed_column="vector")
    made = make({"query": "SELECT id, vector FROM docs"}, "udtf", spec=spec)
    assert made.partition_by_indexed_column == "vector"
    assert made.function is not None
    assert made.function.inputs == ("id", "vector")
    assert fields(made) == [("__partition", "string"), ("chunk", "string"), ("start", "int32")]


def test_a_udtf_may_read_any_query() -> None:
    sql = "SELECT d.id, count(*) AS n FROM docs d JOIN other o ON d.id = o.id GROUP BY d.id"
    made = make(sql, "udtf", spec=make_spec("udtf", CHUNKS, partition_by="n"))
    assert (made.rows, made.keys, made.partition_by) == (None, None, "n")
    assert made.function is not None
    assert made.function.inputs == ("id", "n")
    spec = make_spec("udtf", CHUNKS, input_columns=["label"])
    assert "which the query does not give | it gives: id, n" in refusal(sql, kind="udtf", spec=spec)
    spec = make_spec("chunker", CHUNKS)
    assert "goes over the rows of one table" in refusal(sql, kind="chunker", spec=spec)


def test_a_udtf_by_an_index_needs_a_query_of_lance() -> None:
    spec = make_spec("udtf", CHUNKS, partition_by_indexed_column="vector")
    for sql in (
        "SELECT vector, upper(Name) AS n FROM docs",
        "SELECT vector FROM docs UNION ALL SELECT vector FROM docs",
    ):
        assert "partition_by_indexed_column" in refusal(sql, kind="udtf", spec=spec)


def test_who_computes_the_partitions_is_part_of_what_a_udtf_is() -> None:
    spec = make_spec("udtf", CHUNKS, input_columns=["id"])
    by_lance = make("SELECT id FROM docs", "udtf", spec=spec)
    # What only Spark computes is not read, and so nobody computes it.
    same = make("SELECT id, upper(Name) AS n FROM docs", "udtf", spec=spec)
    assert by_lance.digest == same.digest
    spec = make_spec("udtf", CHUNKS, input_columns=["id", "n"])
    by_spark = make("SELECT id, upper(Name) AS n FROM docs", "udtf", spec=spec)
    assert by_spark.rows is not None
    assert (by_spark.rows.engine, by_spark.digest != by_lance.digest) == ("spark", True)


def test_a_udtf_without_partitions_has_no_system_column() -> None:
    made = make("SELECT id FROM docs", "udtf", spec=make_spec("udtf", None), schema=CHUNKS)
    assert fields(made) == [("chunk", "string"), ("start", "int32")]


def test_the_sha_is_of_the_text_or_of_its_bytes() -> None:
    spec = make_spec("udtf", CHUNKS)
    content = base64.b64decode(spec["udtf"])
    spec["udtf_sha"] = hashlib.sha256(content).hexdigest().upper()
    made = make("SELECT id FROM docs", "udtf", spec=spec)
    assert made.function is not None
    assert made.function.sha256 == hashlib.sha256(content).hexdigest()
    assert "udtf_sha" in refusal("SELECT id FROM docs", kind="udtf", spec=spec | {"udtf_sha": "00"})


def test_another_version_is_another_definition_and_other_bytes_are_not() -> None:
    def digest(**more: Any) -> str:
        spec = make_spec("udtf", CHUNKS) | more
        return make("SELECT id FROM docs", "udtf", spec=spec).digest

    other = make_spec("udtf", CHUNKS.append(pa.field("x", pa.int8())).remove(2))
    assert digest() == digest(num_cpus=3)
    assert digest() == digest(udtf=other["udtf"], udtf_sha=other["udtf_sha"])
    assert digest(udtf_version="2") != digest()


@pytest.mark.parametrize(
    ("kind", "spec", "says"),
    [
        ("query", make_spec("udtf", CHUNKS), "udtf_spec is given for a view of kind 'query'"),
        ("udtf", None, "udtf_spec is missing"),
        ("chunker", make_spec("udtf", CHUNKS), "not the function of a view of kind 'chunker'"),
        ("udtf", make_spec("udtf", CHUNKS, kind="chunker"), "udtf_spec is of kind 'chunker'"),
        ("udtf", make_spec("udtf", CHUNKS, batch=True), "batch is for chunkers"),
        ("chunker", make_spec("chunker", CHUNKS, partition_by="id"), "is for views of kind 'udtf'"),
        ("chunker", make_spec("chunker", None), "no output_schema_bytes"),
        ("udtf", make_spec("udtf", CHUNKS, partition_by="i"), "near names: id"),
        ("udtf", make_spec("udtf", CHUNKS, partition_by="vector"), "not divided by such values"),
        ("udtf", make_spec("udtf", CHUNKS, partition_by="id", partition_by_indexed_column="vector"),
         "both"),
        ("udtf", make_spec("udtf", CHUNKS, partition_by_indexed_column="id"), "no vector"),
        ("udtf", make_spec("udtf", CHUNKS, input_columns=[]), "input_columns"),
        ("udtf", make_spec("udtf", CHUNKS, input_columns=["nme"]), "near names: Name"),
        ("udtf", make_spec("udtf", CHUNKS, error_handling={"action": "shrug"}), "error_handling"),
        ("udtf", make_spec("udtf", CHUNKS, num_cpus=-1), "num_cpus"),
        ("udtf", make_spec("udtf", CHUNKS, manifest="{}", manifest_checksum="0"), "manifest_check"),
        ("udtf", make_spec("udtf", CHUNKS, manifest_checksum="0"), "without a manifest"),
        ("udtf", make_spec("udtf", CHUNKS, udtf="%%"), "base64"),
        ("udtf", make_spec("udtf", CHUNKS, udtf="AAAA", udtf_sha=None), "not JSON"),
        ("udtf", make_spec("udtf", pa.schema([])), "makes no columns"),
        ("udtf", make_spec("udtf", pa.schema([("a.b", pa.int8())])), "without a dot"),
        ("udtf", [], "udtf_spec is not right"),
    ],
)  # fmt: skip
def test_functions_that_are_refused(kind: Any, spec: object, says: str) -> None:
    said = refusal("SELECT id, id + 1 AS n FROM docs", kind=kind, spec=spec)
    assert said.startswith("InvalidRequest")
    assert says in said


def test_kinds() -> None:
    assert read_kind("scalar_udtf") == "chunker"
    assert "kind is 'table'" in refusal("SELECT id FROM docs", kind="table")


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (pa.schema([("chunk", pa.int8()), ("start", pa.int32())]), "the function makes string"),
        (pa.schema([*CHUNKS, ("what", pa.int8())]), "neither the function nor the query gives it"),
        (pa.schema([*CHUNKS, ("id", pa.int8())]), "column id of output_schema is int8"),
        (pa.schema([("chunk", pa.string())]), "output_schema does not have it"),
    ],
)
def test_declared_columns_that_do_not_fit_a_chunker(schema: pa.Schema, says: str) -> None:
    spec = make_spec("chunker", CHUNKS)
    said = refusal("SELECT id FROM docs", kind="chunker", spec=spec, schema=schema)
    assert said.startswith("SchemaMismatch")
    assert says in said


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT DISTINCT id FROM docs", "it joins, groups or compares rows"),
        ("SELECT name, count(*) AS n FROM docs GROUP BY name", "rows of one table"),
        ("SELECT id FROM docs LIMIT 3", "LIMIT is not offered"),
    ],
)
def test_functions_go_over_the_rows_of_one_table(sql: str, says: str) -> None:
    assert says in refusal(sql, kind="chunker", spec=make_spec("chunker", CHUNKS), schema=CHUNKS)


def dump(*udfs: dict[str, Any], **base: Any) -> dict[str, Any]:
    return {"base": base, "source_table": "docs", "column_udfs": list(udfs)}


def test_functions_fill_columns_of_a_query() -> None:
    query = dump(
        make_column_udf("size", "Name", output_index=1), columns={"id": "id", "n": "id + 1"}
    )
    schema = pa.schema([("id", pa.int64()), ("size", pa.int32()), ("n", pa.int64())])
    made = make(query, schema=schema)
    assert fields(made)[1:] == [("id", "int64"), ("size", "int32"), ("n", "int64")]
    assert columns(made) == {"id": "id", "n": "id + 1", "Name": "`Name`"}
    (function,) = made.column_functions
    assert (function.name, function.inputs) == ("measure", ("Name",))
    assert function.version == function.sha256
    assert function.outputs[0].data_type == {"type": "int32"}
    assert made.sources[0].reads == ("Name", "id")


def test_an_output_of_the_query_is_an_input_before_a_column_of_the_table() -> None:
    query = dump(make_column_udf("size", "id"), columns={"id": "price", "size": "id"})
    schema = pa.schema([("id", pa.float64()), ("size", pa.int32())])
    made = make(query, schema=schema)
    assert columns(made) == {"id": "price"}
    assert made.sources[0].reads == ("price",)


def test_all_columns_and_a_function() -> None:
    query = {**dump(make_column_udf("size", "label")), "source_table": "other"}
    schema = pa.schema([("id", pa.int64()), ("label", pa.string()), ("size", pa.int32())])
    made = make(query, schema=schema)
    assert fields(made)[1:] == [("id", "int64"), ("label", "string"), ("size", "int32")]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (dump(make_column_udf("size", "nme")), "near names: Name"),
        (dump(make_column_udf("length", "id")), "output_schema does not say its type"),
        (dump(make_column_udf("size", "id"), make_column_udf("size", "id")), "two columns"),
        (dump(make_column_udf("size")), "input_columns"),
        (dump(make_column_udf("size", "id") | {"udf": {"udf_payload": "x"}}), "JSON"),
        (dump(make_column_udf("size", "id") | {"udf": {"udf_payload": 3}}), "udf_payload"),
        (dump(make_column_udf("size", "id") | {"udf": {"udf_payload": "{}"}}), "udf"),
    ],
)
def test_column_functions_that_are_refused(query: dict[str, Any], says: str) -> None:
    said = refusal(query, schema=pa.schema([("id", pa.int64()), ("size", pa.int32())]))
    assert said.startswith("InvalidRequest")
    assert says in said


def test_the_functions_schema_must_be_one() -> None:
    spec = make_spec("udtf", CHUNKS)
    assert encode_schema(CHUNKS) in base64.b64decode(spec["udtf"]).decode()
