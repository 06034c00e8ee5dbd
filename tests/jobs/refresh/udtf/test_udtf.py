"""Views that a function makes of partitions: only what changed is made again."""

import os
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import FunctionFailed, InvalidRequest
from penstock.model.functions import Needs
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.function_views import FunctionView, make_view

OUTPUTS = {"kind": pa.string(), "total": pa.int64(), "count": pa.int64()}


def items(*pairs: tuple[str | None, int], start: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(start, start + len(pairs)), pa.int64()),
            "kind": pa.array([kind for kind, _ in pairs], pa.string()),
            "number": pa.array([number for _, number in pairs], pa.int64()),
            "other": pa.array([0] * len(pairs), pa.int64()),
        }
    )


def total(table: pa.Table) -> Any:
    numbers = table["number"].to_pylist()
    kind = table["kind"][0].as_py() if len(table) else None
    if 13 in numbers:
        raise ValueError("unlucky")
    if 99 in numbers:
        os.kill(os.getpid(), 9)
    return [{"kind": kind, "total": sum(numbers), "count": len(numbers)}] if sum(numbers) else None


def show(table: pa.Table) -> str:
    return f"{table['kind'][0].as_py()}:{table['number'].to_pylist()}"


def totals(folder: Path, *pairs: tuple[str | None, int], **more: Any) -> FunctionView:
    given: dict[str, Any] = {
        "inputs": ("kind", "number"),
        "partition_by": "kind",
        "show": show,
        # What is not read is no reason for anything.
        "columns": {"kind": "kind", "number": "number"},
    } | more
    return make_view(folder, items(*pairs), total, "udtf", OUTPUTS, **given)


def expected(view: FunctionView, where: str | None = None) -> list[tuple[Any, ...]]:
    found: dict[str | None, list[int]] = {}
    for row in view.source.to_table(filter=where).to_pylist():
        found.setdefault(row["kind"], []).append(row["number"])
    made = [(kind, sum(n), len(n)) for kind, n in found.items() if sum(n)]
    return sorted(made, key=repr)


def rows(view: FunctionView) -> list[tuple[Any, ...]]:
    return view.show("kind", "total", "count")


SOME = (("a", 1), ("b", 2), (None, 3), ("a", 4), (None, 5), ("c", 0))


def test_each_partition_is_one_call_and_null_is_one(tmp_path: Path) -> None:
    view = totals(tmp_path, *SOME)
    done = view.refresh()
    assert rows(view) == expected(view)
    assert view.take_calls() == ["None:[3, 5]", "a:[1, 4]", "b:[2]", "c:[0]"]
    assert (done.mode, done.function_calls, done.rows_inserted) == ("full", 4, 3)
    assert view.show("__partition", "total") == [('"a"', 5), ('"b"', 2), ("null", 8)]


def test_only_partitions_with_other_rows_are_made_again(tmp_path: Path) -> None:
    view = totals(tmp_path, *SOME)
    view.refresh()
    view.take_calls()
    view.source.update({"number": "10"}, where="id = 0")
    view.source.update({"other": "1"}, where="id = 1")
    lance.write_dataset(items(("d", 7), start=6), str(view.folder / "source"), mode="append")
    done = view.refresh()
    assert rows(view) == expected(view)
    assert view.take_calls() == ["a:[10, 4]", "d:[7]"]
    assert (done.mode, done.function_calls, done.calls_saved) == ("incremental", 2, 3)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 1, 0)


def test_a_row_that_changes_its_partition_changes_both(tmp_path: Path) -> None:
    view = totals(tmp_path, *SOME)
    view.refresh()
    view.take_calls()
    view.source.update({"kind": "'b'"}, where="id = 0")
    assert view.refresh().function_calls == 2
    assert (len(view.take_calls()), rows(view)) == (2, expected(view))


def test_a_partition_whose_rows_are_gone_is_removed_without_a_call(tmp_path: Path) -> None:
    view = totals(tmp_path, *SOME)
    view.refresh()
    view.take_calls()
    view.source.delete("kind = 'b'")
    done = view.refresh()
    assert (view.take_calls(), rows(view), done.rows_deleted) == ([], expected(view), 1)


def test_nothing_changed_is_no_call(tmp_path: Path) -> None:
    view = totals(tmp_path, *SOME)
    view.refresh()
    view.take_calls()
    view.source.optimize.compact_files()
    view.source.update({"other": "5"})
    assert (view.refresh().mode, view.take_calls()) == ("none", [])


def test_rows_outside_of_the_filter_are_in_no_partition(tmp_path: Path) -> None:
    view = totals(tmp_path, *SOME, where="other = 0")
    view.refresh()
    view.take_calls()
    view.source.update({"other": "1"}, where="id = 3")
    view.refresh()
    assert (view.take_calls(), rows(view)) == (["a:[1]"], expected(view, "other = 0"))


def test_without_a_partitioning_all_rows_are_one_table(tmp_path: Path) -> None:
    view = totals(tmp_path, ("a", 1), ("a", 2), partition_by=None)
    assert view.refresh().function_calls == 1
    assert rows(view) == [("a", 3, 2)]
    view.source.update({"number": "5"}, where="id = 0")
    done = view.refresh()
    assert (done.function_calls, rows(view)) == (1, [("a", 7, 2)])
    view.source.delete("true")
    assert (view.refresh().function_calls, rows(view)) == (0, [])


def test_a_failed_partition_is_left_out_and_tried_again(tmp_path: Path) -> None:
    view = totals(tmp_path, ("a", 1), ("b", 13), ("c", 2), on_error={"action": "skip"})
    done = view.refresh()
    assert (done.rows_failed, rows(view)) == (1, [("a", 1, 1), ("c", 2, 1)])
    (error,) = view.ledger
    assert (error.exception, error.inputs) == ("ValueError", 'partition kind = "b"')
    view.take_calls()
    assert view.refresh().rows_failed == 1
    assert view.take_calls() == ["b:[13]"]
    view.source.update({"number": "3"}, where="id = 1")
    assert view.refresh().rows_failed == 0
    assert (view.take_calls(), rows(view)) == (["b:[3]"], expected(view))


def test_a_partition_that_fails_ends_the_job_by_its_name(tmp_path: Path) -> None:
    view = totals(tmp_path, ("a", 1), ("b", 13))
    with pytest.raises(FunctionFailed, match='failed at partition kind = "b": ValueError'):
        view.refresh()
    assert rows(view) == []


def test_a_partition_that_kills_its_process_is_found(tmp_path: Path) -> None:
    view = totals(tmp_path, ("a", 1), ("b", 99), on_error={"action": "skip"})
    # What died once is tried again apart from its worker.
    done = view.refresh(HeldAttempt(number=2))
    assert (done.rows_failed, rows(view)) == (1, [("a", 1, 1)])
    assert view.ledger[0].exception == "WorkerDied"


def test_another_attempt_takes_what_is_finished(tmp_path: Path) -> None:
    view = totals(tmp_path, *SOME)
    attempt = HeldAttempt()
    attempt.on_fence = _die
    with pytest.raises(KeyboardInterrupt):
        view.refresh(attempt)
    assert len(view.take_calls()) == 4
    view.refresh(HeldAttempt(job=attempt.job, number=2))
    assert (view.take_calls(), rows(view)) == ([], expected(view))


def _die() -> None:
    raise KeyboardInterrupt


def test_a_partition_that_is_too_large_is_refused_by_its_size(tmp_path: Path) -> None:
    wide = pa.table({"kind": ["a"] * 80, "text": ["x" * 2**20] * 80})
    view = make_view(
        tmp_path,
        wide,
        lambda table: [{"size": len(table)}],
        "udtf",
        {"size": pa.int64()},
        inputs=("text",),
        partition_by="kind",
        show=len,
        needs=Needs(memory=64 * 2**20),
    )
    with pytest.raises(FunctionFailed, match='partition kind = "a": its 80 rows have more than'):
        view.refresh()
    assert view.take_calls() == []


def vectors(start: int, count: int, seed: int = 1) -> pa.Table:
    values = np.random.default_rng(seed).random(count * 4, np.float32)
    return pa.table(
        {
            "id": pa.array(range(start, start + count), pa.int64()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(values), 4),
            "number": pa.array([1] * count, pa.int64()),
        }
    )


def count_rows(table: pa.Table) -> list[dict[str, int]]:
    return [{"count": len(table), "total": sum(table["number"].to_pylist())}]


def by_lists(folder: Path) -> FunctionView:
    view = make_view(
        folder,
        vectors(0, 300),
        count_rows,
        "udtf",
        {"count": pa.int64(), "total": pa.int64()},
        inputs=("number",),
        indexed="vector",
        show=len,
    )
    view.source.create_index("vector", "IVF_FLAT", num_partitions=4)
    return view


def test_the_lists_of_a_vector_index_are_partitions(tmp_path: Path) -> None:
    view = by_lists(tmp_path)
    assert view.refresh().function_calls == 4
    assert sum(count for count, _ in view.show("count", "total")) == 300
    assert [p for (p,) in view.show("__partition")] == ["0", "1", "2", "3"]
    view.take_calls()
    assert (view.refresh().mode, view.take_calls()) == ("none", [])


def test_rows_that_the_index_lacks_are_a_partition_of_their_own(tmp_path: Path) -> None:
    view = by_lists(tmp_path)
    view.refresh()
    lance.write_dataset(vectors(300, 10), str(view.folder / "source"), mode="append")
    assert view.refresh().function_calls == 1
    assert ("unindexed", 10) in view.show("__partition", "count")
    view.source.update({"number": "2"}, where="id = 5")
    done = view.refresh()
    assert sum(total for _, total in view.show("count", "total")) == 311
    assert done.function_calls == 1
    view.source.optimize.optimize_indices(num_indices_to_merge=0)
    view.refresh()
    assert "unindexed" not in [p for (p,) in view.show("__partition")]
    assert sum(count for count, _ in view.show("count", "total")) == 310


def test_an_index_that_is_gone_is_named(tmp_path: Path) -> None:
    view = by_lists(tmp_path)
    view.refresh()
    view.source.drop_index("vector_idx")
    with pytest.raises(InvalidRequest, match="column vector has no vector index"):
        view.refresh()
