"""A server killed in the middle of a change of views: nothing is lost, nothing is done twice."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients.changes.every import ICEBERG
from tests.harness.clients.changes.requests import lance
from tests.harness.clients.idempotency_keys import Request, answer, new_key
from tests.harness.data.arrow import people, read_back, send, to_stream
from tests.harness.processes import servers
from tests.harness.processes.crashes import Case, Crash, crash_each
from tests.harness.processes.databases import EITHER, new_postgres_database
from tests.harness.processes.servers import Server

WRITTEN, RECORDED, UNNOTED = "view file written", "view recorded", "answer not noted"
BEFORE: list[Case] = [(f"Iceberg {name}", WRITTEN) for name in ("CreateView", "ReplaceView")]
AFTER: list[Case] = [
    *((f"Iceberg {name}", RECORDED) for name in ("CreateView", "ReplaceView")),
    *((f"Iceberg {name}", UNNOTED) for name in ICEBERG),
]
CREATE, REPLACE = "Iceberg CreateView", "Iceberg ReplaceView"

Crashes = dict[Case, Crash]


@pytest.fixture(scope="module", params=EITHER)
def crashes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crashes]:
    postgres = request.getfixturevalue("postgres") if request.param == "postgresql" else ""
    with crash_each(tmp_path_factory.mktemp("crashes"), postgres, BEFORE + AFTER) as found:
        yield found


def location(response: httpx.Response) -> str:
    found: str = response.raise_for_status().json()["metadata-location"]
    return found


@pytest.mark.parametrize("case", BEFORE, ids=str)
def test_before_the_record_nothing_has_changed_and_the_repetition_does_it_once(
    crashes: Crashes, case: Case
) -> None:
    before, crashed, repeated = crashes[case].effects
    assert (crashed, repeated) == (before, before + 1)
    first, *again = crashes[case].answers
    assert first.status_code == 200, first.text
    assert [answer(each) for each in again] == [answer(first)] * len(again)


@pytest.mark.parametrize("case", AFTER, ids=str)
def test_after_the_record_the_change_is_there_once_and_the_key_answers_for_it(
    crashes: Crashes, case: Case
) -> None:
    before, crashed, repeated = crashes[case].effects
    assert (crashed, repeated) == (before + 1, before + 1)
    first, *again = crashes[case].answers
    assert first.status_code in (200, 204), first.text
    assert [answer(each) for each in again] == [answer(first)] * len(again)


def test_the_file_of_a_view_that_never_came_to_be_is_harmless(crashes: Crashes) -> None:
    crash = crashes[CREATE, WRITTEN]
    assert crash.found.status_code == 404
    found = views.load(crash.server, crash.namespace)
    assert location(crash.answers[0]) == found["metadata-location"]
    lost = crash.server.lake.glob(f"{crash.namespace}.v-*/metadata/*")
    assert len(list(lost)) == 2
    names = crash.server.get(f"{views.ROOT}/namespaces/{crash.namespace}/views").json()
    assert [each["name"] for each in names["identifiers"]] == ["v"]


def test_the_file_of_a_version_that_never_came_to_be_is_harmless(crashes: Crashes) -> None:
    crash = crashes[REPLACE, WRITTEN]
    assert views.texts(crash.found.json()["metadata"]) == ["select 1"]
    found = views.load(crash.server, crash.namespace)
    assert views.texts(found["metadata"]) == ["select 1", "select 2"]
    assert location(crash.answers[0]) == found["metadata-location"] != location(crash.found)
    numbers = [name[:5] for name in views.files(found["metadata-location"])]
    assert numbers == ["00000", "00001", "00001"]


@pytest.mark.parametrize("point", [RECORDED, UNNOTED])
def test_a_created_view_is_told_as_it_was_made(crashes: Crashes, point: str) -> None:
    crash = crashes[CREATE, point]
    assert crash.found.json() == crash.answers[0].json()
    assert views.files(location(crash.found)) == [location(crash.found).rpartition("/")[2]]


@pytest.mark.parametrize("point", [RECORDED, UNNOTED])
def test_a_replaced_view_is_told_with_its_one_new_version(crashes: Crashes, point: str) -> None:
    crash = crashes[REPLACE, point]
    assert crash.found.json() == crash.answers[0].json()
    metadata = views.load(crash.server, crash.namespace)["metadata"]
    assert views.texts(metadata) == ["select 1", "select 2"]
    assert views.logged(metadata) == [1, 2]
    assert len(views.files(location(crash.found))) == 2


def test_other_changes_are_there(crashes: Crashes) -> None:
    crash = crashes["Iceberg RenameView", UNNOTED]
    assert crash.found.status_code == 404
    assert crash.server.get(views.path(crash.namespace, "w")).status_code == 200
    assert crashes["Iceberg DropView", UNNOTED].found.status_code == 404
    crash = crashes["Iceberg RegisterView", UNNOTED]
    assert location(crash.found) == crash.request.body["metadata-location"]
    assert crash.answers[0].json() == crash.found.json()
    crash = crashes["Iceberg CreateNamespace", UNNOTED]
    wanted = {"namespace": [crash.namespace, "x"], "properties": {"a": "b"}}
    assert crash.answers[0].json() == wanted
    crash = crashes["Iceberg DropNamespace", UNNOTED]
    assert crash.server.get(f"{views.ROOT}/namespaces/{crash.namespace}%1Fx").status_code == 404


def test_what_was_missing_is_told_as_missing_after_a_crash(crashes: Crashes) -> None:
    found = crashes["Iceberg UpdateProperties", UNNOTED].answers[0].json()
    assert found == {"updated": ["a"], "removed": ["b"], "missing": ["c"]}


@dataclass
class Fleet:
    """Servers that share a database and die now and then."""

    data: Path
    database: str
    servers: list[Server] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def add(self) -> None:
        self.servers.append(servers.start(self.data, database=self.database))

    def kill_and_restart(self) -> None:
        victim = random.choice(self.servers)
        victim.kill()
        self.servers.remove(victim)
        self.add()

    def insist(self, request: Request, key: str) -> httpx.Response:
        """Repeat a request under its key until somebody answers it."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            try:
                found = request.send(random.choice(self.servers), key)
            except (httpx.HTTPError, IndexError):
                time.sleep(0.05)
                continue
            # A lost race is nobody's fault, and leaves the key free.
            if found.status_code != 409:
                return found
        raise AssertionError("nobody answers")


@pytest.fixture(params=EITHER)
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    """One server on SQLite, two on PostgreSQL."""
    found = Fleet(tmp_path, "")
    if request.param == "postgresql":
        found.database = new_postgres_database(request.getfixturevalue("postgres"))
        found.add()
    found.add()
    yield found
    for server in found.servers:
        server.process.kill()


@pytest.mark.slow
def test_keyed_changes_survive_servers_that_are_killed_under_load(fleet: Fleet) -> None:
    server, writers, changes, kills = fleet.servers[0], 4, 8, 3
    server.post("/v1/namespace/ns/create").raise_for_status()
    limit = {"version.history.num-entries": "1000"}
    views.create("ns", **limit).send(server).raise_for_status()
    send(server, "/v1/table/ns$t/create", people(0)).raise_for_status()

    def write(writer: int) -> None:
        for number in range(changes):
            id = 1 + writer * changes + number
            text = f"select {id + 1}"
            found = fleet.insist(views.replace("ns", "v", text), new_key())
            assert found.status_code == 200, found.text
            assert views.texts(found.json()["metadata"]).count(text) == 1
            rows = lance("table/ns$t/insert", to_stream(people(id)))
            inserted = fleet.insist(rows, new_key())
            assert inserted.status_code == 200, inserted.text

    with ThreadPoolExecutor(writers) as threads:
        working = [threads.submit(write, writer) for writer in range(writers)]
        for _ in range(kills):
            time.sleep(random.uniform(0.3, 0.6))
            fleet.kill_and_restart()
        for each in working:
            each.result(100)
    metadata = views.load(fleet.servers[0], "ns")["metadata"]
    count = writers * changes + 1
    assert Counter(views.texts(metadata)) == Counter(f"select {n}" for n in range(1, count + 1))
    assert sorted(views.logged(metadata)) == list(range(1, count + 1))
    assert [row["id"] for row in read_back(fleet.servers[0], "ns$t")] == list(range(count))
