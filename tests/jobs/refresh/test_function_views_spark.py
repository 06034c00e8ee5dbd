"""Chunkers and udtfs in Spark's own workers, and over queries that Spark evaluates."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from penstock.jobs.spark.tasks import Engine
from tests.harness.views.function_views import FunctionView, make_view

DATA = pa.table(
    {
        "id": pa.array(range(40), pa.int64()),
        "text": [f"a{n} b{n} c{n}" for n in range(40)],
        "kind": [f"k{n % 4}" for n in range(40)],
    }
)


def split(text: str) -> list[dict[str, Any]]:
    return [{"word": word} for word in text.split()]


def by_spark(folder: Path, engine: Engine) -> FunctionView:
    # What Lance would not do: a negative position, and integer division.
    return make_view(
        folder,
        DATA,
        split,
        "chunker",
        {"word": pa.string()},
        inputs=("tail",),
        columns={"tail": "substring(text, -7)", "id": "id", "part": "id div 3"},
        kinds={"part": pa.int64()},
        where="id div 2 < 15",
        inherited=("id", "part"),
        engine=engine,
        language="spark",
    )


def expected(view: FunctionView) -> list[tuple[Any, ...]]:
    rows = view.source.to_table().to_pylist()
    found = [
        (row["id"], row["id"] // 3, word)
        for row in sorted(rows, key=lambda row: row["id"])
        if row["id"] // 2 < 15
        for word in row["text"][-7:].split()
    ]
    return sorted(found, key=repr)


def test_a_chunker_is_given_what_spark_evaluates(engine: Engine, tmp_path: Path) -> None:
    view = by_spark(tmp_path, engine)
    assert view.refresh().function_calls == 30
    assert view.show("id", "part", "word") == expected(view)
    view.take_calls()
    view.source.update({"text": "'x y'"}, where="id = 3")
    view.source.update({"kind": "'other'"}, where="id = 4")
    view.source.delete("id = 5")
    view.refresh()
    assert (len(view.take_calls()), view.show("id", "part", "word")) == (1, expected(view))
    # What a row inherits, and only Spark computes, is another value; what was made is the same.
    view.source.update({"id": "id - 6"}, where="id IN (9, 10)")
    view.refresh()
    assert (view.take_calls(), view.show("id", "part", "word")) == ([], expected(view))


@pytest.mark.slow
def test_what_is_not_the_functions_own_is_verified(engine: Engine, tmp_path: Path) -> None:
    view = by_spark(tmp_path, engine)
    good = view.refresh(verify=True).certificate
    assert good is not None
    rows = view.open().count_rows()
    assert rows > 30
    assert (good["is_equal"], good["rows"], good["rows_expected"]) == (True, rows, rows)
    assert good["function_calls"] == 0
    assert good["columns"] == ["__source_row_id", "id", "part"]
    # Somebody writes by path, and says that it was a refresh.
    spoil(view, {"part": "99"}, "id = 3 AND word = 'b3'")
    bad = view.refresh(verify=True).certificate
    assert bad is not None
    assert (bad["is_equal"], bad["rows_missing"], bad["rows_extra"]) == (False, 1, 1)
    spoil(view, {"part": "1", "__child_index": "7"}, "id = 3 AND word = 'b3'")
    bad = view.refresh(verify=True).certificate
    assert bad is not None
    children = view.open().count_rows("id = 3")
    assert (bad["is_equal"], bad["rows_missing"], bad["rows_extra"]) == (False, *[children] * 2)


def spoil(view: FunctionView, values: dict[str, str], where: str) -> None:
    view.open().update(values, where=where)
    assert view.watermark is not None
    view.watermark = structs.replace(view.watermark, view_version=view.open().version)


@pytest.mark.slow
def test_a_limit_counts_after_spark(engine: Engine, tmp_path: Path) -> None:
    view = by_spark(tmp_path, engine)
    view.refresh(output_limit=5)
    assert view.open().count_rows() == 5
    assert {id for (id,) in view.show("id")} <= {0, 1, 2}
    view.refresh()
    assert view.show("id", "part", "word") == expected(view)


@pytest.mark.slow
def test_a_worker_that_dies_costs_the_row_that_killed_it(engine: Engine, tmp_path: Path) -> None:
    def deadly(text: str) -> list[dict[str, Any]]:
        if text.startswith("a7 "):
            os.kill(os.getpid(), 9)
        return split(text)

    view = make_view(
        tmp_path,
        DATA,
        deadly,
        "chunker",
        {"word": pa.string()},
        inputs=("text",),
        engine=engine,
        on_error={"action": "skip"},
    )
    assert view.refresh().rows_failed == 1
    assert view.open().count_rows() == 39 * 3
    assert [(error.row_id, error.exception) for error in view.ledger] == [(7, "WorkerDied")]


@pytest.mark.parametrize("partition_by", ["kind", None])
def test_partitions_are_divided_among_workers(
    engine: Engine, tmp_path: Path, partition_by: str | None
) -> None:
    view = make_view(
        tmp_path,
        DATA,
        lambda table: pa.table({"total": [sum(table["id"].to_pylist())]}),
        "udtf",
        {"total": pa.int64()},
        inputs=("id",),
        partition_by=partition_by,
        engine=engine,
        show=len,
    )
    view.refresh()
    assert sum(total for (total,) in view.show("total")) == sum(range(40))
    assert view.open().count_rows() == (4 if partition_by else 1)
    view.take_calls()
    made = view.refresh(verify=True).certificate
    assert made is not None
    count = len(view.take_calls())
    assert (made["is_equal"], made["rows"], made["function_calls"]) == (True, count, count)
    assert made["partitions"] == count == (4 if partition_by else 1)
    spoil(view, {"total": "total + 1"}, "true")
    bad = view.refresh(verify=True).certificate
    assert bad is not None
    assert (bad["is_equal"], bad["rows_missing"], bad["rows_extra"]) == (False, count, count)
