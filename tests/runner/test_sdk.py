"""The SDK from a function to filled columns and views, on a real server and a real runner."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import JobFailed
from tests.harness.data.tables import new_name
from tests.harness.processes.runners import RunnerProcess
from tests.harness.processes.servers import Server
from tests.harness.root import ROOT

# The first test waits for Spark, which starts slowly on a busy machine.
pytestmark = pytest.mark.timeout(400)

PAGE = ROOT / "docs" / "guides" / "sdk.md"
TEXTS = ["one", "two three", "", "four five six"]


@pytest.fixture
def docs(server: Server) -> Iterator[penstock.Table]:
    with penstock.connect(server.url) as lake:
        space = new_name()
        lake.create_namespace(space)
        yield lake.create_table(f"{space}.docs", {"id": [1, 2, 3, 4], "text": TEXTS})


def count_words(text: str) -> int:
    """A function of this module, which workers do not have."""
    return len(text.split())


@penstock.udf
def words(text: str) -> int:
    return count_words(text)


@penstock.udf(on_error="skip", data_type="float64")
class Inverse:
    def __init__(self, over: float = 12.0) -> None:
        self.over = over

    def __call__(self, text: str) -> float:
        print("inverts", text)
        return self.over / count_words(text)


@penstock.udf(outputs={"low": str, "high": str}, inputs=["text"])
def cases(rows: pa.RecordBatch) -> pa.RecordBatch:
    texts = rows["text"].to_pylist()
    low, high = ([change(text) for text in texts] for change in (str.lower, str.upper))
    return pa.RecordBatch.from_pydict({"low": low, "high": high})


def test_columns_are_declared_previewed_explained_and_filled(
    docs: penstock.Table, runner: RunnerProcess
) -> None:
    docs.add_column("words", words).add_columns(cases).add_column("size", computed="length(text)")
    shown = docs.preview("words", rows=2)
    assert (shown.values, shown.errors) == ([1, 2], [])
    assert "row 0: 1" in repr(shown)
    assert docs.explain_backfill("words").function_calls == 4
    assert docs.backfill("words").function_calls == 4
    assert docs.backfill("low").rows_done == 4
    job = docs.backfill("size", wait=False)
    assert job.wait(timeout=180).status == "SUCCEEDED"
    found = docs.select("words", "high", "size").to_list()
    assert found == [{"words": count_words(t), "high": t.upper(), "size": len(t)} for t in TEXTS]
    docs.update({"text": "seven"}, where="id = 4")
    assert docs.computed_columns()["words"]["stale"]
    assert docs.backfill("words").function_calls == 1
    other: Any = penstock.udf(name="words", version="2")(lambda text: -1)
    docs.alter_column("words", other)
    assert docs.backfill("words").function_calls == 4


def test_rows_that_fail_are_told(docs: penstock.Table, runner: RunnerProcess) -> None:
    docs.add_column("inverse", Inverse)
    job = docs.backfill("inverse")
    assert (job.rows_failed, docs.count("inverse IS NULL")) == (1, 1)
    (failed,) = job.errors()
    assert (failed.error_type, failed.function) == ("ZeroDivisionError", "Inverse")
    assert "self.over / count_words(text)" in failed.traceback
    assert any("inverts two three" in line for line in job.logs())
    strict: Any = penstock.udf(data_type="float64", name="strict")(lambda text: 1 / len(text))
    docs.add_column("strict", strict)
    with pytest.raises(JobFailed, match="ZeroDivisionError"):
        docs.backfill("strict")


def test_old_values_are_stale_after_only_errors_were_filled(
    docs: penstock.Table, runner: RunnerProcess
) -> None:
    docs.add_column("inverse", Inverse)
    job = docs.backfill("inverse")
    assert job.rows_by_state == {"fresh": 3, "stale": 0, "unfilled": 0, "failed": 1}
    other: Any = penstock.udf(data_type="float64", name="Inverse", version="2")(lambda text: 1.0)
    docs.alter_column("inverse", other)
    job = docs.backfill("inverse", errors_only=True)
    assert (job.function_calls, job.rows_left) == (1, 3)
    states = {"fresh": 1, "stale": 3, "unfilled": 0, "failed": 0}
    assert job.rows_by_state == docs.computed_columns()["inverse"]["rows_by_state"] == states
    plan = docs.explain_backfill("inverse")
    assert plan["calls_by_reason"]["function_changed"] == plan.function_calls == 3
    docs.update({"text": "seven"}, where="id = 4")
    assert docs.computed_columns()["inverse"]["rows_by_state"] == states


@penstock.chunker(outputs={"word": str})
def split(text: str) -> Iterator[dict[str, Any]]:
    for word in text.split():
        yield {"word": word}


def test_views_are_filled_and_followed(
    server: Server, docs: penstock.Table, runner: RunnerProcess
) -> None:
    space = docs.id[0]
    with penstock.connect(server.url) as lake:
        view = lake.create_view(f"{space}.v", docs.select("id").where("id > 1"), with_data=True)
        chunks = lake.create_view(f"{space}.c", docs.select("id"), chunker=split)
        assert view.select("id").to_list() == [{"id": 2}, {"id": 3}, {"id": 4}]
        assert chunks.refresh().function_calls == 4
        assert chunks.freshness().watermark == {f"{space}.docs": 1}
        docs.update({"text": "seven"}, where="id = 4")
        assert chunks.freshness().stale
        assert chunks.explain().function_calls == 1
        job = chunks.refresh(mode="incremental")
        assert (job.function_calls, job.properties["mode"]) == (1, "incremental")
        assert chunks.select("word").to_list() == [
            {"word": w} for w in ["one", "two", "three", "seven"]
        ]
        assert chunks.lineage().sources == {f"{space}.docs": 2}
        assert view.refresh().properties["mode"] == "none"


def test_the_blocks_of_the_page_are_a_program(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")[1:]
    program = tmp_path / "page.py"
    program.write_text("\n\n".join(block.partition("```")[0] for block in blocks))
    # Where the page's `connect()` finds the server that is there.
    (tmp_path / "penstock-data").symlink_to(server.data)
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(blocks) >= 10
