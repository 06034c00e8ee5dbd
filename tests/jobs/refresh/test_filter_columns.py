"""A column that only the filter reads costs no call, and does not touch rows that stay."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.jobs.spark.tasks import Engine
from tests.harness.jobs.function_tables import store
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.views.function_views import FunctionView, make_view
from tests.harness.views.local_views import LocalView, define

DATA = pa.table(
    {
        "id": pa.array(range(20), pa.int64()),
        "text": [f"a{n} b{n}" if n != 6 else "" for n in range(20)],
        "title": [f"t{n}" for n in range(20)],
        "x": pa.array(range(20), pa.int64()),
        "kind": [f"k{n % 4}" for n in range(20)],
    }
)
# What means the same to Lance, and what only Spark evaluates.
FILTERS = {"lance": "x % 5 <> 0", "spark": "pmod(x, 5) <> 0"}
LANGUAGES = pytest.mark.parametrize("language", ["lance", "spark"])


@pytest.fixture
def runs(request: pytest.FixtureRequest, language: str) -> Engine:
    """Spark where it evaluates the query, else this process."""
    found: Engine = LOCAL_ENGINE if language == "lance" else request.getfixturevalue("engine")
    return found


def split(text: str) -> list[dict[str, Any]]:
    return [{"word": word} for word in text.split()]


def chunked(folder: Path, engine: Engine, language: str) -> FunctionView:
    return make_view(
        folder,
        DATA,
        split,
        "chunker",
        {"word": pa.string()},
        inputs=("text",),
        columns={"id": "id", "text": "text", "title": "title"},
        where=FILTERS[language],
        inherited=("id", "title"),
        engine=engine,
        language=language,
    )


def expected(view: FunctionView) -> list[tuple[Any, ...]]:
    rows = view.source.to_table().to_pylist()
    taken = [row for row in rows if row["x"] % 5]
    found = [(row["id"], row["title"], w) for row in taken for w in row["text"].split()]
    return sorted(found, key=repr)


def look(view: LocalView) -> tuple[Any, ...]:
    """The view's rows with their ids, and its files."""
    now = view.open()
    files = {file.path for each in now.get_fragments() for file in each.data_files()}
    return now.to_table(with_row_id=True).sort_by("_rowid").to_pylist(), files


@LANGUAGES
def test_rows_that_stay_in_a_chunkers_view_are_not_touched(
    runs: Engine, tmp_path: Path, language: str
) -> None:
    view = chunked(tmp_path, runs, language)
    view.refresh()
    before = look(view)
    view.take_calls()
    # One of them has no children.
    view.source.update({"x": "x + 5"}, where="id IN (3, 4, 6)")
    plan, done = view.explain(), view.refresh()
    assert (look(view), view.take_calls(), done.function_calls) == (before, [], 0)
    assert plan["function_calls"] in (0, None)


@LANGUAGES
def test_rows_that_enter_are_called_and_others_go_or_follow(
    runs: Engine, tmp_path: Path, language: str
) -> None:
    view = chunked(tmp_path, runs, language)
    view.refresh()
    view.take_calls()
    view.source.update({"x": "x + 1"}, where="id IN (4, 5, 6)")
    view.source.update({"x": "x + 5", "title": "'other'"}, where="id IN (6, 7)")
    view.source.update({"x": "x + 5"}, where="id IN (8, 10)")
    untouched = {row["_rowid"] for row in look(view)[0] if row["id"] not in (4, 5, 6, 7)}
    plan, done = view.explain(), view.refresh()
    assert (view.take_calls(), done.function_calls) == (["a5 b5"], 1)
    assert view.show("id", "title", "word") == expected(view)
    assert untouched <= {row["_rowid"] for row in look(view)[0]}
    told = done.function_calls, done.rows_updated, done.rows_deleted
    wanted = plan["function_calls"], plan["rows_to_update"], plan["rows_to_delete"]
    assert wanted == (told if language == "lance" else (None, None, None))


@LANGUAGES
def test_rows_that_stay_in_a_query_view_are_not_touched(
    runs: Engine, tmp_path: Path, language: str
) -> None:
    view, log = filled(tmp_path, runs, language)
    view.refresh()
    before = look(view)
    log.unlink()
    view.source.update({"x": "x + 5"}, where="id IN (3, 4, 6)")
    done = view.refresh()
    assert (look(view), log.exists(), done.function_calls) == (before, False, 0)
    view.source.update({"x": "x + 1"}, where="id IN (4, 5, 6)")
    plan, done = view.explain(), view.refresh()
    assert log.read_text().splitlines() == ["a5 b5"]
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 0, 1)
    wanted = {n for n in range(20) if n % 5} - {4} | {5}
    assert {row[0] for row in view.rows().values()} == wanted
    if language == "lance":
        told = plan["rows_to_insert"], plan["rows_to_update"], plan["rows_to_delete"]
        assert (plan["function_calls"], told) == (1, (1, 0, 1))


def filled(folder: Path, engine: Engine, language: str) -> tuple[FunctionView, Path]:
    lance.write_dataset(DATA, str(folder / "source"), enable_stable_row_ids=True)
    (folder / "view").mkdir()
    log = folder / "calls"
    function = store(
        folder / "view", log, str.upper, "1", inputs=("text",), outputs=("loud",), kind="scalar"
    )
    definition = define(
        {"id": "id", "text": "text"},
        {"id": pa.int64(), "text": pa.string(), "loud": pa.string()},
        ("id", "text", "x"),
        where=FILTERS[language],
        engine=language,
        functions=[function],
    )
    view = FunctionView(folder, definition, engine)
    view.create()
    return view, log


def count(rows: pa.Table) -> list[dict[str, Any]]:
    return [{"n": rows.num_rows}]


def test_a_partition_is_given_again_when_its_inputs_changed(tmp_path: Path) -> None:
    view = make_view(
        tmp_path,
        DATA,
        count,
        "udtf",
        {"n": pa.int64()},
        inputs=("text",),
        columns={"text": "text", "kind": "kind"},
        where="x % 5 <> 0",
        partition_by="kind",
        show=lambda rows: " ".join(sorted(rows["text"].to_pylist())[:1]),
    )
    view.refresh()
    before = look(view)
    view.take_calls()
    view.source.update({"x": "x + 5"}, where="id IN (3, 4, 6)")
    assert (view.explain()["function_calls"], view.refresh().function_calls) == (0, 0)
    assert (look(view), view.take_calls()) == (before, [])
    # One row leaves its partition, one goes over to another.
    view.source.update({"x": "x + 1"}, where="id = 4")
    view.source.update({"kind": "'k1'"}, where="id = 2")
    assert (view.explain()["function_calls"], view.refresh().function_calls) == (3, 3)
    assert view.show("__partition", "n") == [('"k0"', 3), ('"k1"', 5), ('"k2"', 3), ('"k3"', 4)]
