"""Rows written through two servers that share one PostgreSQL and one lake: none is lost."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.harness.data.arrow import people, read_back, send, versions
from tests.harness.data.tables import new_name, open_by_path
from tests.harness.processes.servers import Server
from tests.server.lance.conftest import Pair

WRITERS, INSERTS = 16, 6
UPDATES = 10


@pytest.fixture
def table(pair: Pair) -> str:
    """A table with the row 0."""
    name = new_name()
    send(pair[0], f"/v1/table/{name}/create", people(0, name="old")).raise_for_status()
    return name


def insert(server: Server, table: str, id: int) -> tuple[int, int]:
    """Insert one row; returns its id, and the version that is said to hold it."""
    answer = send(server, f"/v1/table/{table}/insert", people(id))
    assert answer.status_code == 200, answer.text
    return id, answer.json()["version"]


def update(server: Server, table: str, name: str) -> int:
    body = {"updates": [["name", f"'{name}'"]], "predicate": "id = 0"}
    answer = server.post(f"/v1/table/{table}/update", body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["updated_rows"] == 1
    return int(answer.json()["version"])


def check_versions(pair: Pair, table: str, used: set[int]) -> None:
    """Both list every version once, without a gap, as far as the last one that was told of."""
    listed = versions(pair[0], table)
    assert listed == versions(pair[1], table)
    assert sorted(listed) == list(range(1, max(used) + 1))


@pytest.mark.slow
def test_every_append_of_sixteen_writers_is_there(pair: Pair, table: str) -> None:
    def write(writer: int) -> list[tuple[int, int]]:
        ids = range(writer * INSERTS + 1, (writer + 1) * INSERTS + 1)
        return [insert(pair[(writer + id) % 2], table, id) for id in ids]

    with ThreadPoolExecutor(WRITERS) as threads:
        done = [one for many in threads.map(write, range(WRITERS)) for one in many]
    assert [row["id"] for row in read_back(pair[0], table)] == list(range(WRITERS * INSERTS + 1))
    check_versions(pair, table, {version for _, version in done})
    dataset = open_by_path(pair[0], table)
    for id, version in done:
        held = dataset.checkout_version(version).count_rows(f"id = {id}")
        before = dataset.checkout_version(version - 1).count_rows(f"id = {id}")
        assert (held, before) == (1, 0)


def test_appends_and_updates_at_once_lose_nothing(pair: Pair, table: str) -> None:
    def append(writer: int) -> list[int]:
        ids = range(writer * INSERTS + 1, (writer + 1) * INSERTS + 1)
        return [insert(pair[writer % 2], table, id)[1] for id in ids]

    def change(writer: int) -> list[int]:
        names = [f"{writer}-{number}" for number in range(UPDATES)]
        return [update(pair[writer % 2], table, name) for name in names]

    with ThreadPoolExecutor(WRITERS + 2) as threads:
        appends = [threads.submit(append, writer) for writer in range(WRITERS)]
        changes = [threads.submit(change, writer) for writer in range(2)]
        appended = [version for one in appends for version in one.result()]
        changed = [version for one in changes for version in one.result()]
    rows = read_back(pair[0], table)
    assert [row["id"] for row in rows] == list(range(WRITERS * INSERTS + 1))
    # The last update that was told of is the one that holds.
    dataset = open_by_path(pair[1], table)
    last = dataset.checkout_version(max(changed)).to_table(filter="id = 0").to_pylist()
    assert rows[0]["name"] == last[0]["name"] != "old0"
    assert len(set(changed)) == len(changed)
    check_versions(pair, table, {*appended, *changed})


def test_rows_are_read_at_the_other_server_at_once(pair: Pair, table: str) -> None:
    for id in range(1, 11):
        writer, reader = pair[id % 2], pair[1 - id % 2]
        _, version = insert(writer, table, id)
        body: dict[str, Any] = {"predicate": f"id = {id}"}
        assert reader.post(f"/v1/table/{table}/count_rows", body).json() == 1
        assert max(versions(reader, table)) == version


@pytest.mark.slow
def test_long_and_short_inserts_meet(pair: Pair, table: str) -> None:
    many = people(*range(1000, 151_000), name="x" * 30)

    def write(writer: int) -> int:
        if writer < 4:
            answer = send(pair[writer % 2], f"/v1/table/{table}/insert", many)
        else:
            answer = send(pair[writer % 2], f"/v1/table/{table}/insert", people(writer))
        assert answer.status_code == 200, answer.text
        return int(answer.json()["version"])

    with ThreadPoolExecutor(WRITERS) as threads:
        used = set(threads.map(write, range(WRITERS)))
    assert open_by_path(pair[0], table).count_rows() == 4 * many.num_rows + WRITERS - 4 + 1
    check_versions(pair, table, used)


def test_one_of_two_servers_creates_a_table(pair: Pair) -> None:
    name = new_name()

    def create(writer: int) -> int:
        rows = people(*range(writer * 10, writer * 10 + 10))
        return send(pair[writer % 2], f"/v1/table/{name}/create", rows).status_code

    with ThreadPoolExecutor(WRITERS) as threads:
        found = sorted(threads.map(create, range(WRITERS)))
    assert found == [200] + [409] * (WRITERS - 1)
    assert len(read_back(pair[0], name)) == 10
    assert versions(pair[1], name) == [1]
    folders = [place for place in pair[0].lake.iterdir() if place.name.startswith(name)]
    assert len(folders) == 1


def test_the_first_rows_of_a_declared_table_come_from_all(pair: Pair) -> None:
    name = new_name()
    pair[0].post(f"/v1/table/{name}/declare").raise_for_status()
    with ThreadPoolExecutor(WRITERS) as threads:
        done = list(threads.map(lambda n: insert(pair[n % 2], name, n), range(WRITERS)))
    assert [row["id"] for row in read_back(pair[0], name)] == list(range(WRITERS))
    check_versions(pair, name, {version for _, version in done})
