"""pylance, unmodified, on tables that others use too: by path, or at the same time."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import lance

from tests.harness.clients.pylance import Client, connect, rows
from tests.harness.processes.servers import Server


def test_a_reader_by_path_sees_the_same(client: Client) -> None:
    client.write(4)
    client.open().delete("n = 1")
    by_path = lance.dataset(client.open().uri)
    assert by_path.version == client.open().version == 3
    assert sorted(by_path.to_table()["n"].to_pylist()) == client.numbers()


def test_a_writer_by_path_is_seen_through_the_catalog(client: Client) -> None:
    lance.write_dataset(rows(4), client.open().uri, mode="append")
    assert client.numbers() == [1, 2, 3, 4]
    client.write(5)
    assert client.versions() == [1, 2, 3]
    assert client.numbers() == [1, 2, 3, 4, 5]


def test_manifests_have_names_of_the_second_scheme_and_nothing_is_left_staged(
    client: Client,
) -> None:
    client.write(4)
    names = os.listdir(Path(client.open().uri) / "_versions")
    manifests = sorted(name for name in names if ".manifest" in name)
    assert manifests == [f"{2**64 - 1 - v:020d}.manifest" for v in (2, 1)]


def test_versions_cleaned_up_by_a_client_are_gone_from_the_catalog(client: Client) -> None:
    client.write(4)
    client.write(5)
    client.open().cleanup_old_versions(older_than=timedelta(0))
    assert client.versions() == [3]
    client.write(6)
    assert client.numbers() == [1, 2, 3, 4, 5, 6]


def test_writers_at_the_same_time_lose_nothing(server: Server, client: Client) -> None:
    def write(start: int) -> None:
        own = Client(connect(server), client.id)
        for number in range(start, start + 5):
            own.write(number)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, (100, 200, 300, 400)))
    written = [number for start in (100, 200, 300, 400) for number in range(start, start + 5)]
    assert client.numbers() == [1, 2, 3, *written]
    assert client.versions() == list(range(1, 22))


def test_writers_by_path_and_through_the_catalog_lose_nothing(
    server: Server, client: Client
) -> None:
    path = client.open().uri

    def write(start: int) -> None:
        own = Client(connect(server), client.id)
        for number in range(start, start + 5):
            if start == 100:
                lance.write_dataset(rows(number), path, mode="append")
            else:
                own.write(number)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, (100, 200)))
    assert client.numbers() == [1, 2, 3, *range(100, 105), *range(200, 205)]
    assert client.versions() == list(range(1, 12))
    assert sorted(lance.dataset(path).to_table()["n"].to_pylist()) == client.numbers()


def test_two_deletes_of_the_same_row_do_not_both_win_silently(client: Client) -> None:
    first, second = client.open(), client.open()
    first.delete("n = 1")
    second.delete("n = 1 OR n = 2")
    assert client.numbers() == [3]


def test_a_table_without_managed_versions_works_too(server: Server, client: Client) -> None:
    plain = Client(client.namespace, [client.id[0], "plain"])
    body = {"properties": {"penstock.managed_versioning": "false"}}
    location = server.post(f"/v1/table/{'$'.join(plain.id)}/declare", body).json()["location"]
    lance.write_dataset(rows(1), location)
    plain.write(2)
    assert plain.numbers() == [1, 2]
    assert plain.versions() == [1, 2]
