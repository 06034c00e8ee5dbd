"""Every type of Arrow's goes into Lance and comes out equal, or is refused by its name."""

import io
import uuid
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.lance.write.layout import align_batch, to_plain_type
from penstock.lance.write.uploads import RowStream, explain_panic
from tests.harness.data.arrow_types import Case, list_cases


def send(column: pa.Array, name: str = "x") -> RowStream:
    """The column behind one of texts, whose buffers leave it at odd places of a stream."""
    rows = pa.table({"s": ["abc"] * len(column), name: column})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return RowStream(sink.getvalue())


def store(column: pa.Array) -> pa.Array:
    """What Lance returns of a column that came in a stream."""
    rows = send(column)
    with rows.telling():
        made = lance.write_dataset(rows.reader(), f"memory://{uuid.uuid4().hex}")
    return made.to_table()["x"].combine_chunks()


def check(case: Case, rows: int, *, nulls: bool) -> str | None:
    """What is wrong with a case; None when it comes back, or is refused in our words."""
    column = case.make(rows, nulls=nulls)
    try:
        back = store(column)
    except InvalidRequest as refusal:
        clear = "'x'" in refusal.message and str(case.type) in refusal.message
        may = "fixed" in case.name
        return None if clear and may else f"{case.name}: {refusal.message}"
    if back.type != to_plain_type(case.type) or back.to_pylist() != column.to_pylist():
        return f"{case.name}: {back.type} {back.to_pylist()[:3]}"
    return None


@pytest.mark.parametrize("depth", [0, 1])
def test_every_type_comes_back_equal(depth: int) -> None:
    wrong = [
        found
        for case in list_cases(depth)
        for rows, nulls in ((0, True), (2, False), (5, True))
        if (found := check(case, rows, nulls=nulls))
    ]
    assert wrong == []


@pytest.mark.slow
def test_every_type_two_nests_deep_comes_back_equal() -> None:
    wrong = [
        found
        for case in list_cases(2)
        for rows, nulls in ((5, True), (1001, False))
        if (found := check(case, rows, nulls=nulls))
    ]
    assert wrong == []


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 7, 10, 100, 1001])
def test_decimals_are_stored_wherever_a_stream_has_them(rows: int) -> None:
    (case,) = (each for each in list_cases(0) if each.name == "decimal128")
    assert (
        store(case.make(rows, nulls=False)).to_pylist() == case.make(rows, nulls=False).to_pylist()
    )


def test_an_aligned_batch_is_not_copied() -> None:
    batch = pa.record_batch({"d": pa.array([1, 2]).cast(pa.decimal128(20, 0))})
    assert align_batch(batch) is batch


@pytest.mark.parametrize(
    "kind",
    [
        pa.month_day_nano_interval(),
        pa.list_(pa.string(), 2),
        pa.list_(pa.struct([("a", pa.int8())]), 2),
        pa.struct([("a", pa.list_(pa.list_(pa.int8()), 3))]),
        pa.sparse_union([pa.field("a", pa.int8())]),
    ],
    ids=str,
)
def test_a_type_that_lance_cannot_store_is_refused_by_column_and_type(kind: Any) -> None:
    with pytest.raises(InvalidRequest, match="column 'odd' cannot have the type") as refused:
        send(pa.nulls(3, kind) if not pa.types.is_union(kind) else _union(), "odd")
    assert refused.value.detail


def test_a_panic_names_the_column_and_its_type() -> None:
    odd = pa.array([["a", "b"], ["c", "d"]], pa.list_(pa.string(), 2))
    batch = pa.record_batch({"fine": [1, 2], "odd": odd})
    told = explain_panic(Exception("a panic"), batch)
    assert "column 'odd' (fixed_size_list<item: string>[2])" in told.message


def _union() -> pa.Array:
    return pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3])])
