"""Sixteen clients on versions: exactly one wins, nobody else is left in doubt."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.harness.data.manifests import make_manifest
from tests.harness.data.tables import Table, declare
from tests.harness.fuzzing.races import CLIENTS, one_winner, race
from tests.harness.processes.servers import Server


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
    def repeat(version: int) -> Counter[tuple[int, int]]:
        staged = table.stage(version)
        return race(lambda number: table.create(version, staged))

    assert [repeat(version) for version in range(1, 7)] == [Counter({(200, 0): CLIENTS})] * 6
    assert table.listed() == [1, 2, 3, 4, 5, 6]


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
