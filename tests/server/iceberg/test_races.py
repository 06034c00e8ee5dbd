"""Sixteen clients on views: every acknowledged change is there once, and names have one owner."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients.changes.requests import lance
from tests.harness.clients.iceberg_views import read_metadata
from tests.harness.clients.idempotency_keys import CLIENTS, Request, at_once, query
from tests.harness.data.tables import new_name
from tests.harness.processes import servers
from tests.harness.processes.databases import new_postgres_database
from tests.harness.processes.servers import Server

REPLACES = 20


@dataclass(frozen=True)
class Stand:
    """One server, or two that share a database; `stand[n]` takes turns."""

    servers: tuple[Server, ...]
    database: str

    def __getitem__(self, number: int) -> Server:
        return self.servers[number % len(self.servers)]

    def new_namespace(self) -> str:
        name = new_name("ns")
        self[0].post(f"/v1/namespace/{name}/create").raise_for_status()
        return name


@pytest.fixture(
    scope="module",
    params=["sqlite", "postgresql", pytest.param("two servers", marks=pytest.mark.slow)],
)
def stand(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stand]:
    data = tmp_path_factory.mktemp("data")
    if request.param == "sqlite":
        with servers.running(data) as server:
            yield Stand((server,), f"sqlite:///{data / 'catalog.sqlite'}")
        return
    database = new_postgres_database(request.getfixturevalue("postgres"))
    with servers.running(data, database=database) as first:
        if request.param == "postgresql":
            yield Stand((first,), database)
            return
        with servers.running(data, database=database) as second:
            yield Stand((first, second), database)


@dataclass(frozen=True)
class Replaced:
    """What came of many replaces of one view."""

    stand: Stand
    namespace: str
    first: views.Json
    answers: list[tuple[str, views.Json]]

    @property
    def locations(self) -> list[str]:
        return [each["metadata-location"] for each in (self.first, *(a for _, a in self.answers))]


@pytest.fixture(scope="module")
def replaced(stand: Stand) -> Replaced:
    """Sixteen clients replace one view, each twenty times, and once more when a race is lost."""
    namespace = stand.new_namespace()
    limit = {"version.history.num-entries": "1000"}
    first = views.create(namespace, **limit).send(stand[0]).raise_for_status().json()

    def work(client: int) -> list[tuple[str, views.Json]]:
        found = []
        for number in range(REPLACES):
            text = f"select {client}, {number}"
            request = views.replace(namespace, "v", text)
            answer = request.send(stand[client])
            while answer.status_code == 409:
                assert answer.json()["error"]["type"] == "CommitFailedException"
                answer = request.send(stand[client])
            assert answer.status_code == 200, answer.text
            found.append((text, answer.json()))
        return found

    with ThreadPoolExecutor(CLIENTS) as threads:
        answers = [each for part in threads.map(work, range(CLIENTS)) for each in part]
    return Replaced(stand, namespace, first, answers)


def test_every_acknowledged_version_is_there_once(replaced: Replaced) -> None:
    metadata = views.load(replaced.stand[0], replaced.namespace)["metadata"]
    wanted = Counter(["select 1", *(text for text, _ in replaced.answers)])
    assert Counter(views.texts(metadata)) == wanted
    assert len(wanted) == CLIENTS * REPLACES + 1
    ids = [each["version-id"] for each in metadata["versions"]]
    assert sorted(ids) == list(range(1, len(wanted) + 1))


def test_each_was_answered_with_its_own_version(replaced: Replaced) -> None:
    metadata = views.load(replaced.stand[0], replaced.namespace)["metadata"]
    by_id = {each["version-id"]: each for each in metadata["versions"]}
    for text, answer in replaced.answers:
        current = by_id[answer["metadata"]["current-version-id"]]
        assert current["representations"][0]["sql"] == text
        assert views.logged(answer["metadata"])[-1] == current["version-id"]


def test_the_log_tells_the_order_in_which_they_came(replaced: Replaced) -> None:
    metadata = views.load(replaced.stand[0], replaced.namespace)["metadata"]
    logged = views.logged(metadata)
    assert logged == list(range(1, CLIENTS * REPLACES + 2))
    assert metadata["current-version-id"] == logged[-1]
    # Everyone saw the beginning of the same history.
    for _, answer in replaced.answers:
        seen = views.logged(answer["metadata"])
        assert seen == logged[: len(seen)]


def test_each_has_a_file_of_its_own_and_there_are_no_others(replaced: Replaced) -> None:
    assert len(set(replaced.locations)) == CLIENTS * REPLACES + 1
    on_storage = views.files(replaced.first["metadata-location"])
    assert on_storage == sorted(each.rpartition("/")[2] for each in replaced.locations)
    assert [int(name[:5]) for name in on_storage] == list(range(CLIENTS * REPLACES + 1))


def test_each_file_holds_what_was_answered(replaced: Replaced) -> None:
    for _, answer in replaced.answers[::20]:
        assert read_metadata(answer["metadata-location"]) == answer["metadata"]


def check_records(stand: Stand, namespace: str) -> None:
    """Objects and views belong together, the newest files exist, and no others do."""
    objects, records, both = query(
        stand.database,
        [
            f"SELECT count(*) FROM objects WHERE namespace = '{namespace}' AND kind = 'view'",
            "SELECT count(*) FROM views WHERE id NOT IN (SELECT id FROM objects)",
            "SELECT o.name, v.metadata_location, v.folder FROM objects o "
            f"JOIN views v ON v.id = o.id WHERE o.namespace = '{namespace}'",
        ],
    )
    assert (objects[0][0], records[0][0]) == (len(both), 0)
    listed = stand[0].get(f"{views.ROOT}/namespaces/{namespace}/views").json()["identifiers"]
    assert sorted(each["name"] for each in listed) == sorted(name for name, _, _ in both)
    for name, location, _ in both:
        assert views.load(stand[0], namespace, name)["metadata-location"] == location
    owned = {Path(folder).name for _, _, folder in both}
    found = {path.parts[-3] for path in stand[0].lake.glob(f"{namespace}.*/metadata/*")}
    assert found == owned


def race(act: Callable[[int], Request], stand: Stand) -> list[httpx.Response]:
    answers = at_once(lambda n: act(n).send(stand[n]))
    strange = [each.text for each in answers if each.status_code not in (200, 204, 404, 409)]
    assert strange == [], "".join(server.output() for server in stand.servers)
    for each in answers:
        if each.status_code >= 400:
            assert each.json()["error"]["code"] == each.status_code
    return answers


@pytest.mark.parametrize("round_", range(4))
def test_replaces_beside_drops_and_creates_leave_nothing_behind(stand: Stand, round_: int) -> None:
    namespace = stand.new_namespace()
    views.create(namespace).send(stand[0]).raise_for_status()

    def act(number: int) -> Request:
        if number % 8 == 0:
            return views.drop(namespace)
        if number % 8 in (1, 2):
            return views.create(namespace, sql=f"select {number}")
        return views.replace(namespace, "v", f"select 10{number}")

    answers = race(act, stand)
    dropped = sum(each.status_code == 204 for each in answers)
    created = sum(each.status_code == 200 for n, each in enumerate(answers) if n % 8 in (1, 2))
    exists = stand[0].get(views.path(namespace)).status_code == 200
    assert created + 1 - dropped == int(exists)
    check_records(stand, namespace)


@pytest.mark.parametrize("round_", range(4))
def test_replaces_beside_renames_all_land(stand: Stand, round_: int) -> None:
    namespace = stand.new_namespace()
    views.create(namespace).send(stand[0]).raise_for_status()
    names = ("v", "w", "x")

    def act(number: int) -> Request:
        if number < 6:
            return views.rename(namespace, names[number % 3], names[(number + 1) % 3])
        return views.replace(namespace, names[number % 3], f"select 10{number}")

    answers = race(act, stand)
    listed = stand[0].get(f"{views.ROOT}/namespaces/{namespace}/views").json()["identifiers"]
    assert len(listed) == 1
    metadata = views.load(stand[0], namespace, listed[0]["name"])["metadata"]
    landed = [f"select 10{n}" for n in range(6, CLIENTS) if answers[n].status_code == 200]
    assert sorted(views.texts(metadata)) == sorted(["select 1", *landed])
    check_records(stand, namespace)


def test_views_that_trade_names_stay_two(stand: Stand) -> None:
    namespace = stand.new_namespace()
    for name in ("v", "w"):
        views.create(namespace, name, f"select '{name}'").send(stand[0]).raise_for_status()
    renames = [("v", "x"), ("w", "v"), ("x", "w"), ("v", "w")]
    race(lambda n: views.rename(namespace, *renames[n % 4]), stand)
    listed = stand[0].get(f"{views.ROOT}/namespaces/{namespace}/views").json()["identifiers"]
    assert len(listed) == 2
    check_records(stand, namespace)


@pytest.mark.parametrize("round_", range(4))
def test_a_view_and_a_table_of_one_name_have_one_winner(stand: Stand, round_: int) -> None:
    namespace = stand.new_namespace()

    def act(number: int) -> httpx.Response:
        if number % 2:
            return views.create(namespace, "t").send(stand[number // 2])
        return lance(f"table/{namespace}$t/declare").send(stand[number // 2])

    answers = at_once(act)
    assert sorted(each.status_code for each in answers) == [200] + [409] * (CLIENTS - 1)
    is_view = stand[0].get(views.path(namespace, "t")).status_code == 200
    is_table = stand[0].post(f"/v1/table/{namespace}$t/exists").status_code == 200
    winner = next(n for n, each in enumerate(answers) if each.status_code == 200)
    assert (is_view, is_table) == (bool(winner % 2), not winner % 2)
    check_records(stand, namespace)


def test_a_table_and_a_view_renamed_to_one_name_have_one_winner(stand: Stand) -> None:
    namespace = stand.new_namespace()
    for number in range(0, CLIENTS, 2):
        lance(f"table/{namespace}$t{number}/declare").send(stand[0]).raise_for_status()
        views.create(namespace, f"v{number + 1}").send(stand[0]).raise_for_status()

    def act(number: int) -> httpx.Response:
        if number % 2:
            return views.rename(namespace, f"v{number}", "x").send(stand[number // 2])
        body = {"new_table_name": "x"}
        return lance(f"table/{namespace}$t{number}/rename", body).send(stand[number // 2])

    answers = at_once(act)
    won = [each.status_code for each in answers if each.status_code < 400]
    assert len(won) == 1
    assert {each.status_code for each in answers if each.status_code >= 400} == {409}
    check_records(stand, namespace)


def test_a_view_is_never_left_without_its_namespace(stand: Stand) -> None:
    for _ in range(4):
        namespace = stand.new_namespace()
        drop = Request("DELETE", f"{views.ROOT}/namespaces/{namespace}")
        race(lambda n, ns=namespace, drop=drop: views.create(ns) if n % 4 else drop, stand)  # type: ignore[misc]
        path = f"{views.ROOT}/namespaces/{namespace}"
        if stand[0].get(path).status_code == 404:
            assert stand[0].get(views.path(namespace)).status_code == 404
            assert list(stand[0].lake.glob(f"{namespace}.*/metadata/*")) == []
        else:
            check_records(stand, namespace)


def test_one_client_drops_a_view(stand: Stand) -> None:
    namespace = stand.new_namespace()
    views.create(namespace).send(stand[0]).raise_for_status()
    answers = race(lambda n: views.drop(namespace), stand)
    assert Counter(each.status_code for each in answers) == {204: 1, 404: CLIENTS - 1}
    check_records(stand, namespace)


def test_properties_that_sixteen_clients_set_are_all_there(stand: Stand) -> None:
    namespace = stand.new_namespace()
    views.create(namespace).send(stand[0]).raise_for_status()

    def act(number: int) -> Request:
        updates = [{"action": "set-properties", "updates": {f"p{number}": "1"}}]
        return Request("POST", views.path(namespace), {"updates": updates})

    answers = race(act, stand)
    done = {f"p{n}" for n, each in enumerate(answers) if each.status_code == 200}
    assert views.load(stand[0], namespace)["metadata"]["properties"].keys() == done
    assert len(stand.servers) > 1 or len(done) == CLIENTS


def test_namespace_properties_that_sixteen_clients_set_are_all_there(stand: Stand) -> None:
    namespace = stand.new_namespace()
    path = f"{views.ROOT}/namespaces/{namespace}/properties"
    race(lambda n: Request("POST", path, {"updates": {f"p{n}": "1"}}), stand)
    found = stand[0].get(f"{views.ROOT}/namespaces/{namespace}").json()["properties"]
    assert found.keys() - {"location"} == {f"p{n}" for n in range(CLIENTS)}
