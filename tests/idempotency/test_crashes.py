"""A server killed between a change and the note of its answer: the key still answers for it."""

from collections.abc import Iterator
from pathlib import Path

import lance
import pytest

from tests.harness.clients.changes.every import LANCE
from tests.harness.clients.changes.requests import lance as ask_lance
from tests.harness.clients.generated import models
from tests.harness.clients.idempotency_keys import answer, new_key
from tests.harness.data.arrow import people, read_back, send, to_stream, versions
from tests.harness.processes import servers
from tests.harness.processes.crashes import Case, Crash, crash_each, die
from tests.harness.processes.databases import EITHER, new_postgres_database

POINT = "answer not noted"
NAMES = (
    *("Lance CreateNamespace", "Lance DeclareTable", "Lance InsertIntoTable", "Lance UpdateTable"),
    *("Lance DropTable", "Lance CreateTableVersion", "Lance CreateTable", "Lance AlterTransaction"),
)
INSERT = "Lance InsertIntoTable"
CUT_SHORT = ("version recorded", "version named", "version settled")
OTHERS = tuple(name for name in LANCE if f"Lance {name}" not in NAMES)

Crashes = dict[Case, Crash]


@pytest.fixture(scope="module", params=EITHER)
def crashes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crashes]:
    postgres = request.getfixturevalue("postgres") if request.param == "postgresql" else ""
    cases = [*((name, POINT) for name in NAMES), *((INSERT, point) for point in CUT_SHORT)]
    with crash_each(tmp_path_factory.mktemp("crashes"), postgres, cases) as found:
        yield found


@pytest.fixture(scope="module")
def other_crashes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashes]:
    cases = [(f"Lance {name}", POINT) for name in OTHERS]
    with crash_each(tmp_path_factory.mktemp("crashes"), "", cases) as found:
        yield found


def check(crash: Crash, name: str) -> None:
    """The repetitions worked, had no effect, and say what a client needs to read."""
    first, *again = crash.answers
    assert first.status_code in (200, 201, 202), first.text
    assert [answer(each) for each in again] == [answer(first)] * len(again)
    assert crash.effects[1] == crash.effects[2]
    # What is not of the specification has no model.
    model = getattr(models, f"{name.split()[1]}Response", None)
    if model is not None:
        model.from_json(first.text)


@pytest.mark.parametrize("name", NAMES)
def test_the_key_answers_for_the_change(crashes: Crashes, name: str) -> None:
    check(crashes[name, POINT], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_the_key_answers_for_any_other_change(other_crashes: Crashes, name: str) -> None:
    check(other_crashes[f"Lance {name}", POINT], f"Lance {name}")


@pytest.mark.slow
def test_schema_metadata_is_told_as_it_is(other_crashes: Crashes) -> None:
    assert other_crashes["Lance UpdateTableSchemaMetadata", POINT].answers[0].json() == {"a": "b"}


def test_a_namespace_is_there(crashes: Crashes) -> None:
    crash = crashes["Lance CreateNamespace", POINT]
    path = f"/v1/namespace/{crash.namespace}$x/describe"
    assert crash.server.post(path).json()["properties"] == {"a": "b"}


def test_a_declared_table_is_told_where_it_is(crashes: Crashes) -> None:
    crash = crashes["Lance DeclareTable", POINT]
    described = crash.server.post(f"/v1/table/{crash.namespace}$t/describe").json()
    found = crash.answers[0].json()
    assert (found["location"], found["properties"]) == (described["location"], {"a": "b"})


def test_inserted_rows_are_there_once(crashes: Crashes) -> None:
    crash = crashes[INSERT, POINT]
    assert crash.answers[0].json()["version"] == 3
    assert read_back(crash.server, f"{crash.namespace}$t") == people(1, 2, 3, 4).to_pylist()


def test_updated_rows_are_updated_once(crashes: Crashes) -> None:
    crash = crashes["Lance UpdateTable", POINT]
    assert crash.answers[0].json()["version"] == 3
    found = [row["id"] for row in read_back(crash.server, f"{crash.namespace}$t")]
    assert found == [11, 12, 13]


def test_a_created_table_is_told_with_its_version(crashes: Crashes) -> None:
    crash = crashes["Lance CreateTable", POINT]
    found = crash.answers[0].json()
    assert Path(found["location"]).exists()
    assert found["version"] == 1
    assert read_back(crash.server, f"{crash.namespace}$t") == people(1, 2).to_pylist()


def test_a_dropped_table_is_gone(crashes: Crashes) -> None:
    crash = crashes["Lance DropTable", POINT]
    assert crash.server.post(f"/v1/table/{crash.namespace}$t/exists").status_code == 404


def test_a_committed_version_is_told(crashes: Crashes) -> None:
    crash = crashes["Lance CreateTableVersion", POINT]
    assert crash.answers[0].json()["version"]["version"] == 2
    assert versions(crash.server, f"{crash.namespace}$t") == [1, 2]


@pytest.mark.parametrize("point", CUT_SHORT)
def test_rows_of_a_commit_that_was_cut_short_are_there_once(crashes: Crashes, point: str) -> None:
    crash = crashes[INSERT, point]
    check(crash, INSERT)
    assert crash.answers[0].json()["version"] == 3
    assert versions(crash.server, f"{crash.namespace}$t") == [1, 2, 3]
    assert read_back(crash.server, f"{crash.namespace}$t") == people(1, 2, 3, 4).to_pylist()


def test_what_a_client_notes_on_a_transaction_does_not_mislead_its_key(crashes: Crashes) -> None:
    crash = crashes[INSERT, "version settled"]
    id = crash.answers[0].json()["transaction_id"]
    action = {"setPropertyAction": {"key": "version", "value": "the best"}}
    crash.server.post(f"/v1/transaction/{id}/alter", {"actions": [action]}).raise_for_status()
    again = crash.request.send(crash.server, crash.key)
    assert (again.status_code, again.json().get("version")) == (200, 3), again.text


def test_a_key_does_not_vouch_for_a_commit_that_was_taken_back(tmp_path: Path) -> None:
    """Somebody who writes by path takes the version's name before the next server can."""
    with servers.running(tmp_path) as server:
        created = send(server, "/v1/table/t/create", people(1)).raise_for_status()
    request, key = ask_lance("table/t/insert", to_stream(people(2))), new_key()
    die(tmp_path, "", "version recorded", request, key)
    lance.write_dataset(people(3), created.json()["location"], mode="append")
    with servers.running(tmp_path) as server:
        again = request.send(server, key)
        assert again.status_code == 200, again.text
        assert read_back(server, "t") == people(1, 2, 3).to_pylist()


@pytest.mark.slow
def test_a_survivor_answers_for_a_server_that_died(postgres: str, tmp_path: Path) -> None:
    database = new_postgres_database(postgres)
    with servers.running(tmp_path, database=database) as server:
        send(server, "/v1/table/t/create", people(1)).raise_for_status()
        request, key = ask_lance("table/t/insert", to_stream(people(2))), new_key()
        die(tmp_path, database, POINT, request, key)
        again = request.send(server, key)
        assert (again.status_code, again.json()["version"]) == (200, 2)
        assert read_back(server, "t") == people(1, 2).to_pylist()
