"""Two server processes that share one PostgreSQL and one lake."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.harness.data.manifests import make_manifest
from tests.harness.data.tables import Table, declare, new_name
from tests.server.lance.conftest import Pair

CLIENTS = 16


@pytest.fixture
def views(pair: Pair) -> list[Table]:
    """One table with a version, as each of the servers shows it."""
    table = declare(pair[0], new_name())
    table.commit(1)
    return [table, replace(table, server=pair[1])]


def test_each_sees_what_the_other_did(views: list[Table]) -> None:
    views[1].commit(2)
    views[0].commit(3)
    assert views[0].listed() == views[1].listed() == [1, 2, 3]


def test_one_of_sixteen_clients_commits(views: list[Table]) -> None:
    contents = [make_manifest(2) for _ in range(CLIENTS)]
    staged = [views[0].stage(2, content=content) for content in contents]
    start = threading.Barrier(CLIENTS)

    def commit(number: int) -> int:
        start.wait()
        return views[number % 2].create(2, staged[number]).status_code

    with ThreadPoolExecutor(CLIENTS) as threads:
        found = Counter(threads.map(commit, range(CLIENTS)))
    assert found == Counter({200: 1, 409: CLIENTS - 1})
    assert contents.count(views[0].file(2).read_bytes()) == 1
    assert views[0].listed() == views[1].listed() == [1, 2]


def test_a_drop_at_one_is_a_drop_at_the_other(views: list[Table]) -> None:
    views[1].ask("drop").raise_for_status()
    assert views[0].ask("exists").status_code == 404
    assert not views[0].location.exists()
