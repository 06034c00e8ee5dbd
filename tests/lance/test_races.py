"""Sixteen clients at once: exactly one wins, nobody else is left in doubt."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.harness.manifests import commit_by_path, make_manifest
from tests.harness.servers import Server
from tests.harness.tables import Table, declare, new_name

CLIENTS = 16


def race(act: Callable[[int], httpx.Response]) -> Counter[tuple[int, int]]:
    """Let all clients act at the same moment; returns how often each (status, code) came."""
    start = threading.Barrier(CLIENTS)

    def run(number: int) -> tuple[int, int]:
        start.wait()
        answer = act(number)
        return answer.status_code, answer.json().get("code", 0)

    with ThreadPoolExecutor(CLIENTS) as threads:
        return Counter(threads.map(run, range(CLIENTS)))


def one_winner(loss: tuple[int, int]) -> Counter[tuple[int, int]]:
    return Counter({(200, 0): 1, loss: CLIENTS - 1})


def test_one_client_creates_a_namespace(server: Server, namespace: str) -> None:
    path = f"/v1/namespace/{namespace}$child/create"
    found = race(lambda n: server.post(path, {"properties": {"by": str(n)}}))
    assert found == one_winner((409, 2))


def test_one_client_declares_a_table(server: Server, namespace: str) -> None:
    found = race(lambda n: server.post(f"/v1/table/{namespace}$t/declare"))
    assert found == one_winner((409, 5))


def test_one_client_declares_at_a_location(server: Server, namespace: str) -> None:
    location = f"{new_name()}.lance"
    found = race(
        lambda n: server.post(f"/v1/table/{namespace}$t{n}/declare", {"location": location})
    )
    assert found == one_winner((409, 5))


def test_one_client_registers_a_table(server: Server, namespace: str) -> None:
    names = [f"{new_name()}.lance" for _ in range(CLIENTS)]
    for name in names:
        commit_by_path(server.lake / name, 1)
    found = race(lambda n: server.post(f"/v1/table/{namespace}$t/register", {"location": names[n]}))
    assert found == one_winner((409, 5))


def test_one_client_renames_to_a_name(server: Server, namespace: str) -> None:
    for number in range(CLIENTS):
        declare(server, f"{namespace}$t{number}")
    found = race(
        lambda n: server.post(f"/v1/table/{namespace}$t{n}/rename", {"new_table_name": "x"})
    )
    assert found == one_winner((409, 5))


def test_one_client_drops_a_table(server: Server, namespace: str) -> None:
    declare(server, f"{namespace}$t").commit(1)
    found = race(lambda n: server.post(f"/v1/table/{namespace}$t/drop"))
    assert found == one_winner((404, 4))


def test_one_client_commits_a_version(table: Table) -> None:
    table.commit(1)
    contents = [make_manifest(2) for _ in range(CLIENTS)]
    staged = [table.stage(2, content=content) for content in contents]
    assert race(lambda n: table.create(2, staged[n])) == one_winner((409, 14))
    assert table.listed() == [1, 2]
    assert contents.count(table.file(2).read_bytes()) == 1
    assert table.staged_files() == []


def test_one_client_commits_the_first_version(table: Table) -> None:
    staged = [table.stage(1) for _ in range(CLIENTS)]
    assert race(lambda n: table.create(1, staged[n])) == one_winner((409, 14))
    assert table.listed() == [1]


def test_clients_with_the_same_content_all_win(table: Table) -> None:
    content = make_manifest(1)
    staged = [table.stage(1, content=content) for _ in range(CLIENTS)]
    assert race(lambda n: table.create(1, staged[n])) == Counter({(200, 0): CLIENTS})
    assert table.file(1).read_bytes() == content
    assert table.staged_files() == []


def test_the_same_request_sent_sixteen_times_always_wins(table: Table) -> None:
    staged = table.stage(1)
    assert race(lambda n: table.create(1, staged)) == Counter({(200, 0): CLIENTS})
    assert table.listed() == [1]


def test_a_loser_can_describe_the_winner_at_once(table: Table) -> None:
    staged = [table.stage(1) for _ in range(CLIENTS)]

    def commit_then_describe(number: int) -> httpx.Response:
        table.create(1, staged[number])
        return table.describe(1)

    assert race(commit_then_describe) == Counter({(200, 0): CLIENTS})


def test_clients_commit_to_tables_of_their_own(server: Server, namespace: str) -> None:
    tables = [declare(server, f"{namespace}$t{n}") for n in range(CLIENTS)]

    def commit_five(number: int) -> httpx.Response:
        tables[number].commit(1, 2, 3, 4, 5)
        return tables[number].describe()

    assert race(commit_five) == Counter({(200, 0): CLIENTS})
    assert [table.listed() for table in tables] == [[1, 2, 3, 4, 5]] * CLIENTS


def test_what_is_listed_or_described_can_be_read_while_others_commit(table: Table) -> None:
    table.commit(1)
    finished = threading.Event()

    def commit_many() -> None:
        try:
            table.commit(*range(2, 62))
        finally:
            finished.set()

    def read_until_finished(ask: Callable[[], str]) -> list[str]:
        found = []
        while not finished.is_set():
            path = ask()
            found += [] if Path(f"/{path}").exists() else [path]
        return found

    def listed() -> str:
        answer = table.ask("version/list", limit=1, descending=True)
        return str(answer.json()["versions"][0]["manifest_path"])

    def described() -> str:
        return str(table.describe().json()["version"]["manifest_path"])

    with ThreadPoolExecutor(5) as threads:
        reads = [threads.submit(read_until_finished, ask) for ask in (listed, described) * 2]
        threads.submit(commit_many).result()
    assert [read.result() for read in reads] == [[], [], [], []]
