"""Values of secrets that are planted in functions of every kind, and looked for everywhere."""

from collections.abc import Iterator
from typing import Any

import lancedb
import pyarrow as pa
import pytest

import penstock
from tests.harness.data.tables import new_name
from tests.harness.jobs.canaries import find_told
from tests.harness.processes.runners import Team, wait
from tests.harness.processes.servers import Server
from tests.runner.conftest import CANARY, FILED

pytestmark = pytest.mark.timeout(400)

SECRETS = {"KEY": "planted", "FILED": "filed"}


@penstock.chunker(outputs={"part": str}, on_error="skip")
def cut(text: str) -> Iterator[dict[str, str]]:
    import os
    import sys

    print(os.environ["KEY"], file=sys.stderr)
    if text == "raise":
        raise ValueError(f"{os.environ['KEY']!r} and {os.environ['FILED']}")
    if text == "return":
        yield {"part": len(os.environ["KEY"]), os.environ["FILED"]: "x"}  # type: ignore[dict-item]
    yield {"part": f"{len(os.environ['KEY'])}"}


@penstock.udf(data_type="int64", on_error="skip")
def measure(text: str) -> int:
    import os

    if text == "return":
        return os.environ["KEY"]  # type: ignore[return-value]
    raise LookupError(os.environ["KEY"]) from ValueError(os.environ["FILED"])


@pytest.fixture
def lake(server: Server, team: Team) -> Iterator[penstock.Lake]:
    team.at_least(1)
    with penstock.connect(server.url) as connected:
        yield connected


def end(server: Server, job: str) -> None:
    wait(server, job, lambda found: found["status"] in ("SUCCEEDED", "FAILED", "CANCELED"))


def test_no_door_tells_a_secret_of_any_kind_of_function(
    server: Server, team: Team, lake: penstock.Lake
) -> None:
    (runner, *_) = team.members
    space, replies, jobs = new_name(), list[str](), list[str]()
    lake.create_namespace(space)
    texts = ["fine", "raise", "return"]
    table = lake.create_table(f"{space}.t", pa.table({"id": [1, 2, 3], "text": texts}))
    lake.create_function(f"{space}.cut", cut, secrets=SECRETS)
    lake.create_function(f"{space}.measure", measure, secrets=SECRETS)
    path = f"/v1/materialized_view/{space}$parts"
    lake.create_view(f"{space}.parts", table.select("id", "text"), chunker=f"{space}.cut")
    jobs.append(server.post(f"{path}/refresh").json()["job_id"])
    end(server, jobs[-1])
    table.add_column("size", f"{space}.measure")
    ask = f"/v1/table/{space}$t"
    replies.append(server.post(f"{ask}/preview_column", {"column": "size", "rows": 3}).text)
    jobs.append(server.post(f"{ask}/backfill_column", {"column": "size"}).json()["job_id"])
    end(server, jobs[-1])
    db = lancedb.connect("db://x", api_key="k", host_override=server.url)
    for job in jobs:
        handle: Any = db.open_job(job)
        replies += [repr(handle.events()), repr(handle.failure), repr(handle.spec)]
        replies.append(server.post("/v1/jobs/describe", {"job_id": job}).text)
        replies.append(server.post("/v1/jobs/query_events", {"job_id": job}).text)
        replies.append(server.post(f"/v1/transaction/{job}/describe").text)
        replies += [server.get(f"/v1/jobs/{job}/{what}").text for what in ("logs", "events")]
    opened = db.open_table("t", namespace_path=[space])
    replies += [repr(opened.function_errors()), repr(opened.schema), repr(db.list_jobs())]
    replies += [str(each) for each in table.errors()]
    replies += [
        server.post(path, body).text
        for path, body in (
            (f"{ask}/errors", {}),
            (f"/v1/table/{space}$parts/errors", {}),
            (f"{ask}/describe", {"load_detailed_metadata": True}),
            (f"{path}/describe", {}),
            (f"{path}/history", {}),
            (f"/v1/function/{space}$cut/describe", {}),
            (f"/v1/function/{space}$measure/describe", {}),
            ("/v1/jobs/list", {}),
        )
    ]
    replies.append(server.get(f"/v1/namespace/{space}/function/list?include_definition=true").text)
    replies.append(server.get("/metrics").text)
    # They ran, and failed with words in which the secrets stood.
    told = "".join(replies)
    assert "LookupError" in told
    assert "ValueError" in told
    assert "***" in told
    parts = lake.view(f"{space}.parts").to_list()
    assert {row["part"] for row in parts} == {str(len(CANARY))}
    printed = [server.output(), "".join(runner.seen)]
    while not runner.lines.empty():
        printed.append(runner.lines.get_nowait())
    assert find_told([CANARY, FILED], [*replies, *printed], [server.data, team.data]) == []


def test_what_looks_for_secrets_finds_them(tmp_path: Any) -> None:
    import base64
    import sqlite3

    import lance

    lance.write_dataset(pa.table({"text": [CANARY] * 3}), tmp_path / "t.lance")
    lance.write_dataset(pa.table({"text": ["x"]}), tmp_path / "t.lance", mode="overwrite")
    (tmp_path / "log").write_text(f"with {FILED}\n")
    with sqlite3.connect(tmp_path / "c.sqlite") as database:
        database.execute("CREATE TABLE a (b)")
        database.execute("INSERT INTO a VALUES (?)", (base64.b64encode(CANARY.encode()),))
    text = base64.b64encode(f"in base64: {FILED}".encode()).decode()
    found = find_told([CANARY, FILED], [text, "fine"], [tmp_path])
    assert len([each for each in found if each == text]) == 1
    for name in ("t.lance", "log", "c.sqlite"):
        assert any(name in each for each in found), (name, found)
