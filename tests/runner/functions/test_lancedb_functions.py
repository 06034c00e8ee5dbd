"""Functions in lancedb's own words, sync and async, on a real runner; and their secrets."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lancedb import EnvVarSecret, col, udf
from lancedb.remote.errors import HttpError

from tests.harness.clients.lancedb_modes import ASYNC, SYNC, Lake, event_loop
from tests.harness.data.tables import new_name
from tests.harness.jobs.canaries import find_told
from tests.harness.processes.runners import RunnerProcess, Team
from tests.harness.processes.servers import Server
from tests.runner.conftest import CANARY, FILED

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


# Type checkers take what is decorated for what it was.
@udf(name="leak")
def leak(text: str) -> str:
    import logging
    import os
    import threading

    value = os.environ["KEY"]
    print(value, repr(value), {"key": value})
    print("x" * 5 + value.replace("\n", " "), end="")
    logging.error("with %s", value)
    thread = threading.Thread(target=print, args=(value,))
    thread.start()
    thread.join()
    if text == "raise":
        raise ValueError(f"no access with {value}", {"key": value})
    if text == "return":
        return len(value) * 1.5  # type: ignore[return-value]
    if text == "long":
        raise RuntimeError("y" * 1990 + value)
    if text == "exit":
        os.environ["KEY"] = "another"
        raise SystemExit(value)
    return f"{len(value)} {os.environ.get('PLANTED')} {os.environ['FILED']}".replace(
        os.environ["FILED"], f"{len(os.environ['FILED'])}"
    )


@udf(name="sly")
class sly:  # noqa: N801
    def __init__(self) -> None:
        import os

        print(os.environ["KEY"])
        raise OSError(os.environ["KEY"])

    def __call__(self, text: str) -> str:
        return text


SECRETS = [EnvVarSecret("planted", "KEY"), EnvVarSecret("filed", "FILED")]


def test_secrets_are_told_to_nobody(server: Server, team: Team, tmp_path: Path) -> None:
    (runner, *_) = team.at_least(1)
    db = lancedb.connect("db://x", api_key="k", host_override=server.url)
    space, replies = new_name(), list[str]()
    db.create_namespace([space])
    cases = ["fine", "raise", "return", "long", "exit"]
    table = db.create_table("t", pa.table({"text": cases, "n": [1] * 5}), namespace_path=[space])
    made = db.create_function(leak, secrets=SECRETS, namespace_path=[space])
    table.add_columns({"told": made(text=col("text"))})
    path = f"/v1/table/{space}$t/backfill_column"
    for each in cases:
        body = {"column": "told", "where": f"text = '{each}'"}
        job = server.post(path, body).json()["job_id"]
        with_error = lancedb_wait(db, job)
        replies += [with_error, server.post("/v1/jobs/describe", {"job_id": job}).text]
        replies.append(server.get(f"/v1/jobs/{job}/logs").text)
        replies.append(server.post("/v1/jobs/query_events", {"job_id": job}).text)
    assert rows_of(table) == [f"{len(CANARY)} None {len(FILED)}", None, None, None, None]
    # Its values are in no function that did not ask for them, nor in its process.
    assert "***" in "".join(replies)
    known: Any = sly
    broken = db.create_function(known, secrets=SECRETS[:1], namespace_path=[space])
    table.add_columns({"no": broken(text=col("text"))})
    replies.append(lancedb_wait(db, table.refresh_column_async("no").id))
    assert "sly() raised OSError" in replies[-1]
    missing = db.create_function(
        udf(name="missing")(double._function),
        secrets=[EnvVarSecret("nowhere", "KEY")],
        namespace_path=[space],
    )
    table.add_columns({"none": missing(n=col("n"))})
    told = lancedb_wait(db, table.refresh_column_async("none").id)
    assert "no secret 'nowhere'" in told
    assert "secrets.variables" in told
    replies.append(server.post(f"/v1/table/{space}$t/errors", {}).text)
    replies.append(server.post(f"/v1/function/{space}$leak/describe", {}).text)
    replies.append(server.post(f"/v1/table/{space}$t/preview_column", {"column": "told"}).text)
    for verb in (db.create_secret, db.alter_secret):
        with pytest.raises(HttpError, match=r"secrets\.folder") as refused:
            verb("mine", CANARY)
        replies.append(str(refused.value))
    for ask in (lambda: db.list_secrets(), lambda: db.describe_secret("mine")):
        with pytest.raises(HttpError, match="keeps no secrets"):
            ask()
    with pytest.raises(HttpError, match="keeps no secrets"):
        db.drop_secret("mine")
    environ = Path(f"/proc/{runner.jvm()}/environ").read_bytes()
    texts = [*replies, server.output(), "".join(runner.seen), *drain(runner)]
    assert find_told([CANARY, FILED], texts, [server.data, team.data]) == []
    signs = [*CANARY.splitlines(), FILED]
    assert not any(sign.encode() in environ for sign in signs)


def lancedb_wait(db: Any, job: Any) -> str:
    """How a job ended, as the client tells it."""
    try:
        return repr(db.open_job(job).wait(WAIT))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def rows_of(table: Any) -> list[Any]:
    found: list[Any] = table.search().to_arrow()["told"].to_pylist()
    return found


def drain(runner: RunnerProcess) -> list[str]:
    found = []
    while not runner.lines.empty():
        found.append(runner.lines.get_nowait())
    return found
