"""Children that come out the same keep their rows, and with them what users added to them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.harness.jobs.function_tables import FunctionTable
from tests.harness.jobs.held_attempt import HeldAttempt, once
from tests.harness.views.added_columns import add_vectors, calls_of_fill
from tests.harness.views.function_views import FunctionView, make_view

WORD = {"word": pa.string()}
PLACED = {"word": pa.string(), "start": pa.int32()}
Row = tuple[int, int, str, str, str | None]


def split(text: str) -> Iterator[dict[str, Any]]:
    for word in text.split():
        if word == "bad":
            raise ValueError("a bad word")
        yield {"word": word}


def split_placed(text: str) -> Iterator[dict[str, Any]]:
    at = 0
    for word in text.split():
        yield {"word": word, "start": at}
        at += len(word) + 1


def chunked(folder: Path, *texts: str, compute: Any = split, **more: Any) -> FunctionView:
    given: dict[str, Any] = {"inputs": ("text",), "inherited": ("title",), "outputs": WORD} | more
    data = pa.table(
        {
            "id": pa.array(range(len(texts)), pa.int64()),
            "text": pa.array(texts, pa.string()),
            "title": [f"t{n}" for n in range(len(texts))],
        }
    )
    view = make_view(folder, data, compute, "chunker", given.pop("outputs"), **given)
    view.refresh()
    view.take_calls()
    return view


def edit(view: FunctionView, id: int, text: str) -> None:
    view.source.update({"text": f"'{text}'"}, where=f"id = {id}")


def rows(view: FunctionView) -> dict[int, Row]:
    """The view's rows by their ids."""
    names = ("__source_row_id", "__child_index", "title", "word", "value")
    found = view.open().to_table(columns=list(names), with_row_id=True).to_pylist()
    by_id = {row["_rowid"]: tuple(row[name] for name in names) for row in found}
    assert len(by_id) == len(found)
    return by_id


def check(view: FunctionView, vectors: FunctionTable, *calls: str) -> dict[int, Row]:
    """The view is what plain Python makes, and filling its vectors takes these calls."""
    assert calls_of_fill(vectors) == sorted(calls)
    found = rows(view)
    source = view.source.to_table(with_row_id=True).to_pylist()
    assert sorted(found.values()) == sorted(
        (row["_rowid"], number, row["title"], word, f"vector of {word}")
        for row in source
        for number, word in enumerate(row["text"].split())
    )
    return found


def test_an_edited_sentence_costs_one_call(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b c d", "e f")
    vectors = add_vectors(view, "word")
    before = rows(view)
    edit(view, 0, "a b new d")
    plan = view.explain()
    assert (plan["rows_to_update"], plan["function_calls"]) == (None, 1)
    done = view.refresh()
    assert (done.function_calls, done.rows_updated, done.rows_inserted) == (1, 1, 0)
    after = check(view, vectors, "new")
    assert {id for id in before if id not in after} == {
        id for id, row in before.items() if row[3] == "c"
    }
    assert all(after[id] == before[id] for id in before.keys() & after.keys())


def test_a_paragraph_at_the_top_costs_one_call(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b c", "e f")
    vectors = add_vectors(view, "word")
    for column in ("word", "value", "__child_index"):
        view.open().create_scalar_index(column, "BTREE")
    before = {id: row[3] for id, row in rows(view).items()}
    edit(view, 0, "new a b c")
    view.refresh()
    after = check(view, vectors, "new")
    assert before.items() <= {id: row[3] for id, row in after.items()}.items()
    # Indexes know rows that moved once, by the values that they have now.
    for where, words in (
        ("word = 'b'", ["b"]),
        ("value = 'vector of b'", ["b"]),
        ("__child_index = 1", ["a", "f"]),
        ("__child_index = 3", ["c"]),
    ):
        assert sorted(view.open().to_table(["word"], filter=where)["word"].to_pylist()) == words
    assert view.loose_files() == set()


def test_children_that_are_told_apart_by_a_place_keep_their_vectors(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b c", "e f", compute=split_placed, outputs=PLACED)
    view.open().add_columns({"label": "concat('label of ', word)"})
    vectors = add_vectors(view, "word")
    before = rows(view)
    edit(view, 0, "a new b c")
    view.refresh()
    after = check(view, vectors, "new")
    assert before.keys() <= after.keys()
    # A label is somebody's, and only fits a child that is the same in all that was made.
    labels = view.open().to_table(["word", "start", "label"]).to_pylist()
    assert {(row["word"], row["start"]): row["label"] for row in labels} == {
        ("a", 0): "label of a",
        ("new", 2): None,
        ("b", 6): None,
        ("c", 8): None,
        ("e", 0): "label of e",
        ("f", 2): "label of f",
    }


def test_duplicates_are_matched_one_by_one(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b a a", "b b")
    vectors = add_vectors(view, "word")
    before = rows(view)
    edit(view, 0, "b a a a a")
    edit(view, 1, "b")
    view.refresh()
    after = check(view, vectors, "a")
    assert len(before.keys() & after.keys()) == 5


def test_what_comes_out_the_same_changes_nothing(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "c")
    vectors = add_vectors(view, "word")
    version = view.open().version
    edit(view, 0, "a  b ")
    done = view.refresh()
    assert (done.function_calls, done.rows_updated, done.rows_deleted) == (1, 0, 0)
    assert view.open().version == version
    check(view, vectors)


def test_children_that_inherit_other_values_keep_their_rows(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "c d")
    vectors = add_vectors(view, "word")
    before = rows(view)
    view.source.update({"title": "'other'"}, where="id = 0")
    edit(view, 1, "x c")
    view.source.update({"title": "'third'"}, where="id = 1")
    plan = view.explain()
    assert (plan["function_calls"], plan["rows_to_update"]) == (1, None)
    assert view.refresh().rows_updated == 2
    after = check(view, vectors, "x")
    assert len(before.keys() & after.keys()) == 3


def test_a_vector_of_an_inherited_value_is_made_anew(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "c")
    vectors = add_vectors(view, "title", "word")
    view.source.update({"title": "'other'"}, where="id = 0")
    view.refresh()
    assert calls_of_fill(vectors) == ["other,a", "other,b"]


def test_children_stay_under_a_limit(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b c", "d e", "f g")
    view.refresh(output_limit=4)
    vectors = add_vectors(view, "word")
    before = rows(view)
    edit(view, 0, "new a b")
    view.refresh(output_limit=4)
    assert calls_of_fill(vectors) == ["new"]
    after = rows(view)
    assert [row[3] for row in sorted(after.values())] == ["new", "a", "b", "d"]
    assert len(before.keys() & after.keys()) == 3
    # The row that the limit cut is called again, for what it lacks.
    done = view.refresh(output_limit=5)
    assert (done.function_calls, done.rows_updated) == (1, 1)
    assert calls_of_fill(vectors) == ["e"]
    assert after.keys() <= rows(view).keys()
    assert view.refresh(output_limit=5).mode == "none"


def test_a_row_that_fails_loses_its_children_and_no_others(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "c d", on_error={"action": "skip"})
    vectors = add_vectors(view, "word")
    edit(view, 0, "a bad")
    edit(view, 1, "c d e")
    done = view.refresh()
    assert (done.rows_failed, done.rows_updated) == (1, 2)
    assert calls_of_fill(vectors) == ["e"]
    edit(view, 0, "a b")
    view.refresh()
    check(view, vectors, "a", "b")


def test_rows_that_come_and_go_are_counted_as_ever(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "c", "", "d")
    add_vectors(view, "word")
    edit(view, 0, "a b c")
    edit(view, 2, "x y")
    view.source.delete("id = 3")
    done = view.refresh()
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (2, 1, 1)


@pytest.mark.parametrize("point", ["columns carried", "refresh committed"])
def test_another_attempt_after_a_kill_keeps_as_much(tmp_path: Path, point: str) -> None:
    view = chunked(tmp_path, "a b c", "e f")
    vectors = add_vectors(view, "word")
    before = rows(view)
    edit(view, 0, "new a b")
    assert view.die_at(point, "0f0e0d0c-killed") != 0
    assert view.take_calls() == ["new a b"]
    done = view.refresh(HeldAttempt(job="0f0e0d0c-killed", number=2))
    assert (view.take_calls(), done.rows_updated) == ([], 1)
    after = check(view, vectors, "new")
    assert len(before.keys() & after.keys()) == 4
    assert view.loose_files() == set()


def test_what_is_filled_meanwhile_moves_along(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b c", "e f")
    vectors = add_vectors(view, "word")
    edit(view, 0, "b x")
    view.refresh()
    edit(view, 0, "new b x")
    attempt = HeldAttempt()
    filled: list[list[str]] = []
    attempt.on_fence = once(lambda: filled.append(calls_of_fill(vectors)))
    view.refresh(attempt)
    assert filled == [["x"]]
    check(view, vectors, "new")


def test_a_column_that_comes_meanwhile_moves_along(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b", "c")
    vectors = add_vectors(view, "word")
    edit(view, 0, "new a b")
    attempt = HeldAttempt()
    attempt.on_fence = once(lambda: view.open().add_columns({"more": "concat(word, '!')"}))
    view.refresh(attempt)
    assert view.show("word", "more") == [("a", "a!"), ("b", "b!"), ("c", "c!"), ("new", None)]
    check(view, vectors, "new")


def test_a_view_that_is_compacted_meanwhile_is_no_matter(tmp_path: Path) -> None:
    view = chunked(tmp_path, *("a b c" for _ in range(4)), fragments=4)
    vectors = add_vectors(view, "word")
    edit(view, 0, "a new b c")
    view.refresh()
    edit(view, 1, "x a b c")
    attempt = HeldAttempt()
    attempt.on_fence = once(lambda: view.open().optimize.compact_files())
    view.refresh(attempt)
    after = check(view, vectors, "new", "x")
    view.open().optimize.compact_files()
    assert rows(view) == after
    check(view, vectors)


def test_small_fragments_of_rows_that_move(tmp_path: Path) -> None:
    view = chunked(tmp_path, " ".join(f"w{n}" for n in range(20)))
    vectors = add_vectors(view, "word")
    edit(view, 0, " ".join(["new", *(f"w{n}" for n in range(20))]))
    view.refresh(max_rows_per_fragment=6)
    assert sorted(each.count_rows() for each in view.open().get_fragments()) == [1, 2, 6, 6, 6]
    check(view, vectors, "new")


def test_values_are_the_same_exactly(tmp_path: Path) -> None:
    def numbers(text: str) -> list[dict[str, Any]]:
        return [{"x": float(word), "list": [word]} for word in text.split()]

    kinds = {"x": pa.float64(), "list": pa.list_(pa.string())}
    view = chunked(tmp_path, "0 nan 1 2", compute=numbers, outputs=kinds)
    before = dict(view.show("_rowid", "x"))
    edit(view, 0, "-0 nan 1.0 2")
    view.refresh()
    after = {id: x for id, x in view.show("_rowid", "x") if id in before}
    assert sorted(map(str, after.values())) == ["2.0", "nan"]


@pytest.mark.parametrize("is_made", [True, False])
def test_blobs_are_not_compared(tmp_path: Path, is_made: bool) -> None:
    def make(text: str) -> list[dict[str, Any]]:
        made = {"data": text.encode()} if is_made else {}
        return [{"word": word, **made} for word in text.split()]

    blob = pa.field("data", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    kinds: dict[str, Any] = {"word": pa.string(), **({"data": blob} if is_made else {})}
    view = chunked(tmp_path, "a b", "c", compute=make, outputs=kinds)
    if not is_made:
        # A user's own: it is lost where rows move, as they are not copied.
        view.open().add_columns(pa.schema([blob]))
    vectors = add_vectors(view, "word")
    before = rows(view)
    edit(view, 0, "x a b")
    view.refresh()
    after = check(view, vectors, *(["x", "a", "b"] if is_made else ["x"]))
    assert len(before.keys() & after.keys()) == (1 if is_made else 3)


def test_a_view_of_children_sees_only_what_changed(tmp_path: Path) -> None:
    view = chunked(tmp_path, "a b c", "d")
    then = view.open().version
    edit(view, 0, "a b c e")
    view.refresh()
    now = view.open()
    fragments = {each.fragment_id: each.physical_rows for each in now.get_fragments()}
    before = lance.dataset(str(view.path), version=then).get_fragments()
    assert sum(fragments.values()) == sum(each.physical_rows for each in before) + 1
    assert all(each.num_deletions == 0 for each in now.get_fragments())
