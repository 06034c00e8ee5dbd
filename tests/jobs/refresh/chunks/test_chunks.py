"""Views that a chunker makes follow their source exactly, and call it for nothing twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.errors import FunctionFailed
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.function_views import FunctionView, make_view

OUTPUTS = {"word": pa.string(), "size": pa.int32()}


def documents(*texts: str, start: int = 0) -> pa.Table:
    ids = range(start, start + len(texts))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": pa.array(texts, pa.string()),
            "title": [f"t{n}" for n in ids],
            "other": pa.array([0] * len(texts), pa.int64()),
        }
    )


def split(text: str) -> Iterator[dict[str, Any]]:
    for word in text.split():
        if word == "bad":
            raise ValueError("a bad word")
        yield {"word": word, "size": len(word)}


def chunked(folder: Path, *texts: str, **more: Any) -> FunctionView:
    given: dict[str, Any] = {"inputs": ("text",), "inherited": ("id", "title")} | more
    return make_view(folder, documents(*texts), split, "chunker", OUTPUTS, **given)


def expected(view: FunctionView, where: str | None = None) -> list[tuple[Any, ...]]:
    """The same in plain Python."""
    rows = view.source.to_table(filter=where, with_row_id=True).to_pylist()
    found = [
        (row["_rowid"], number, row["id"], row["title"], word, len(word))
        for row in rows
        for number, word in enumerate(row["text"].split())
    ]
    return sorted(found, key=repr)


def rows(view: FunctionView) -> list[tuple[Any, ...]]:
    return view.show("__source_row_id", "__child_index", "id", "title", "word", "size")


def test_the_first_refresh_calls_for_every_row(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a bb", "", "c", "d e f")
    done = view.refresh()
    assert rows(view) == expected(view)
    assert view.take_calls() == sorted(["a bb", "", "c", "d e f"])
    assert (done.mode, done.rows_inserted, done.function_calls) == ("full", 6, 4)


def test_a_chunker_that_succeeded_has_done_all_of_its_source_rows(tmp_path: Path) -> None:
    view, attempt = chunked(tmp_path, "a bb", "", "c", "d e f"), HeldAttempt()
    view.refresh(attempt)
    assert (attempt.told["rows_done"], attempt.told["rows_total"]) == (4, 4)


def test_a_refresh_without_a_change_calls_nothing(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a bb", "")
    view.refresh()
    version = view.open().version
    view.take_calls()
    view.source.update({"other": "1"})
    done = view.refresh()
    assert (done.mode, view.open().version, view.take_calls()) == ("none", version, [])


def test_each_change_costs_its_own_rows(tmp_path: Path) -> None:
    view = chunked(tmp_path, *(f"w{n} x" for n in range(20)))
    view.refresh()
    view.take_calls()
    view.source.update({"text": "'changed to this'"}, where="id = 3")
    view.source.update({"text": "''"}, where="id = 4")
    view.source.delete("id = 5")
    lance.write_dataset(documents("new one", start=20), str(view.folder / "source"), mode="append")
    done = view.refresh()
    assert rows(view) == expected(view)
    assert view.take_calls() == ["", "changed to this", "new one"]
    # Of 20 source rows one is gone and one is new.
    assert (done.mode, done.function_calls, done.calls_saved) == ("incremental", 3, 17)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (2, 2, 2)


def test_a_row_that_yields_nothing_is_remembered(tmp_path: Path) -> None:
    view = chunked(tmp_path, "", "a")
    view.refresh()
    view.take_calls()
    view.source.delete("id = 1")
    view.refresh()
    assert (view.take_calls(), rows(view)) == ([], [])


def test_inherited_columns_follow_without_a_call(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "c", "", "d e")
    view.refresh()
    view.take_calls()
    view.source.update({"title": "'other'"}, where="id IN (0, 2, 3)")
    done = view.refresh()
    assert rows(view) == expected(view)
    assert (view.take_calls(), done.function_calls, done.rows_updated) == ([], 0, 2)


def test_inherited_columns_follow_without_a_call_under_a_limit(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "", "c", "d e", "f")
    view.refresh(output_limit=5)
    view.take_calls()
    view.source.update({"title": "'other'"}, where="id IN (0, 1, 2)")
    view.source.update({"text": "'x y'"}, where="id = 2")
    done = view.refresh(output_limit=5)
    assert (view.take_calls(), done.function_calls) == (["x y"], 1)
    assert rows(view) == [row for row in expected(view) if row[0] < 3] + [(3, 0, 3, "t3", "d", 1)]


def test_compaction_and_restore_cost_what_they_change(tmp_path: Path) -> None:
    view = chunked(tmp_path, *(f"w{n}" for n in range(12)), fragments=4)
    view.refresh()
    before = view.source.version
    view.take_calls()
    view.source.optimize.compact_files()
    assert (view.refresh().function_calls, view.take_calls()) == (0, [])
    view.source.update({"text": "'x y'"}, where="id = 1")
    view.refresh()
    assert view.take_calls() == ["x y"]
    source: Any = view.source.checkout_version(before)
    source.restore()
    view.refresh()
    assert (view.take_calls(), rows(view)) == (["w1"], expected(view))


def test_compactions_of_tables_with_indexes_are_no_matter(tmp_path: Path) -> None:
    view = chunked(tmp_path, *(f"w{n} x" for n in range(12)), fragments=4)
    view.refresh()
    view.source.create_scalar_index("id", "BTREE")
    view.open().create_scalar_index("word", "BTREE")
    for text in ("a b", "c"):
        view.source.update({"text": f"'{text}'"}, where="id < 3")
        view.source.optimize.compact_files()
        view.refresh()
        view.open().optimize.compact_files()
        assert rows(view) == expected(view)
    assert view.refresh().mode == "none"


def test_rows_enter_and_leave_the_filter(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "c", "d", where="other = 0")
    view.refresh()
    view.take_calls()
    view.source.update({"other": "1"}, where="id = 0")
    view.refresh()
    assert (view.take_calls(), rows(view)) == ([], expected(view, "other = 0"))
    view.source.update({"other": "0"}, where="id = 0")
    view.refresh()
    assert (view.take_calls(), rows(view)) == (["a b"], expected(view, "other = 0"))


def test_expressions_are_inputs_by_their_values(tmp_path: Path) -> None:
    view = chunked(
        tmp_path,
        "A b",
        "c",
        columns={"id": "id", "title": "title", "low": "lower(text)"},
        inputs=("low",),
    )
    view.refresh()
    view.take_calls()
    view.source.update({"text": "'a B'"}, where="id = 0")
    view.source.update({"text": "'D'"}, where="id = 1")
    view.refresh()
    assert view.take_calls() == ["d"]
    assert view.show("word") == [("a",), ("b",), ("d",)]


def test_a_chunker_of_batches_makes_the_same(tmp_path: Path) -> None:
    def by_batch(batch: pa.RecordBatch) -> Iterator[tuple[int, dict[str, Any]]]:
        for index, text in enumerate(batch.column("text").to_pylist()):
            for word in text.split():
                yield index, {"word": word, "size": len(word)}

    view = make_view(
        tmp_path,
        documents("a bb", "", "c d"),
        by_batch,
        "batch_chunker",
        OUTPUTS,
        inputs=("text",),
        inherited=("id", "title"),
        show=lambda batch: batch.num_rows,
    )
    assert view.refresh().function_calls == 3
    assert rows(view) == expected(view)


def test_failed_rows_are_in_the_ledger_and_tried_again(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a", "bad b", "c", on_error={"action": "skip"})
    done = view.refresh()
    assert done.rows_failed == 1
    assert [(e.row_id, e.exception) for e in view.ledger] == [(1, "ValueError")]
    assert view.show("word") == [("a",), ("c",)]
    view.take_calls()
    assert view.refresh().rows_failed == 1
    assert view.take_calls() == ["bad b"]
    view.source.update({"text": "'good'"}, where="id = 1")
    assert view.refresh().rows_failed == 0
    assert (view.take_calls(), rows(view)) == (["good"], expected(view))
    assert view.refresh().mode == "none"


def test_a_row_that_fails_now_loses_its_old_children(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a", "b", on_error={"action": "skip"})
    view.refresh()
    view.source.update({"text": "'bad'"}, where="id = 1")
    view.refresh()
    assert view.show("word") == [("a",)]
    view.source.delete("id = 1")
    assert view.refresh().rows_failed == 0


def test_a_row_that_fails_ends_the_job_and_changes_nothing(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a", "bad")
    with pytest.raises(FunctionFailed, match=r"failed at row id 1 .*ValueError: a bad word"):
        view.refresh()
    assert rows(view) == []
    assert [error.row_id for error in view.ledger] == [1]


def test_too_many_failed_rows_end_the_job(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a", "bad", "bad", on_error={"action": "skip", "max_failed_rows": 1})
    with pytest.raises(FunctionFailed, match=r"more than (max_failed_rows = 1|1 rows failed)"):
        view.refresh()


def test_another_attempt_takes_what_is_finished(tmp_path: Path) -> None:
    view = chunked(tmp_path, *(f"w{n} x" for n in range(100)))
    attempt = HeldAttempt()
    attempt.on_fence = _die
    with pytest.raises(KeyboardInterrupt):
        view.refresh(attempt)
    assert len(view.take_calls()) == 100
    done = view.refresh(HeldAttempt(job=attempt.job, number=2))
    assert (view.take_calls(), rows(view)) == ([], expected(view))
    # Calls of all attempts.
    assert done.function_calls == 100


def test_another_attempt_at_what_has_not_changed_keeps_its_version(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "c")
    view.refresh()
    pinned, wanted = view.source.version, expected(view)
    view.take_calls()
    attempt = HeldAttempt()
    attempt.on_fence = _die
    with pytest.raises(KeyboardInterrupt):
        view.refresh(attempt, mode="full")
    assert len(view.take_calls()) == 2
    view.source.update({"text": "'other'"}, where="text = 'c'")
    # With another version, values that were kept for the first attempt would not be true.
    done = view.refresh(HeldAttempt(job=attempt.job, number=2), mode="full")
    assert done.source_versions == {"n$source": pinned}
    assert (view.take_calls(), rows(view)) == ([], wanted)


def _die() -> None:
    raise KeyboardInterrupt


def test_a_limit_keeps_the_first_rows_exactly(tmp_path: Path) -> None:
    view = chunked(tmp_path, *(f"a{n} b{n} c{n}" for n in range(20)))
    done = view.refresh(output_limit=10)
    assert rows(view) == first(view, 10)
    assert len(view.take_calls()) == 4
    assert done.watermark.cut == (3, 0)
    assert view.refresh(output_limit=10).mode == "none"
    assert view.take_calls() == []


def first(view: FunctionView, count: int) -> list[tuple[Any, ...]]:
    return sorted(sorted(expected(view), key=lambda row: row[:2])[:count], key=repr)


def test_the_next_refresh_without_a_limit_brings_the_others_back(tmp_path: Path) -> None:
    view = chunked(tmp_path, *(f"a{n} b{n} c{n}" for n in range(8)))
    view.refresh(output_limit=4)
    view.take_calls()
    view.refresh()
    assert (len(view.take_calls()), rows(view)) == (7, expected(view))
    assert view.refresh().mode == "none"


@pytest.mark.parametrize("limits", [(10, 4), (4, 10), (4, 3), (5, 6), (1, 100), (9, 9)])
def test_limits_may_change(tmp_path: Path, limits: tuple[int, int]) -> None:
    view = chunked(tmp_path, *(f"a{n} b{n} c{n}" for n in range(6)))
    for limit in limits:
        view.refresh(output_limit=limit)
        assert rows(view) == first(view, limit)
    view.source.update({"text": "'x y z w'"}, where="id IN (0, 2)")
    view.source.delete("id = 1")
    view.refresh(output_limit=limits[1])
    assert rows(view) == first(view, limits[1])
    view.source.update({"title": "'t'"}, where="id IN (0, 3)")
    view.refresh(output_limit=limits[1])
    assert rows(view) == first(view, limits[1])
    view.refresh()
    assert rows(view) == expected(view)


def test_the_plan_under_a_limit_tells_no_number_that_only_the_calls_decide(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a", "b c", "d e f", "g")
    view.refresh(output_limit=4)
    view.source.update({"text": "'x y z'"}, where="id = 0")
    plan = view.explain(output_limit=4)
    assert (plan["rows_to_insert"], plan["rows_to_update"], plan["rows_to_delete"]) == (None,) * 3
    done = view.refresh(output_limit=4)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 1, 2)
    plan = view.explain(output_limit=2)
    assert (plan["rows_to_insert"], plan["rows_to_update"], plan["rows_to_delete"]) == (0, 0, 2)


def test_a_limit_that_is_not_reached_leaves_nothing_out(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "c")
    done = view.refresh(output_limit=3)
    assert (rows(view), done.watermark.cut) == (expected(view), None)
    view.take_calls()
    lance.write_dataset(documents("d", start=2), str(view.folder / "source"), mode="append")
    view.refresh()
    assert (view.take_calls(), rows(view)) == (["d"], expected(view))


def test_fragments_have_as_many_rows_as_are_asked_for(tmp_path: Path) -> None:
    view = chunked(tmp_path, *("a b c d" for _ in range(10)))
    view.refresh(max_rows_per_fragment=15)
    sizes = [each.count_rows() for each in view.open().get_fragments()]
    assert (sum(sizes), max(sizes)) == (40, 15)
