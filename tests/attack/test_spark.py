"""What was taken as a comment, or as somebody's own code, when Spark gets to run it."""

import json
import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.model.jobs import FINISHED
from penstock.server.lance.handlers.jobs import DESCRIBED
from tests.attack.families.sql import T, hide, script
from tests.attack.place import HIDDEN, PIT, SECRET
from tests.attack.world import rows
from tests.harness.data.arrow import send
from tests.harness.data.functions import add_function, virtual_column
from tests.harness.processes.access import GuardedServer, guarded
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.definitions import encode_schema

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ENDS = tuple(DESCRIBED[state] for state in FINISHED)
# Told by the client, so that nobody has to ask Spark for it.
SHAPE = encode_schema(pa.schema([("name", pa.string())]))
ROOT = T.rpartition(".")[0].split(".")


@dataclass(frozen=True)
class Camp:
    """A server with its own runner; an owner of the pit without the right to code, one with it."""

    gate: GuardedServer
    admin: Server
    owner: Server
    maker: Server
    folder: Path

    @property
    def canary(self) -> Path:
        return self.folder / "canary"


@pytest.fixture(scope="module")
def camp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Camp]:
    folder = tmp_path_factory.mktemp("camp")
    with guarded(folder / "data", runner=True) as gate:
        admin = gate.admin()
        for ns in (ROOT[0], PIT, HIDDEN):
            admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
        for ns in (PIT, HIDDEN):
            send(admin, f"/v1/table/{ns}$t/create", rows(ns)).raise_for_status()
        for name in ("owner", "maker"):
            gate.grant(f"the-{name}", "owner", "namespace", *ROOT)
        gate.grant("the-maker", "functions", "namespace", *ROOT)
        owner, maker = (gate.as_(gate.key(f"the-{name}")) for name in ("owner", "maker"))
        yield Camp(gate, admin, owner, maker, folder)


def end_of(server: Server, job: str) -> dict[str, Any]:
    """The job once it has ended, however."""

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = server.post("/v1/jobs/describe", {"job_id": job}).json()
        return found if found["job_state"] in ENDS else None

    return until(look, f"job {job} never ended", seconds=180)


# Where parsers are known to differ, so that a text may be taken; each costs Spark a job.
DIFFER = (
    *("nested comment", "nested hint", "hint that opens", "comment that goes on and opens"),
    *("comment ended by CR", "escape in quotes", "raw string", "template", "backtick and escape"),
)


def test_nothing_behind_a_comment_runs(camp: Camp) -> None:
    jobs = []
    hidden = hide(script(str(camp.canary)))
    for number, text in enumerate(hidden[how] for how in DIFFER):
        view = f"/v1/materialized_view/{PIT}$h{number}"
        body = {"kind": "query", "source_query": text, "output_schema": SHAPE}
        made = camp.owner.post(f"{view}/create", body)
        assert made.status_code in (201, 400), made.text
        if made.status_code == 201:
            jobs.append(camp.owner.post(f"{view}/refresh").raise_for_status().json()["job_id"])
    for job in jobs:
        end_of(camp.owner, job)
    assert not camp.canary.exists(), f"one of {len(jobs)} views ran what it held"
    assert SECRET not in camp.gate.server.output()


class Note:
    """Notes the process that loads it, and is then a function."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        note = f"open({self.folder!r} + '/' + str(__import__('os').getpid()), 'w').close()"
        return eval, (f"({note}, lambda name: len(name))[1]",)


def test_a_function_is_loaded_in_a_worker_and_nowhere_else(camp: Camp) -> None:
    folder = camp.folder / "loaded"
    folder.mkdir(exist_ok=True)
    column = virtual_column(pickle.dumps(Note(str(folder))), ["name"], {"size": "int64"}, name="f")
    add_function(camp.maker, f"{PIT}$t", column).raise_for_status()
    path = f"/v1/table/{PIT}$t/backfill_column"
    job = camp.maker.post(path, {"column": "size"}).raise_for_status().json()["job_id"]
    end = end_of(camp.maker, job)
    loaded = {int(name) for name in os.listdir(folder)}
    assert loaded, json.dumps(end)
    server = camp.gate.server.process.pid
    assert not loaded & {server, *_children(server)}


def _children(pid: int) -> set[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return {int(each) for each in text.split()}
