"""Sixteen copies of one request at the same moment: one effect, one answer for all of them."""

from typing import Any

import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients.changes.every import CHANGES
from tests.harness.clients.changes.requests import lance, with_rows
from tests.harness.clients.idempotency_keys import (
    CLIENTS,
    Request,
    answer,
    at_once,
    count_all_effects,
    new_key,
)
from tests.harness.data.arrow import people, read_back, to_stream, versions
from tests.harness.data.tables import new_name
from tests.harness.processes.servers import Server
from tests.idempotency.conftest import Pair, Stand

# Those that go each another way to their effect.
WAYS = (
    *("Lance CreateNamespace", "Lance DropNamespace", "Lance DeclareTable", "Lance RenameTable"),
    *("Lance DropTable", "Lance CreateTable", "Lance InsertIntoTable", "Lance UpdateTable"),
    *("Lance MergeInsertIntoTable", "Lance InsertIntoTable first", "Lance CreateTableVersion"),
    *("Lance AlterTableAddColumns", "Lance CreateTableScalarIndex", "Lance CreateTableTag"),
    *("Lance DeleteTableTag", "Lance CreateTableBranch", "Lance DeleteTableBranch"),
    *("Lance BatchCommitTables", "Lance AlterTransaction", "Lance RegisterTable"),
    *("Iceberg CreateNamespace", "Iceberg UpdateProperties", "Iceberg CreateView"),
    *("Iceberg ReplaceView", "Iceberg RenameView", "Iceberg DropView", "Iceberg RegisterView"),
)


def check_one_answer(answers: list[Any], *statuses: int) -> None:
    found = {answer(each) for each in answers}
    assert len(found) == 1, found
    assert found.pop()[0] in statuses


@pytest.mark.parametrize("name", WAYS[::3])
def test_copies_at_one_server_have_one_effect_and_one_answer(
    stand: Stand, namespace: str, name: str
) -> None:
    server, key = stand.server, new_key()
    request = CHANGES[name](server, namespace)
    answers = at_once(lambda n: request.send(server, key))
    check_one_answer(answers, 200, 204)
    before = count_all_effects(stand.database)
    assert answer(request.send(server, key)) == answer(answers[0])
    assert count_all_effects(stand.database) == before


@pytest.mark.parametrize("name", WAYS[1::3])
def test_copies_at_two_servers_have_one_effect_and_one_answer(pair: Pair, name: str) -> None:
    check_copies_at_two_servers(pair, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CHANGES][::2])
def test_copies_at_two_servers_again_and_again(pair: Pair, name: str) -> None:
    for _ in range(1 if "long" in name else 3):
        check_copies_at_two_servers(pair, name)


def check_copies_at_two_servers(pair: Pair, name: str) -> None:
    alone = CHANGES[name](pair.first, pair.new_namespace())
    namespace, key = pair.new_namespace(), new_key()
    request = CHANGES[name](pair.first, namespace)
    before = count_all_effects(pair.database)
    alone.send(pair.first).raise_for_status()
    between = count_all_effects(pair.database)
    check_one_answer(at_once(lambda n: request.send(pair[n], key)), 200, 201, 202, 204)
    assert count_all_effects(pair.database) - between == between - before
    if name in ("Lance UpdateTable", "Lance InsertIntoTable", "Lance MergeInsertIntoTable"):
        assert versions(pair.first, f"{namespace}$t") == [1, 2, 3]
    if name == "Iceberg ReplaceView":
        metadata = views.load(pair.first, namespace)["metadata"]
        assert views.texts(metadata) == ["select 1", "select 2"]


@pytest.mark.parametrize(
    "request_",
    [
        lance("table/missing$t/drop"),
        views.replace("missing", "v", "select 1"),
        views.create("missing"),
        Request("DELETE", f"{views.ROOT}/namespaces/missing"),
    ],
    ids=lambda request: request.path,
)
def test_copies_of_what_is_refused_get_one_answer(pair: Pair, request_: Request) -> None:
    key = new_key()
    check_one_answer(at_once(lambda n: request_.send(pair[n], key)), 404)


def test_requests_that_share_nothing_but_the_key_have_one_effect(pair: Pair) -> None:
    namespace, key = pair.new_namespace(), new_key()
    requests = [lance(f"namespace/{namespace}$x{n}/create", {}) for n in range(CLIENTS)]
    answers = at_once(lambda n: requests[n].send(pair[n], key))
    assert sorted(each.status_code for each in answers) == [200] + [422] * (CLIENTS - 1)
    made = pair.first.get(f"/v1/namespace/{namespace}/list").json()["namespaces"]
    assert made == [f"x{n}" for n, each in enumerate(answers) if each.status_code == 200]


def test_rows_that_share_a_commit_replay_each_its_own_answer(
    server: Server, namespace: str
) -> None:
    path = with_rows(server, namespace)
    keys = [new_key() for _ in range(CLIENTS)]
    # Of different numbers, so that each has an answer of its own.
    wanted = [people(*range(100 * n, 100 * n + n + 1)) for n in range(1, CLIENTS + 1)]
    requests = [lance(f"{path}/insert", to_stream(rows)) for rows in wanted]
    first = at_once(lambda n: requests[n].send(server, keys[n]))
    assert {each.status_code for each in first} == {200}
    assert [each.json()["num_inserted_rows"] for each in first] == [r.num_rows for r in wanted]
    again = at_once(lambda n: requests[n].send(server, keys[n]))
    assert [answer(each) for each in again] == [answer(each) for each in first]
    found = [row["id"] for row in read_back(server, f"{namespace}$t")]
    assert found == [1, 2, 3] + [id for rows in wanted for id in rows["id"].to_pylist()]
    # They did share: otherwise this test shows nothing.
    assert len(versions(server, f"{namespace}$t")) < 2 + CLIENTS


def test_rows_that_share_commits_of_two_servers_are_there_once(pair: Pair) -> None:
    namespace = pair.new_namespace()
    path = with_rows(pair.first, namespace)
    keys = [new_key() for _ in range(8)]
    requests = [lance(f"{path}/insert", to_stream(people(100 + n))) for n in range(8)]
    # Each request goes to both servers at once.
    answers = at_once(lambda n: requests[n // 2].send(pair[n], keys[n // 2]), 16)
    assert [(each.status_code, each.text) for each in answers if each.status_code != 200] == []
    assert [answer(each) for each in answers[::2]] == [answer(each) for each in answers[1::2]]
    found = [row["id"] for row in read_back(pair.first, f"{namespace}$t")]
    assert found == [1, 2, 3, *range(100, 108)]


def test_a_copy_that_meets_the_effect_of_another_way_is_refused(pair: Pair) -> None:
    """Sixteen keys for one name: one is first, and every key remembers how it went."""
    namespace = pair.new_namespace()
    request = views.create(namespace, new_name())
    keys = [new_key() for _ in range(CLIENTS)]
    first = at_once(lambda n: request.send(pair[n], keys[n]))
    assert sorted(each.status_code for each in first) == [200] + [409] * (CLIENTS - 1)
    again = at_once(lambda n: request.send(pair[n + 1], keys[n]))
    assert [answer(each) for each in again] == [answer(each) for each in first]
