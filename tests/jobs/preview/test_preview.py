"""Previews of columns: what they would be for a few rows, with nothing written."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from penstock.errors import FunctionFailed
from penstock.jobs.preview.run import PreviewResult, run_preview
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import PreviewSpec
from penstock.model.functions import Function, FunctionOutput, OnError
from tests.harness.data.functions import envelope
from tests.harness.jobs.computed_tables import ComputedTable, compute
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.processes.servers import Server

TEXTS = ["a", "bb", "", "dddd", "x", "12"]
DATA = pa.table({"id": pa.array(range(6), pa.int64()), "text": TEXTS})


def no_engine() -> Engine:
    raise AssertionError("SQL needs no Spark")


def make_spec(table: ComputedTable, **options: Any) -> PreviewSpec:
    known: dict[str, Any] = msgspec.to_builtins(table.spec())
    return msgspec.convert(known | options, PreviewSpec)


def preview(table: ComputedTable, **options: Any) -> PreviewResult:
    spec = make_spec(table, **{"rows": 10, **options})
    return run_preview(spec, table.catalog, lambda: table.engine, HeldAttempt())


def values(found: PreviewResult, column: str = "value") -> list[Any]:
    return [row.values[column] for row in found.values]


@pytest.fixture(scope="module")
def table(server: Server, engine: Engine) -> ComputedTable:
    return compute(server, engine, fragments=3, data=DATA, expression="10 / length(text)")


def test_sql_is_shown_row_by_row_without_spark(table: ComputedTable) -> None:
    spec = make_spec(table, rows=2, where="length(text) > 1")
    found = run_preview(spec, table.catalog, no_engine, HeldAttempt())
    assert [(row.row_id, row.fragment, row.offset) for row in found.values] == [
        (1, 0, 1),
        (3, 1, 1),
    ]
    assert (values(found), found.errors, found.rows) == ([5, 2], (), 2)
    assert found.rows_per_second
    assert set(table.values().values()) == {None}


def test_a_row_for_which_sql_fails_is_an_error_among_values(table: ComputedTable) -> None:
    found = preview(table)
    assert values(found) == [10, 5, None, 2, 10, 5]
    (error,) = found.errors
    assert (error.row_id, error.fragment, error.offset) == (2, 1, 0)
    assert "text=''" in error.inputs
    assert "zero" in error.message


def test_an_empty_sample_has_no_values(table: ComputedTable) -> None:
    found = preview(table, where="id > 100")
    assert (found.rows, found.values, found.rows_per_second) == (0, (), None)


def store(
    table: ComputedTable, function: Any, kind: str = "scalar", **fields: Any
) -> dict[str, Any]:
    """Put a function into the table's folder, as the catalog does; returns it as a spec has it."""
    content = base64.b64decode(envelope(function, kind))
    sha256 = hashlib.sha256(content).hexdigest()
    folder = Path(table.open().uri) / "_udfs"
    folder.mkdir(exist_ok=True)
    (folder / sha256).write_bytes(content)
    output = FunctionOutput("value", "value", {"type": "int64"})
    made = Function(
        name="f",
        version="1",
        sha256=sha256,
        form="penstock/1",
        kind=kind,  # type: ignore[arg-type]
        inputs=("text",),
        outputs=(output,),
        **fields,
    )
    found: dict[str, Any] = msgspec.to_builtins(made)
    return found


def hard(text: str) -> int:
    print(f"given {text!r}")
    return int(text)


def test_a_function_is_called_for_the_sample_alone(table: ComputedTable) -> None:
    function = store(table, hard)
    before = table.open().version
    found = preview(table, expression=None, function=function, columns=["value"])
    assert values(found) == [None, None, None, None, None, 12]
    assert [error.row_id for error in found.errors] == [0, 1, 2, 3, 4]
    first = found.errors[0]
    assert (first.exception, first.tries) == ("ValueError", 1)
    assert "int(text)" in first.traceback
    assert "a" in first.inputs
    assert found.printed[0] == "given 'a'"
    assert found.seconds > 0
    assert table.open().version == before
    assert table.loose_files() == set()


def test_a_function_that_retries_does_so_in_a_preview(table: ComputedTable, tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def flaky(text: str) -> int:
        with open(calls, "a") as file:
            file.write(f"{text}\n")
        if calls.read_text().count("\n") == 1:
            raise TimeoutError("later")
        return len(text)

    policy = OnError(action="retry", max_attempts=2, backoff_seconds=0.01)
    function = store(table, flaky, on_error=policy)
    found = preview(table, expression=None, function=function, columns=["value"], rows=2)
    assert (values(found), found.errors) == ([1, 2], ())


def test_a_batch_function_is_given_its_inputs_by_name(table: ComputedTable) -> None:
    def lengths(batch: Any) -> Any:
        import pyarrow.compute as pc

        return pc.utf8_length(batch.column("text"))

    function = store(table, lengths, "batch")
    found = preview(table, expression=None, function=function, columns=["value"], where="id < 2")
    assert values(found) == [1, 2]


def test_a_function_without_inputs_is_called_for_each_row(table: ComputedTable) -> None:
    function = store(table, lambda: 7) | {"inputs": []}
    found = preview(table, expression=None, function=function, columns=["value"], rows=3)
    assert values(found) == [7, 7, 7]


def test_a_function_that_cannot_be_loaded_fails_the_preview(table: ComputedTable) -> None:
    function = store(table, hard) | {"sha256": "0" * 64}
    with pytest.raises(FunctionFailed, match="cannot be loaded"):
        preview(table, expression=None, function=function, columns=["value"])
