"""Materialized views from request to rows, on a real server and a real runner."""

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.data.functions import envelope, new_column, virtual_column
from tests.harness.processes.runners import FINISHED, RunnerProcess, wait
from tests.harness.processes.servers import Server
from tests.harness.views.runner_views import (
    RunnerView,
    Source,
    make_source,
    make_view,
    make_words,
    recording,
    to_base64,
    udtf_spec,
    words_of,
)

# The first test waits for Spark, which starts slowly on a busy machine.
pytestmark = pytest.mark.timeout(400)

# Lance can evaluate the first by itself; the second needs Spark.
BY_LANCE = {"sql": "SELECT id, text || '!' AS said FROM t WHERE id > 2", "dialect": "lance"}
BY_SPARK = "SELECT id, concat(upper(text), '!') AS said FROM t WHERE id % 5 <> 1"


def said_by_lance(source: Source) -> list[tuple[Any, ...]]:
    found = [(row["id"], row["text"] + "!") for row in source.rows() if row["id"] > 2]
    return sorted(found, key=repr)


def said_by_spark(source: Source) -> list[tuple[Any, ...]]:
    rows = source.rows()
    found = [(row["id"], row["text"].upper() + "!") for row in rows if row["id"] % 5 != 1]
    return sorted(found, key=repr)


def counts(found: dict[str, Any]) -> tuple[str, int, int, int]:
    """Mode, and how many rows were inserted, updated and deleted."""
    names = ("rows_inserted", "rows_updated", "rows_deleted")
    inserted, updated, deleted = (int(found[name]) for name in names)
    return found["mode"], inserted, updated, deleted


@pytest.mark.parametrize(
    ("query", "expected"), [(BY_LANCE, said_by_lance), (BY_SPARK, said_by_spark)]
)
def test_a_query_follows_whatever_happens_to_its_table(
    server: Server, runner: RunnerProcess, query: Any, expected: Any
) -> None:
    source = make_source(server, range(10))
    view = make_view(source, query)

    def follow(**body: Any) -> tuple[str, int, int, int]:
        found = view.refresh(**body)
        assert view.show("id", "said") == expected(source)
        return counts(found)

    assert follow() == ("full", len(expected(source)), 0, 0)
    assert follow() == ("none", 0, 0, 0)
    source.append(10, 11)
    version = source.open().version
    assert follow() == ("incremental", 1 if query == BY_SPARK else 2, 0, 0)
    source.update("text", "'other'", "id = 4")
    assert follow() == ("incremental", 0, 1, 0)
    source.update("title", "'other'", "id < 9")
    assert follow() == ("none", 0, 0, 0)
    source.delete("id = 8")
    source.compact()
    assert follow() == ("incremental", 0, 0, 1)
    source.restore(version)
    assert follow() == ("incremental", 1, 1, 0)
    source.overwrite(3, 4, 5, word="x")
    assert follow()[0] in ("incremental", "full")
    assert follow(mode="full") == ("full", 3, 0, 3)


def test_one_changed_document_is_one_call(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    source = make_source(server, range(12))
    view = make_words(source, tmp_path / "calls")

    def follow() -> list[str]:
        found = view.refresh()
        assert view.show("id", "title", "__child_index", "word") == words_of(source)
        calls = view.take_calls()
        assert found["function_calls"] == str(len(calls))
        return calls

    assert len(follow()) == 12
    index(view, "word")
    embed(view, tmp_path / "embedded")
    assert backfill(view) == 24
    source.update("text", "'one two'", "id = 7")
    assert follow() == ["one two"]
    assert [each["index_name"] for each in indexes(view)] == ["word_idx"]
    assert backfill(view) == 2
    source.update("title", "'other'", "id = 5")
    assert follow() == []
    source.append(12)
    source.delete("id IN (0, 1)")
    source.compact()
    assert follow() == ["w12-0"]
    assert follow() == []
    backfill(view)
    assert all(size == len(word) for word, size in view.show("word", "size"))
    assert view.loose_files() == set()


def index(view: RunnerView, column: str) -> None:
    body = {"column": column, "index_type": "BTREE"}
    view.server.post(f"/v1/table/{view.id}/create_index", body).raise_for_status()
    view.open().optimize.optimize_indices()


def indexes(view: RunnerView) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = view.ask("index/list").json()["indexes"]
    return found


def embed(view: RunnerView, log: Path) -> None:
    """Add a column of the user's own to the view."""
    column = virtual_column(recording(log, len), ["word"], {"size": "int64"})
    view.ask("add_columns", {"new_columns": [new_column(column)]})


def backfill(view: RunnerView) -> int:
    """Fill that column; returns how many calls it took."""
    body = {"column": "size"}
    answer = view.server.post(f"/v1/table/{view.id}/backfill_column", body).raise_for_status()
    job = answer.json()["job_id"]
    found = wait(view.server, job, lambda found: found["status"] in FINISHED)
    assert found["status"] == "SUCCEEDED", found
    return int(found["function_calls"])


def test_a_changed_row_costs_its_partition(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    source = make_source(server, range(12))
    view = make_counts(source, tmp_path / "calls")

    def follow() -> str:
        found = view.refresh()
        assert view.show("kind", "size") == sizes_of(source)
        return str(found["function_calls"])

    assert follow() == "3"
    source.update("text", "'longer than before'", "id = 4")
    assert follow() == "1"
    source.update("kind", "'k0'", "id = 5")
    assert follow() == "2"
    source.delete("kind = 'k2'")
    assert follow() == "0"
    assert follow() == "0"
    assert len(view.take_calls()) == 6


def make_counts(source: Source, log: Path) -> RunnerView:
    """A view with the kinds of documents, each with the length of its texts."""

    def measure(table: pa.Table) -> Any:
        sizes = [len(text) for text in table["text"].to_pylist()]
        yield {"kind": table["kind"][0].as_py(), "size": sum(sizes)}

    made = {"kind": pa.string(), "size": pa.int64()}
    inputs = ["kind", "text"]
    call = recording(log, measure)
    spec = udtf_spec("udtf", call, inputs, made, partition_by="kind", input_columns=inputs)
    query = "SELECT kind, text FROM t"
    body = {"kind": "udtf", "udtf_spec": spec, "output_schema": to_base64(made)}
    return make_view(source, query, "counts", log, **body)


def sizes_of(source: Source) -> list[tuple[Any, ...]]:
    found: dict[str, int] = {}
    for row in source.rows():
        found[row["kind"]] = found.get(row["kind"], 0) + len(row["text"])
    return sorted(found.items())


def test_a_column_of_a_query_is_filled_by_a_function(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    source = make_source(server, range(10))
    log = tmp_path / "calls"
    query = {
        "base": {"filter": "id >= 2", "columns": ["id"]},
        "source_table": "t",
        "column_udfs": [
            {
                "output_name": "size",
                "input_columns": ["text"],
                "output_index": 1,
                "udf": {"udf_payload": unpacked(envelope(recording(log, len)))},
            }
        ],
    }
    schema = to_base64({"id": pa.int64(), "size": pa.int64()})
    view = make_view(source, query, log=log, output_schema=schema)

    def follow() -> list[str]:
        found = view.refresh()
        expected = [(r["id"], len(r["text"])) for r in source.rows() if r["id"] >= 2]
        assert view.show("id", "size") == sorted(expected, key=repr)
        calls = view.take_calls()
        assert found["function_calls"] == str(len(calls))
        return calls

    assert len(follow()) == 8
    source.update("text", "'changed'", "id IN (0, 4)")
    assert follow() == ["changed"]
    source.append(10)
    source.delete("id = 3")
    assert follow() == ["w10-0 w10-1"]


def unpacked(packed: str) -> str:
    return base64.b64decode(packed).decode()
