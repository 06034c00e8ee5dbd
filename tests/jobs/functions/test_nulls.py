"""Rows with a null among their inputs: null without a call where the function is not to see it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.jobs.functions.batches import BatchSize, cut
from penstock.jobs.functions.nulls import find_called
from tests.harness.data.calls import recorded, take_calls
from tests.harness.jobs.function_tables import FunctionTable, make_table
from tests.harness.jobs.kernel import bench, declare
from tests.harness.views.function_views import make_view

DATA = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "text": ["a", None, "ccc", None, "e", "ffffff"],
        "more": [None, None, 3, 4, 5, None],
    }
)


def calls_of(note: Any) -> tuple[int, int, int, int]:
    return note.computed, note.calls, note.rows_null, note.failed


@pytest.mark.parametrize("isolated", [False, True])
def test_a_null_gives_null_without_a_call(tmp_path: Path, isolated: bool) -> None:
    log = tmp_path / "calls"

    def size(text: str) -> int:
        recorded(log, text)
        return len(text)

    table = bench(tmp_path, DATA, size, ["text"], {"value": pa.int64()}, on_null="null")
    assert table.run(is_second=isolated) is None
    assert table.values() == [1, None, 3, None, 1, 6]
    assert sorted(take_calls(log)) == ["a", "ccc", "e", "ffffff"]
    assert sorted(map(calls_of, table.notes())) == [(3, 2, 1, 0), (3, 2, 1, 0)]


def test_inputs_that_may_be_null_are_seen(tmp_path: Path) -> None:
    def add(text: str, more: int | None) -> int:
        return len(text) + (more or 0)

    table = bench(
        *(tmp_path, DATA, add, ["text", "more"], {"value": pa.int64()}),
        on_null="null",
        may_be_null=(1,),
    )
    assert table.run() is None
    assert table.values() == [1, None, 6, None, 6, 6]
    table = bench(
        tmp_path, DATA, lambda t: t is None, ["text"], {"value": pa.bool_()}, on_null="call"
    )
    assert table.run() is None
    assert table.values() == [False, True, False, True, False, False]


def test_functions_of_arrays_are_given_the_other_rows(tmp_path: Path) -> None:
    def size(text: pa.Array) -> pa.Array:
        assert text.null_count == 0
        return pc.utf8_length(text)

    table = bench(
        tmp_path, DATA, size, ["text"], {"value": pa.int64()}, kind="arrow", on_null="null"
    )
    assert table.run() is None
    assert table.values() == [1, None, 3, None, 1, 6]


def test_failures_name_the_row_and_are_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "calls"

    def size(text: str) -> int:
        recorded(log, text)
        if text in ("ccc", "ffffff"):
            raise ValueError(text)
        return len(text)

    retry = {"action": "retry", "max_attempts": 3, "backoff_seconds": 0, "max_failed_rows": 9}
    table = bench(
        *(tmp_path, DATA, size, ["text"], {"value": pa.int64()}),
        on_null="null",
        on_error=retry,
        fragments=1,
    )
    assert table.run() is None
    assert table.values() == [1, None, None, None, 1, None]
    assert [(e.offset, e.message, e.tries) for e in table.errors()] == [
        (2, "ccc", 3),
        (5, "ffffff", 3),
    ]
    assert [calls_of(note) for note in table.notes()] == [(6, 8, 2, 2)]
    assert len(take_calls(log)) == 8
    table = bench(
        tmp_path, DATA, size, ["text"], {"value": pa.int64()}, on_null="null", fragments=1
    )
    failed = table.run()
    assert failed is not None
    assert "offset 2" in str(failed)


def test_batches_are_measured_by_their_calls() -> None:
    values = [n if n % 10 == 0 else None for n in range(1000)]
    rows = pa.record_batch({"n": pa.array(values, pa.int64())})
    function = declare(b"", ["n"], on_null="null")
    size = BatchSize(16)
    found = list(cut(iter([rows]), size, lambda batch: find_called(batch.columns, function)))
    assert pa.concat_batches(found).equals(rows)
    assert [len(b) - b.column(0).null_count for b in found] == [16] * 6 + [4]
    nothing = pa.record_batch({"n": pa.nulls(200_000, pa.int64())})
    found = list(cut(iter([nothing]), size, lambda batch: find_called(batch.columns, function)))
    assert [len(b) for b in found] == [65_536] * 3 + [3392]


def states(table: FunctionTable) -> tuple[int, ...]:
    return tuple(table.explain()["rows_by_state"].values())


def test_a_row_that_is_null_for_its_input_is_fresh(tmp_path: Path) -> None:
    table = make_table(tmp_path, rows=10, fragments=2, on_null="null")
    table.open().update({"text": "NULL"}, where="id in (1, 2, 7)")
    told = table.explain()
    assert (told["function_calls"], told["rows_null"], states(table)) == (7, 3, (0, 0, 10, 0))
    done = table.fill()
    assert (done.function_calls, done.rows, len(table.take_calls())) == (7, 10, 7)
    assert done.rows_by_state == {"fresh": 10, "stale": 0, "unfilled": 0, "failed": 0}
    assert [id for id, value in sorted(table.values().items()) if value is None] == [1, 2, 7]
    assert (table.fill().function_calls, states(table)) == (0, (10, 0, 0, 0))


def test_a_changed_row_costs_a_call_only_when_it_has_its_inputs(tmp_path: Path) -> None:
    table = make_table(tmp_path, rows=10, fragments=2, on_null="null")
    table.open().update({"text": "NULL"}, where="id in (1, 2)")
    table.fill()
    table.take_calls()
    table.open().update({"text": "'now'"}, where="id = 1")
    table.open().update({"text": "NULL"}, where="id in (4, 5)")
    told = table.explain()
    assert (told["function_calls"], told["rows_null"], states(table)) == (1, 2, (7, 3, 0, 0))
    done = table.fill()
    assert (done.function_calls, table.take_calls()) == (1, ["now,1"])
    assert (done.rows, states(table)) == (3, (10, 0, 0, 0))
    found = table.values()
    assert (found[1], found[2], found[4], found[5]) == ("now:1", None, None, None)


def test_a_chunker_makes_no_rows_of_a_null(tmp_path: Path) -> None:
    def split(text: str) -> Iterator[dict[str, Any]]:
        for word in text.split():
            yield {"word": word}

    data = pa.table({"id": [1, 2, 3], "text": ["a b", None, "c"]})
    outputs = {"word": pa.string()}
    view = make_view(tmp_path, data, split, "chunker", outputs, inputs=["text"], on_null="null")
    done = view.refresh()
    assert (done.function_calls, view.show("word")) == (2, [("a",), ("b",), ("c",)])
    assert (done.rows_failed, len(view.take_calls())) == (0, 2)
    view.source.update({"text": "'d'"}, where="id = 2")
    assert (view.refresh().function_calls, view.take_calls()) == (1, ["d"])
