"""Functions in lancedb's own words, sync and async, on a real runner."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lancedb import col, udf

from tests.harness.clients.lancedb_modes import ASYNC, SYNC, Lake, event_loop
from tests.harness.data.tables import new_name
from tests.harness.processes.runners import RunnerProcess
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.timeout(400)

WAIT = timedelta(seconds=180)
ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int64()), "text": ["a", "bb", "ccc"]})


@udf
def double(n: int) -> int:
    return n * 2


@udf(
    input_schema=pa.schema([pa.field("text", pa.utf8())]),
    output_schema=pa.schema([pa.field("size", pa.int32()), pa.field("shout", pa.utf8())]),
)
def measure(text):  # type: ignore[no-untyped-def]
    return {"size": len(text), "shout": text.upper()}


@udf
class power:  # noqa: N801
    def __init__(self, exponent: int, plus: int = 1) -> None:
        self.exponent, self.plus = exponent, plus

    def __call__(self, n: int) -> int:
        return int(n**self.exponent) + self.plus


@udf(input_schema=pa.schema([pa.field("n", pa.int64())]), output_schema=pa.int64())
def arrow(n: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.add(n, 100)


@udf
def where(n: int) -> int:
    import os

    return os.getpid()


@pytest.fixture(params=[SYNC, ASYNC])
def lake(server: Server, runner: RunnerProcess, request: pytest.FixtureRequest) -> Iterator[Lake]:
    with event_loop() as loop:
        yield Lake(request.param, server.url, loop)


def fill(lake: Lake, table: Any, column: str) -> Any:
    job = lake.done(table.refresh_column_async(column))
    return lake.done(job.wait(WAIT))


def rows(lake: Lake, table: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = lake.done(lake.query(table).to_arrow()).to_pydict()
    return found


def register(lake: Lake, function: Any, space: str, **more: Any) -> Any:
    database = lake.database
    job = lake.done(database.create_function_async(function, namespace_path=[space], **more))
    return lake.done(job.wait(WAIT))


def test_structs_classes_and_arrays_fill_columns(
    lake: Lake, server: Server, runner: RunnerProcess
) -> None:
    db, space = lake.database, new_name()
    lake.done(db.create_namespace([space]))
    table = lake.done(db.create_table("t", ROWS, namespace_path=[space]))
    measured = register(lake, measure, space)
    lake.done(table.add_columns(measured(text=col("text")).rename(columns={"size": "letters"})))
    lake.done(table.add_columns({"all": measured(text=col("text"))}))
    powered = register(lake, power, space)
    lake.done(table.add_columns({"square": powered(n=col("n"), exponent=2)}))
    lake.done(table.add_columns({"cube": powered(n=col("n"), exponent=3, plus=0)}))
    lake.done(table.add_columns({"more": register(lake, arrow, space)(n=col("n"))}))
    with pytest.raises(Exception, match="exponent"):
        lake.done(table.add_columns({"no": powered(n=col("n"), exponent="x")}))
    lake.done(table.add_columns({"twice": register(lake, double, space)(n=col("n"))}))
    assert fill(lake, table, "twice").rows_assigned == 3
    lake.done(table.add_columns({"where": register(lake, where, space)(n=col("n"))}))
    for column in ("shout", "all", "square", "cube", "more", "where"):
        fill(lake, table, column)
    found = rows(lake, table)
    assert (found["letters"], found["shout"]) == ([1, 2, 3], ["A", "BB", "CCC"])
    assert found["all"][1] == {"size": 2, "shout": "BB"}
    assert (found["square"], found["cube"]) == ([2, 5, 10], [1, 8, 27])
    assert (found["more"], found["twice"]) == ([101, 102, 103], [2, 4, 6])
    # Source text is imported in workers, and in no process of ours.
    assert not {server.process.pid, runner.process.pid} & set(found["where"])


def test_a_view_has_columns_of_functions(server: Server, runner: RunnerProcess) -> None:
    db = lancedb.connect("db://x", api_key="k", host_override=server.url)
    source, view = new_name(), new_name()
    db.create_table(source, ROWS)
    made = db.create_function(double)
    seen = db.create_materialized_view(view, source, select=["n"], where="n > 1")
    seen.table.add_columns({"twice": made(n=col("n"))})
    seen.table.refresh_column_async("twice").wait(WAIT)
    assert sorted(seen.table.search().to_arrow()["twice"].to_pylist()) == [4, 6]
    db.open_table(source).add(ROWS)
    seen.refresh()
    seen.table.refresh_column_async("twice").wait(WAIT)
    assert sorted(seen.table.search().to_arrow()["twice"].to_pylist()) == [4, 4, 6, 6]
    db.drop_materialized_view(view)
    db.drop_function("double", version=made.version)
