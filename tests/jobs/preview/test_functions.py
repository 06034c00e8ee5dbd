"""New functions of an altered view, given some rows of its new query before anything changes."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from msgspec import structs

from penstock.jobs.preview.functions import (
    FIRST_ROWS,
    MOST_ROWS,
    FunctionsPreview,
    choose_partitions,
    preview_functions,
)
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import PreviewSpec
from penstock.model.views import CheckedSql, Definition
from tests.harness.data.calls import take_calls
from tests.harness.jobs.function_tables import store
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.function_views import FunctionView, make_view
from tests.harness.views.local_views import LocalView, define

TEXTS = [f"w{n} x" for n in range(20)]
DATA = pa.table(
    {"id": pa.array(range(20), pa.int64()), "text": TEXTS, "kind": [f"k{n % 4}" for n in range(20)]}
)
SKIP = {"action": "skip"}
WORD = {"word": pa.string()}


def split(text: str) -> Iterator[dict[str, Any]]:
    for word in text.split():
        yield {"word": word}


def fail(*values: Any) -> Any:
    raise ValueError("no good")


def odd(text: str) -> Any:
    if int(text.split()[0][1:]) % 2:
        raise ValueError("odd")
    return [{"word": text}]


def preview(view: LocalView, definition: Definition, rows: int = 8) -> FunctionsPreview:
    """Preview an alteration of a view from one whose function was another."""
    was = structs.replace(definition, function=None, column_functions=(), digest="before")
    altered = replace(view, definition=was).alteration_spec(definition)
    spec = PreviewSpec(
        table=altered.table, table_id=view.id, column="word", rows=rows, altered=altered
    )
    files, version = view.loose_files(), view.open().version
    attempt = HeldAttempt()
    found = preview_functions(spec, view.catalog, lambda: view.engine, attempt)
    assert (view.loose_files(), view.open().version) == (files, version)
    return found


def chunked(folder: Path, function: Any, **more: Any) -> FunctionView:
    return make_view(folder, DATA, function, "chunker", WORD, inputs=("text",), **more)


def test_a_few_rows_of_the_new_query_are_given_to_the_function(tmp_path: Path) -> None:
    view = chunked(tmp_path, split, where="id > 3")
    found = preview(view, view.definition, rows=3)
    assert (found.rows, found.failure, found.untried) == (3, "", "")
    assert view.take_calls() == ["w4 x", "w5 x", "w6 x"]


def test_one_row_that_fails_is_enough_unless_the_function_may_skip_it(tmp_path: Path) -> None:
    view = chunked(tmp_path, odd)
    found = preview(view, view.definition)
    assert "function f (version 1), which makes word" in found.failure
    assert found.failure.endswith("ValueError: odd")
    assert "odd" in found.detail
    tolerant = chunked(tmp_path, odd, on_error=SKIP)
    assert (preview(tolerant, tolerant.definition).failure) == ""
    few = chunked(tmp_path, odd, on_error={**SKIP, "max_failed_rows": 1})
    assert "more than 1 rows failed" in preview(few, few.definition).failure


def test_a_function_that_fails_on_all_rows_is_refused_whatever_it_may_skip(tmp_path: Path) -> None:
    view = chunked(tmp_path, fail, on_error=SKIP)
    found = preview(view, view.definition, rows=2)
    assert "failed on all 2 of them" in found.failure
    assert "ValueError: no good" in found.failure


def test_results_of_another_type_are_a_failure(tmp_path: Path) -> None:
    view = chunked(tmp_path, lambda text: [{"word": 7}])
    assert "TypeError" in preview(view, view.definition).failure
    view = chunked(tmp_path, lambda text: [{"other": "x"}])
    assert "no field word" in preview(view, view.definition).failure


def test_a_function_is_loaded_even_without_rows(tmp_path: Path) -> None:
    view = chunked(tmp_path, split, where="id > 100")
    found = preview(view, view.definition)
    assert (found.rows, found.failure, found.untried) == (0, "", "the new query gives no rows")
    function = structs.replace(view.definition.function, sha256="0" * 64)  # type: ignore[type-var]
    found = preview(view, structs.replace(view.definition, function=function))
    assert "cannot be loaded" in found.failure


def test_functions_in_a_query_are_previewed_one_by_one(tmp_path: Path) -> None:
    view = columns(tmp_path, "lance", {"text": "text"}, lambda text: text.upper())
    assert preview(view, view.definition).rows == 8
    assert len(take_calls(tmp_path / "calls")) == 8
    view = columns(tmp_path, "lance", {"text": "text"}, fail, name="again")
    assert "which makes value, was given some rows" in preview(view, view.definition).failure


def test_rows_that_only_spark_computes_are_previewed(engine: Engine, tmp_path: Path) -> None:
    texts = {"text": "upper(text)"}
    more: dict[str, Any] = {"columns": texts, "language": "spark", "engine": engine}
    view = chunked(tmp_path, split, where="id div 4 > 1", reads=("id", "text"), **more)
    assert preview(view, view.definition, rows=2).rows == 2
    assert view.take_calls() == ["W8 X", "W9 X"]
    view = chunked(tmp_path, split, where="id > 100", reads=("id", "text"), **more)
    assert preview(view, view.definition).untried == "the new query gives no rows"
    view = chunked(tmp_path, fail, reads=("id", "text"), **more)
    assert "ValueError: no good" in preview(view, view.definition).failure


def test_a_function_that_ends_its_process_fails_its_preview(engine: Engine, tmp_path: Path) -> None:
    view = chunked(tmp_path, lambda text: os._exit(3), engine=engine)
    found = preview(view, view.definition, rows=2)
    assert "function f (version 1), which makes word" in found.failure
    assert "process" in found.failure


def test_spark_reads_a_large_source_to_its_end_only_if_its_first_rows_do_not_do(
    engine: Engine, tmp_path: Path
) -> None:
    count = FIRST_ROWS + 10
    texts = [f"w{n}" for n in range(count)]
    data = pa.table({"id": pa.array(range(count), pa.int64()), "text": texts})
    for where, word in (("id div 2 = 2", "W4"), (f"id div 2 = {count // 2 - 1}", f"W{count - 2}")):
        view = make_view(
            *(tmp_path, data, split, "chunker", WORD), inputs=("text",), where=where,
            columns={"text": "upper(text)"}, language="spark", reads=("id", "text"), engine=engine,
        )  # fmt: skip
        assert preview(view, view.definition).rows == 2
        assert view.take_calls()[0] == word


# Partitions --------------------------------------------------------------------------------------


def count(table: pa.Table) -> Any:
    if table["kind"][0].as_py() in ("k3", "K3"):
        raise ValueError("k3 is bad")
    return [{"n": table.num_rows}]


def partitioned(folder: Path, **more: Any) -> FunctionView:
    return make_view(
        folder, DATA, more.pop("function", count), "udtf", {"n": pa.int64()},
        inputs=("kind", "id"), show=lambda table: f"{table['kind'][0]}:{table['id'].to_pylist()}",
        **{"partition_by": "kind"} | more,
    )  # fmt: skip


def test_partitions_are_small_and_of_several_sizes() -> None:
    counts = {"a": 5, "b": 1, "c": MOST_ROWS + 1, "d": 3, "e": MOST_ROWS}
    assert choose_partitions(counts) == ["b", "a", "e"]
    assert choose_partitions({"a": 2}) == ["a"]
    assert choose_partitions({"c": MOST_ROWS + 1}) == []


def test_a_function_of_partitions_is_given_whole_ones(tmp_path: Path) -> None:
    view = partitioned(tmp_path, where="id < 19")
    found = preview(view, view.definition, rows=1)
    assert "some partitions of the query and failed: ValueError: k3 is bad" in found.failure
    assert view.take_calls() == ["k3:[3, 7, 11, 15]"]
    tolerant = partitioned(tmp_path, where="id < 19", on_error=SKIP)
    assert preview(tolerant, tolerant.definition).rows == 3
    assert tolerant.take_calls() == [
        "k1:[1, 5, 9, 13, 17]", "k2:[2, 6, 10, 14, 18]", "k3:[3, 7, 11, 15]"
    ]  # fmt: skip


def test_partitions_that_only_spark_computes_are_given_whole(
    engine: Engine, tmp_path: Path
) -> None:
    more: dict[str, Any] = {"language": "spark", "engine": engine, "reads": ("id", "kind")}
    more["columns"] = {"kind": "upper(kind)", "id": "id + 0"}
    view = partitioned(tmp_path, where="id div 1 < 18 AND kind <> 'k3'", **more)
    assert preview(view, view.definition).rows == 3
    assert view.take_calls() == [
        "K0:[0, 4, 8, 12, 16]", "K1:[1, 5, 9, 13, 17]", "K2:[2, 6, 10, 14]"
    ]  # fmt: skip
    view = partitioned(tmp_path, **more)
    sql = "SELECT kind, id FROM source WHERE kind = 'k3'"
    query = structs.replace(view.definition, shape="whole", rows=None, sql=CheckedSql(sql))
    view.definition = query
    found = preview(view, query)
    assert found.failure.endswith("ValueError: k3 is bad")
    empty = structs.replace(query, sql=CheckedSql(f"{sql} AND id < 0"))
    assert "no partition" in preview(view, empty).untried


def columns(
    folder: Path, language: str, texts: dict[str, str], function: Any, name: str = "view"
) -> LocalView:
    """A view whose column `value` a function makes of a hidden one."""
    (folder / name).mkdir()
    made = store(folder / name, folder / "calls", function, name, inputs=tuple(texts))
    definition = define(
        {"id": "id", **texts}, {"id": pa.int64(), "value": pa.string()}, ("id", "text"),
        engine=language, functions=[made],
    )  # fmt: skip
    view = LocalView(folder, definition, name=name)
    if not (folder / "source").exists():
        lance.write_dataset(DATA, str(folder / "source"), enable_stable_row_ids=True)
    view.create()
    return view
