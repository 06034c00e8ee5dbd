"""The drill of docs/guides/operating.md: back up under writers, restore elsewhere, go on."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.harness.clients.iceberg import Iceberg
from tests.harness.clients.iceberg_views import LoadedView, java_replace, sql
from tests.harness.data.arrow import people, read_back, send
from tests.harness.data.backups import (
    NAMESPACE,
    TABLES,
    fill,
    look_deep,
    read_all,
    run,
    snapshot,
    writing,
)
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, new_postgres_database
from tests.harness.processes.servers import Server


@dataclass(frozen=True)
class Drill:
    """What came of it: the restored server, what is left of the old lake, and what was written."""

    server: Server
    gone: Path
    left: Path
    before: dict[str, int]
    after: dict[str, int]
    restored: dict[str, Any]
    deep: list[str]


@pytest.fixture(scope="module", params=EITHER)
def drill(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Drill]:
    """A backup of each kind of database, restored into the other kind."""
    folder = tmp_path_factory.mktemp("drill")
    other = new_postgres_database(request.getfixturevalue("postgres"))
    old, new = ("", other) if request.param == "sqlite" else (other, "")
    with servers.running(folder / "old", database=old) as server:
        fill(server)
        with writing(server) as writers:
            while len(writers.acknowledged) < 2:
                time.sleep(0.05)
            before = dict(writers.acknowledged)
            run("backup", folder / "backup", *at(folder / "old", old))
            after = dict(writers.acknowledged)
    restored = run("restore", folder / "backup", *at(folder / "new", new))
    shutil.move(folder / "old", folder / "left")
    deep = look_deep(*at(folder / "new", new))
    with servers.running(folder / "new", database=new) as server:
        found = (folder / "old", folder / "left", before, after, restored, deep)
        yield Drill(server, *found)


def at(data: Path, database: str) -> list[str]:
    return ["--data", str(data), *(["--database", database] if database else [])]


def test_everything_is_there(drill: Drill) -> None:
    assert drill.deep[0].endswith("everything is there")
    assert f"{drill.restored['tables']} tables" in drill.deep[0]


def test_every_version_can_be_read_and_is_a_moment(drill: Drill) -> None:
    found = read_all(drill.server)
    for name in TABLES[:2]:
        newest = max(number for table, branch, number in found if (table, branch) == (name, ""))
        written = sorted(id for id in found[name, "", newest]["id"].to_pylist() if id >= 1_000)
        # All that was acknowledged before it, nothing of after it, and no gap.
        assert written == list(range(1_000, 1_000 + len(written)))
        assert drill.before[name] <= 1_000 + len(written) <= drill.after[name] + 1
    assert max(table.num_rows for (_, branch, _), table in found.items() if branch) == 11
    assert found["loose", "", 1].num_rows == 2


def test_locations_are_those_of_the_new_lake(drill: Drill) -> None:
    for name in TABLES:
        answer = drill.server.post(f"/v1/table/{NAMESPACE}${name}/describe")
        assert answer.json()["location"].startswith(f"{drill.server.lake}/")
    loaded = Iceberg(drill.server).get(f"namespaces/{NAMESPACE}/views/seen").ok()
    root = f"file://{drill.server.lake}/"
    assert loaded["metadata-location"].startswith(root)
    assert loaded["metadata"]["location"].startswith(root)


def test_jobs_that_waited_are_canceled(drill: Drill) -> None:
    assert drill.restored["canceled_jobs"] == 1
    listed = drill.server.post("/v1/jobs/list", {"kind": "backfill"}).json()["jobs"]
    assert [job["state"] for job in listed] == ["cancelled"]


def test_a_function_is_there_with_those_who_use_it(drill: Drill) -> None:
    told = drill.server.post(f"/v1/function/{NAMESPACE}$same/describe", {}).json()
    assert [(use["column"], use["version"]) for use in told["used_by"]] == [("same", 1)]
    ask = {"column": "same"}
    queued = drill.server.post(f"/v1/table/{NAMESPACE}$orders/backfill_column", ask)
    assert queued.status_code == 202, queued.text
    drill.server.post("/v1/jobs/cancel", queued.json()).raise_for_status()


def test_what_is_written_goes_to_the_new_lake_alone(drill: Drill) -> None:
    left = snapshot(drill.left)
    path = f"/v1/table/{NAMESPACE}$people"
    send(drill.server, f"{path}/insert", people(7_000)).raise_for_status()
    send(drill.server, f"{path}/insert", people(7_001), branch="dev").raise_for_status()
    send(drill.server, f"/v1/table/{NAMESPACE}$late/create", people(1)).raise_for_status()
    drill.server.post(f"/v1/table/{NAMESPACE}$orders/drop", {}).raise_for_status()
    iceberg = Iceberg(drill.server)
    view = f"namespaces/{NAMESPACE}/views/seen"
    loaded = iceberg.get(view).ok()
    known = LoadedView(loaded["metadata-location"], loaded["metadata"])
    updates = java_replace(known, sql("spark", "select 2 as two"))
    iceberg.post(view, {"requirements": [], "updates": updates}).ok()
    assert snapshot(drill.left) == left
    assert not drill.gone.exists()
    assert {7_000} <= _ids(drill.server, "people", "")
    assert {100, 7_001} <= _ids(drill.server, "people", "dev")


def _ids(server: Server, name: str, branch: str) -> set[int]:
    return {row["id"] for row in read_back(server, f"{NAMESPACE}${name}", branch)}
