"""A server killed in the middle of a change of tables: nothing is lost, nothing is half done."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.clients import iceberg_tables as tables
from tests.harness.clients.idempotency_keys import answer, new_key
from tests.harness.processes import servers
from tests.harness.processes.crashes import Case, Crash, crash_each, die
from tests.harness.processes.databases import EITHER
from tests.harness.processes.waiting import until

WRITTEN, RECORDED = "table file written", "table recorded"
CHANGED = ("CreateTable", "CommitTable", "CommitTransaction")
BEFORE: list[Case] = [(f"Iceberg {name}", WRITTEN) for name in CHANGED]
AFTER: list[Case] = [(f"Iceberg {name}", RECORDED) for name in CHANGED]

Crashes = dict[Case, Crash]


@pytest.fixture(scope="module", params=EITHER)
def crashes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crashes]:
    postgres = request.getfixturevalue("postgres") if request.param == "postgresql" else ""
    with crash_each(tmp_path_factory.mktemp("crashes"), postgres, BEFORE + AFTER) as found:
        yield found


@pytest.mark.parametrize("case", BEFORE + AFTER, ids=str)
def test_a_change_happened_once_when_its_request_was_repeated(crashes: Crashes, case: Case) -> None:
    before, crashed, repeated = crashes[case].effects
    assert (crashed, repeated) == (before + (case in AFTER), before + 1)
    first, *again = crashes[case].answers
    assert first.status_code in (200, 204), first.text
    assert [answer(each) for each in again] == [answer(first)] * len(again)


@pytest.mark.parametrize("point", [WRITTEN, RECORDED])
def test_the_table_is_what_its_one_commit_says(crashes: Crashes, point: str) -> None:
    crash = crashes["Iceberg CommitTable", point]
    found = tables.load(crash.server, crash.namespace)
    assert found["metadata"] == crash.answers[0].json()["metadata"]
    assert len(found["metadata"]["snapshots"]) == 1
    # A file of before the crash that nobody names does no harm.
    numbers = [name[:5] for name in tables.files(found["metadata-location"])]
    assert numbers == ["00000", "00001", *(["00001"] if point == WRITTEN else [])]


@pytest.mark.parametrize("point", [WRITTEN, RECORDED])
def test_of_a_transaction_all_or_nothing_is_there(crashes: Crashes, point: str) -> None:
    crash = crashes["Iceberg CommitTransaction", point]
    old = tables.load(crash.server, crash.namespace)["metadata"]
    new = tables.load(crash.server, crash.namespace, "x")["metadata"]
    assert len(old["snapshots"]) == 1
    assert new["location"] != old["location"]


@pytest.mark.parametrize("point", [WRITTEN, RECORDED])
def test_without_a_key_the_same_commit_is_done_once(tmp_path: Path, point: str) -> None:
    """What a client does that lost its answer, and reads nothing before it tries again."""
    with servers.running(tmp_path) as server:
        server.post("/v1/namespace/ns/create").raise_for_status()
        metadata = tables.make(server, "ns")["metadata"]
    request = tables.append_to("ns", "t", metadata)
    die(tmp_path, "", point, request, "")
    with servers.running(tmp_path) as server:
        seen = tables.load(server, "ns")["metadata"]
        assert len(seen.get("snapshots", ())) == (point == RECORDED)
        told = request.send(server).raise_for_status().json()["metadata"]
        assert len(told["snapshots"]) == 1
        assert told == tables.load(server, "ns")["metadata"]


def test_a_purge_that_was_interrupted_is_carried_on(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        server.post("/v1/namespace/ns/create").raise_for_status()
        location = tables.make(server, "ns")["metadata"]["location"]
    die(tmp_path, "", "removal recorded", tables.drop("ns", purge=True), new_key())
    assert tables.local(location).exists()
    with servers.running(tmp_path) as server:
        assert server.get(tables.path("ns")).status_code == 404
        until(lambda: not tables.local(location).exists(), "it is still there")


def test_another_server_reads_the_file_and_says_when_it_is_gone(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        server.post("/v1/namespace/ns/create").raise_for_status()
        made = tables.make(server, "ns")
    with servers.running(tmp_path) as server:
        assert tables.load(server, "ns") == made | {"config": {}}
    file = tables.local(made["metadata-location"])
    content = file.read_bytes()
    for damage in (content[:-1], b"", None):
        if damage is None:
            file.unlink()
        else:
            file.write_bytes(damage)
        with servers.running(tmp_path) as server:
            found = server.get(tables.path("ns"))
            status, words = (404, "Failed to open") if damage is None else (503, "cannot be read")
            assert found.status_code == status, found.text
            assert words in found.json()["error"]["message"]
            refused = tables.set_property("ns", a="b").send(server)
            assert refused.status_code == status, refused.text
            told = server.post("/v1/iceberg_table/ns$t/describe")
            assert (told.status_code, told.json()["code"]) == (503, 17)
    with servers.running(tmp_path) as server:
        assert tables.drop("ns", purge=True).send(server).status_code == 204


def test_a_lost_answer_to_a_registration_is_rebuilt_as_one(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        server.post("/v1/namespace/ns/create").raise_for_status()
        made = tables.make(server, "ns")
        tables.drop("ns").send(server).raise_for_status()
    request = tables.register("ns", "t", made["metadata-location"])
    # Not a field of this request, and so without a meaning.
    request.body["stage-create"] = True
    die(tmp_path, "", "answer not noted", request, key := new_key())
    with servers.running(tmp_path) as server:
        told = request.send(server, key).raise_for_status().json()
        assert told["metadata"] == made["metadata"]
