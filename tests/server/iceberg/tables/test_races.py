"""Many writers of one table, and of several at once: no commit is lost, none is done twice."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException

from tests.harness.clients import iceberg_tables as tables
from tests.harness.clients.idempotency_keys import new_key
from tests.harness.processes.servers import Server

WRITERS, COMMITS = 16, 4


def all_at_once(work: Callable[[int], Any], count: int = WRITERS) -> list[Any]:
    start = threading.Barrier(count)

    def run(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


@pytest.mark.timeout(180)
def test_sixteen_writers_lose_no_append(server: Server, namespace: str) -> None:
    tables.make(server, namespace)

    def write(writer: int) -> list[int]:
        done: list[int] = []
        while len(done) < COMMITS:
            metadata = server.get(tables.path(namespace)).json()["metadata"]
            request = tables.append_to(namespace, "t", metadata)
            answer = request.send(server, new_key())
            if answer.status_code == 200:
                done.append(request.body["updates"][0]["snapshot"]["snapshot-id"])
            else:
                assert answer.json()["error"]["type"] == "CommitFailedException", answer.text
        return done

    told = [id for ids in all_at_once(write) for id in ids]
    metadata = tables.load(server, namespace)["metadata"]
    assert sorted(each["snapshot-id"] for each in metadata["snapshots"]) == sorted(told)
    assert metadata["last-sequence-number"] == WRITERS * COMMITS
    parents = [each.get("parent-snapshot-id") for each in metadata["snapshots"]]
    assert len(set(parents)) == WRITERS * COMMITS
    log = [each["snapshot-id"] for each in metadata["snapshot-log"]]
    assert sorted(log) == sorted(told)


def test_what_does_not_conflict_is_applied_again_by_the_server(
    server: Server, namespace: str
) -> None:
    uuid = tables.make(server, namespace)["metadata"]["table-uuid"]
    requires = [{"type": "assert-table-uuid", "uuid": uuid}]

    def write(number: int) -> int:
        update = {"action": "set-properties", "updates": {f"p{number}": str(number)}}
        answer = tables.commit(namespace, "t", update, requires=requires).send(server)
        return answer.status_code

    assert set(all_at_once(write)) == {200}
    found = tables.load(server, namespace)
    assert found["metadata"]["properties"] == {f"p{n}": str(n) for n in range(WRITERS)}
    assert len(tables.files(found["metadata-location"])) == WRITERS + 1


def test_one_of_many_makes_the_table(server: Server, namespace: str) -> None:
    staged = [tables.make(server, namespace, stage=True)["metadata"] for _ in range(WRITERS)]

    def make(number: int) -> int:
        if number % 2:
            return tables.create(namespace).send(server).status_code
        return tables.finish(namespace, "t", staged[number]).send(server).status_code

    assert sorted(all_at_once(make)) == [200] + [409] * (WRITERS - 1)
    found = tables.load(server, namespace)
    assert len(tables.files(found["metadata-location"])) == 1
    # Files of those who lost are gone.
    left = server.lake.glob(f"{namespace}.t-*/metadata/*.metadata.json")
    assert len(list(left)) == 1


def test_transactions_over_the_same_tables_exclude_each_other(
    server: Server, namespace: str
) -> None:
    names = [f"t{number}" for number in range(4)]
    for name in names:
        tables.make(server, namespace, name)

    def write(writer: int) -> None:
        # In any order, which must not make two of them wait for each other.
        chosen = names[writer % 4 :] + names[: writer % 4]
        if writer % 2:
            chosen.reverse()
        while True:
            changes = []
            for name in chosen:
                metadata = server.get(tables.path(namespace, name)).json()["metadata"]
                changes.append((namespace, name, *tables.append(metadata)))
            answer = tables.transaction(*changes).send(server, new_key())
            if answer.status_code == 204:
                return
            assert answer.json()["error"]["type"] == "CommitFailedException", answer.text

    all_at_once(write, 8)
    for name in names:
        assert len(tables.load(server, namespace, name)["metadata"]["snapshots"]) == 8


def test_commits_race_with_a_drop_and_never_bring_the_table_back(
    server: Server, namespace: str
) -> None:
    tables.make(server, namespace)

    def work(number: int) -> int:
        if number == 0:
            return tables.drop(namespace, purge=True).send(server).status_code
        return tables.set_property(namespace, **{f"p{number}": "x"}).send(server).status_code

    dropped, *others = all_at_once(work)
    assert dropped == 204
    assert set(others) <= {200, 404, 409}
    assert server.get(tables.path(namespace)).status_code == 404


@pytest.mark.timeout(180)
def test_pyiceberg_appends_of_many_writers_are_all_there(server: Server, namespace: str) -> None:
    rows = pa.table({"writer": pa.array([0], pa.int64()), "number": pa.array([0], pa.int64())})
    RestCatalog("p", uri=f"{server.url}/iceberg").create_table(f"{namespace}.t", rows.schema)

    def write(writer: int) -> None:
        table = RestCatalog("p", uri=f"{server.url}/iceberg").load_table(f"{namespace}.t")
        number = 0
        while number < 2:
            more = pa.table({"writer": [writer], "number": [number]})
            try:
                table.append(more)
            except CommitFailedException:
                table.refresh()
                continue
            number += 1

    all_at_once(write)
    table = RestCatalog("p", uri=f"{server.url}/iceberg").load_table(f"{namespace}.t")
    found = sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
    assert found == [(writer, number) for writer in range(WRITERS) for number in range(2)]
    assert len(table.metadata.snapshots) == WRITERS * 2
