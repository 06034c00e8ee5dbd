"""Whatever holds rows in Python is read as the same batches, or refused with what is wrong."""

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import InvalidRequest, PenstockError, SchemaMismatch
from penstock.sdk.rows.reading import BATCH_BYTES, BATCH_ROWS, open_rows

ROWS = [{"id": 1, "text": "a"}, {"id": 2, "text": "bb"}]
ARROW = pa.Table.from_pylist(ROWS)


class Capsule:
    """What any library gives: Arrow's C stream, and nothing else."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return ARROW.__arrow_c_stream__(requested_schema)


class HuggingFace:
    """The part of `datasets.Dataset` that is used: the rows of a selection, as Arrow tables."""

    def __init__(self, form: str = "python") -> None:
        self.form = form

    def with_format(self, form: str) -> "HuggingFace":
        return HuggingFace(form)

    def iter(self, batch_size: int) -> Iterator[Any]:
        assert self.form == "arrow"
        yield from (ARROW.slice(at, 1) for at in range(2))


def folder_of(tmp_path: Any) -> Any:
    pq.write_table(ARROW, tmp_path / "a.parquet")
    return ds.dataset(tmp_path)


FORMS: dict[str, Callable[[Any], Any]] = {
    "dicts": lambda _: ROWS,
    "dicts of a generator": lambda _: (row for row in ROWS),
    "batches of a generator": lambda _: (ARROW.slice(at, 1).to_batches()[0] for at in range(2)),
    "frames of a generator": lambda _: (pd.DataFrame([row]) for row in ROWS),
    "columns": lambda _: {"id": [1, 2], "text": pl.Series(["a", "bb"])},
    "table": lambda _: ARROW,
    "reader": lambda _: ARROW.to_reader(),
    "dataset": folder_of,
    "scanner": lambda tmp_path: folder_of(tmp_path).scanner(),
    "pandas": lambda _: pd.DataFrame(ROWS, index=[7, 8]),
    "polars": lambda _: pl.DataFrame(ROWS),
    "lazy": lambda _: pl.LazyFrame(ROWS),
    "duckdb": lambda _: duckdb.sql("SELECT 1::BIGINT AS id, 'a' AS text UNION ALL SELECT 2, 'bb'"),
    "capsule": lambda _: Capsule(),
    "hugging face": lambda _: HuggingFace(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(tmp_path: Any, form: str) -> None:
    rows = open_rows(FORMS[form](tmp_path))
    assert rows.schema.field("id").type == pa.int64()
    assert rows.reader().read_all().to_pylist() == ROWS


def test_arrays_of_two_dimensions_are_vectors() -> None:
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert open_rows(array).schema == pa.schema([("vector", pa.list_(pa.float32(), 2))])
    made = open_rows({"id": [1, 2, 3], "v": array.astype(float)}, {"v": penstock.vector(2)})
    assert made.reader().read_all()["v"].to_pylist() == array.tolist()
    assert made.schema.field("v").type == pa.list_(pa.float32(), 2)


def test_a_schema_alone_has_no_rows() -> None:
    for empty in (open_rows(ARROW.schema), open_rows(None, {"id": int, "text": str})):
        assert (empty.schema, empty.reader().read_all().num_rows) == (ARROW.schema, 0)


def test_batches_are_neither_small_nor_large() -> None:
    many = open_rows(pa.record_batch({"id": [n]}) for n in range(1000))
    assert [batch.num_rows for batch in many.batches()] == [1000]
    large = open_rows(pa.table({"text": ["x" * 1000] * 30_000, "id": range(30_000)}))
    found = list(large.batches())
    assert all(batch.nbytes <= BATCH_BYTES and batch.num_rows <= BATCH_ROWS for batch in found)
    assert [row for batch in found for row in batch["id"].to_pylist()] == list(range(30_000))


def test_rows_take_on_the_types_of_a_table() -> None:
    known = pa.schema([("id", pa.int32()), ("v", pa.list_(pa.float32(), 2)), ("at", pa.date32())])
    found = open_rows([{"v": [1, 2], "id": 1}], None, known)
    assert [field.type for field in found.schema] == [known.field("v").type, pa.int32()]
    assert open_rows([], None, known).schema == known


def number_rows(last: Any) -> Iterator[Any]:
    yield from ({"id": n} for n in range(20_000))
    yield last


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a number": (lambda: 5, "int cannot be read as rows"),
    "nothing": (lambda: None, "NoneType cannot be read as rows"),
    "numbers": (lambda: iter([1, 2]), "of int, which holds no columns"),
    "a vector": (lambda: np.zeros(3), r"shape \(3,\)"),
    "a text as a column": (lambda: {"id": "abc"}, "column 'id' is one text"),
    "columns of two lengths": (lambda: {"a": [1], "b": [1, 2]}, "'b' has 2 values"),
    "datasets by name": (lambda: {"train": HuggingFace()}, "several datasets: train"),
    "another type": (
        lambda: number_rows({"id": "x"}),
        "of the data, row 20,001, does not fit",
    ),
    "another column": (lambda: number_rows({"x": 1}), "row 20,001, has column 'x'"),
    "another kind": (lambda: number_rows(7), "row 20,001, is of int"),
    "a type that is lost": (
        lambda: pa.table({"id": [1, 2**40]}).cast(pa.schema([("id", pa.int64())])),
        "row 2, does not fit",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_data_that_cannot_be_read_is_told(what: str) -> None:
    make, told = REFUSED[what]
    known = pa.schema([("id", pa.int32())]) if what == "a type that is lost" else None
    with pytest.raises(PenstockError, match=told) as refused:
        open_rows(make(), None, known).reader().read_all()
    assert refused.value.detail
    assert isinstance(refused.value, InvalidRequest | SchemaMismatch)


def test_an_error_of_the_callers_own_comes_as_it_is() -> None:
    def broken() -> Iterator[Any]:
        yield {"id": 1}
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        open_rows(broken())
