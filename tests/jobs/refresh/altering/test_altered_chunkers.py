"""A chunker takes the place of another: children that both make keep their rows and vectors."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from penstock.jobs.spark.tasks import Engine
from penstock.model.views import Definition
from tests.harness.data.calls import count_calls
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.views.added_columns import add_vectors, calls_of_fill
from tests.harness.views.function_views import FunctionView, make_view
from tests.harness.views.local_views import QUERY, encode_schema

WORD = {"word": pa.string()}


def cut(size: int) -> Callable[[str], Iterator[dict[str, Any]]]:
    """A chunker of so many words."""

    def chunk(text: str) -> Iterator[dict[str, Any]]:
        words = text.split()
        for start in range(0, len(words), size):
            yield {"word": " ".join(words[start : start + size])}

    return chunk


def chunked(folder: Path, engine: Engine = LOCAL_ENGINE, **more: Any) -> FunctionView:
    data = pa.table(
        {
            "id": pa.array(range(4), pa.int64()),
            "text": ["a b c d e", "f", "", "g h"],
            "title": [f"t{n}" for n in range(4)],
        }
    )
    given: dict[str, Any] = {"inputs": ("text",), "inherited": ("id",), "engine": engine} | more
    view = make_view(folder, data, cut(1), "chunker", WORD, **given)
    view.refresh()
    view.take_calls()
    return view


def other(view: FunctionView, compute: Any, outputs: Any = WORD, **more: Any) -> Definition:
    """The same definition with another chunker, whose code lies beside the view."""
    made = make_view(
        *(view.folder, None, compute, "chunker", outputs), kinds={"id": pa.int64()},
        inputs=("text",), inherited=("id",), **more,
    )  # fmt: skip
    function = made.definition.function
    assert function is not None
    code = made.path / "_udfs" / function.sha256
    (view.path / "_udfs" / function.sha256).write_bytes(code.read_bytes())
    return structs.replace(
        view.definition,
        function=structs.replace(function, version="2"),
        schema=made.definition.schema,
        digest="2",
    )


def words(view: FunctionView) -> dict[int, tuple[Any, ...]]:
    found = view.open().to_table(["id", "__child_index", "word", "value"], with_row_id=True)
    return {row.pop("_rowid"): tuple(row.values()) for row in found.to_pylist()}


def test_children_that_both_make_keep_their_vectors(tmp_path: Path) -> None:
    view = chunked(tmp_path)
    vectors = add_vectors(view, "word")
    before = words(view)
    view.open().create_scalar_index("value", "BTREE")
    wanted = other(view, cut(2))
    plan = view.explain_alter(wanted, query=QUERY)
    assert (plan["mode"], plan["function_calls"]) == ("incremental", 4)
    assert (plan["rows_staying"], plan["rows_to_update"], plan["rows_to_insert"]) == (None,) * 3
    assert "the function decides" in plan["unknown"]["rows_staying"]
    assert plan["columns_kept"] == ["id", "word"]
    version = view.open().version
    done = view.alter(wanted, query=QUERY)
    assert (done.function_calls, done.rows_updated, done.rows_deleted) == (4, 2, 0)
    assert view.open().version == version + 1
    assert calls_of_fill(vectors) == ["a b", "c d", "g h"]
    after = words(view)
    # `e` moved from place 4 to 2; `f` is where it was.
    assert sorted(row for id, row in after.items() if id in before) == [
        (0, 2, "e", "vector of e"),
        (1, 0, "f", "vector of f"),
    ]
    assert sorted(row[2] for row in after.values()) == ["a b", "c d", "e", "f", "g h"]
    found = view.open().to_table(["word"], filter="value = 'vector of e'")
    assert found["word"].to_pylist() == ["e"]
    assert view.loose_files() == set()
    view.source.update({"text": "'f x y'"}, where="id = 1")
    view.refresh()
    assert calls_of_fill(vectors) == ["f x", "y"]


def test_where_the_query_changes_too_only_children_in_their_place_stay(tmp_path: Path) -> None:
    view = chunked(tmp_path)
    vectors = add_vectors(view, "word")
    view.alter(other(view, cut(2)), query="SELECT more")
    assert calls_of_fill(vectors) == ["a b", "c d", "e", "g h"]
    assert sorted(row[2] for row in words(view).values()) == ["a b", "c d", "e", "f", "g h"]


def test_columns_that_come_with_another_chunker_are_filled(tmp_path: Path) -> None:
    view = chunked(tmp_path)
    vectors = add_vectors(view, "word")
    wanted = other(view, cut(2))
    fields = [view.open().schema.field(n) for n in ("__source_row_id", "__child_index", "id")]
    own = pa.schema([*fields, ("title", pa.string()), ("word", pa.string())])
    wanted = structs.replace(
        wanted,
        sources=(structs.replace(wanted.sources[0], reads=("id", "text", "title")),),
        inherited=("id", "title"),
        schema=encode_schema(own),
    )
    view.alter(wanted)
    assert view.show("title", "word", "value") == [
        ("t0", "a b", None),
        ("t0", "c d", None),
        ("t0", "e", None),
        ("t1", "f", "vector of f"),
        ("t3", "g h", None),
    ]
    assert calls_of_fill(vectors) == ["a b", "c d", "e", "g h"]


def test_a_chunker_of_other_columns_makes_every_row_anew(tmp_path: Path) -> None:
    def numbers(text: str) -> Iterator[dict[str, Any]]:
        yield {"word": len(text)}

    view = chunked(tmp_path)
    wanted = other(view, numbers, {"word": pa.int64()})
    plan = view.explain_alter(wanted)
    assert (plan["mode"], plan["rows_staying"]) == ("full", 0)
    assert plan["reason"] == "the function is another one, and makes other columns"
    view.alter(wanted)
    assert view.show("word") == [(0,), (1,), (3,), (9,)]


@pytest.mark.parametrize("point", ["altered rows written", "refresh committed"])
def test_a_killed_alteration_keeps_as_much(tmp_path: Path, point: str) -> None:
    view = chunked(tmp_path)
    vectors = add_vectors(view, "word")
    wanted, job = other(view, cut(2)), "0f0e0d0c-killed"
    spec = view.alteration_spec(wanted, QUERY)
    with view.start(job, 1, {"PENSTOCK_CRASH_AT": point}, spec) as dying:
        assert dying.wait() != 0
    assert sum(count_calls(log) for log in view.folder.glob("*/calls")) == 4
    view.alter(wanted, HeldAttempt(job=job, number=2), query=QUERY)
    assert sum(count_calls(log) for log in view.folder.glob("*/calls")) == 4
    assert calls_of_fill(vectors) == ["a b", "c d", "g h"]


def test_children_stay_where_spark_evaluates_the_query(engine: Engine, tmp_path: Path) -> None:
    spark: dict[str, Any] = {
        "language": "spark",
        "where": "id div 2 < 5",
        "columns": {"text": "concat(text, '')", "id": "id", "half": "id div 2"},
        "kinds": {"half": pa.int64()},
        "inherited": ("id", "half"),
    }
    view = chunked(tmp_path, engine, **spark)
    vectors = add_vectors(view, "word")
    before = words(view)
    view.source.update({"text": "'x a b c d e'"}, where="id = 0")
    view.source.update({"title": "'no matter'"}, where="id = 1")
    certificate = view.refresh(verify=True).certificate
    assert certificate is not None
    assert (certificate["is_equal"], certificate["rows"]) == (True, 9)
    assert calls_of_fill(vectors) == ["x"]
    assert before.keys() <= words(view).keys()
    view.source.update({"id": "id + 2"}, where="id = 1")
    view.refresh()
    assert calls_of_fill(vectors) == []
    assert before.keys() <= words(view).keys()
    definition = other(view, cut(3))
    wanted = structs.replace(definition, schema=view.definition.schema)
    view.alter(wanted, query=QUERY)
    assert calls_of_fill(vectors) == ["c d e", "g h", "x a b"]
    assert sorted(row[2] for row in words(view).values()) == ["c d e", "f", "g h", "x a b"]
