"""Which refusals a key keeps: those that the request earns, not those of the moment."""

from pathlib import Path

import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients.changes.requests import ask, lance, long_stream, with_rows
from tests.harness.clients.idempotency_keys import Request, answer, new_key
from tests.harness.data.arrow import people, send, to_stream
from tests.harness.data.tables import declare
from tests.harness.processes.servers import Server


def refuse(server: Server, request: Request, key: str, status: int) -> tuple[int, bytes]:
    refused = request.send(server, key)
    assert refused.status_code == status, refused.text
    return answer(refused)


def test_a_missing_table_stays_missing_to_its_key(server: Server, namespace: str) -> None:
    request, key = lance(f"table/{namespace}$t/drop"), new_key()
    refused = refuse(server, request, key, 404)
    declare(server, f"{namespace}$t")
    assert answer(request.send(server, key)) == refused
    assert server.post(f"/v1/table/{namespace}$t/exists").status_code == 200
    assert request.send(server, new_key()).status_code == 200


def test_a_table_that_was_there_stays_there_to_its_key(server: Server, namespace: str) -> None:
    declare(server, f"{namespace}$t")
    request, key = lance(f"table/{namespace}$t/declare"), new_key()
    refused = refuse(server, request, key, 409)
    ask(server, f"table/{namespace}$t/drop")
    assert answer(request.send(server, key)) == refused
    assert server.post(f"/v1/table/{namespace}$t/exists").status_code == 404


def test_a_column_that_was_missing_stays_missing_to_its_key(server: Server, namespace: str) -> None:
    path = with_rows(server, namespace)
    request = lance(f"{path}/update", {"updates": [["twice", "id"]]})
    key = new_key()
    refused = answer(request.send(server, key))
    assert 400 <= refused[0] < 500
    ask(server, f"{path}/add_columns", {"new_columns": [{"name": "twice", "expression": "id * 2"}]})
    assert answer(request.send(server, key)) == refused


@pytest.mark.parametrize("operation", ["insert", "merge_insert?on=id&when_matched_update_all=true"])
def test_rows_for_a_missing_table_stay_refused_to_their_key(
    server: Server, namespace: str, operation: str
) -> None:
    path = f"table/{namespace}$t"
    request, key = lance(f"{path}/{operation}", to_stream(people(1))), new_key()
    refused = refuse(server, request, key, 404)
    send(server, f"/v1/{path}/create", people(5)).raise_for_status()
    assert answer(request.send(server, key)) == refused


def test_rows_that_don_t_fit_stay_refused_to_their_key(server: Server, namespace: str) -> None:
    path = with_rows(server, namespace)
    request = lance(f"{path}/insert", to_stream(people(4).rename_columns(["id", "title"])))
    key = new_key()
    refused = refuse(server, request, key, 400)
    changes = [{"path": "name", "rename": "title"}]
    ask(server, f"{path}/alter_columns", {"alterations": changes})
    assert answer(request.send(server, key)) == refused


def test_a_long_upload_for_a_missing_table_is_refused_and_leaves_the_server_well(
    server: Server, namespace: str
) -> None:
    request, key = lance(f"table/{namespace}$t/insert", long_stream()), new_key()
    refuse(server, request, key, 404)
    refuse(server, request, key, 404)


def test_a_missing_view_stays_missing_to_its_key(server: Server, namespace: str) -> None:
    for request in (
        views.replace(namespace, "v", "select 2"),
        views.drop(namespace),
        views.rename(namespace, "v", "w"),
    ):
        key = new_key()
        refused = refuse(server, request, key, 404)
        made = views.create(namespace).send(server).raise_for_status().json()
        assert answer(request.send(server, key)) == refused
        assert views.load(server, namespace) == made
        views.drop(namespace).send(server).raise_for_status()


def test_a_view_that_was_there_stays_there_to_its_key(server: Server, namespace: str) -> None:
    views.create(namespace).send(server).raise_for_status()
    request, key = views.create(namespace, sql="select 2"), new_key()
    refused = refuse(server, request, key, 409)
    views.drop(namespace).send(server).raise_for_status()
    assert answer(request.send(server, key)) == refused
    assert server.get(views.path(namespace)).status_code == 404


def test_a_namespace_that_was_not_empty_stays_so_to_its_key(server: Server, namespace: str) -> None:
    views.create(namespace).send(server).raise_for_status()
    request = Request("DELETE", f"{views.ROOT}/namespaces/{namespace}")
    key = new_key()
    refused = refuse(server, request, key, 409)
    views.drop(namespace).send(server).raise_for_status()
    assert answer(request.send(server, key)) == refused
    assert request.send(server, new_key()).status_code == 204


def test_an_assertion_that_did_not_hold_stays_so_to_its_key(server: Server, namespace: str) -> None:
    made = views.create(namespace).send(server).raise_for_status().json()
    wrong = {"type": "assert-view-uuid", "uuid": new_key()}
    request, key = views.replace(namespace, "v", "select 2", requirements=[wrong]), new_key()
    assert b"CommitFailedException" in refuse(server, request, key, 409)[1]
    assert answer(request.send(server, key))[0] == 409
    assert request.send(server, key).status_code == 409
    other = views.replace(namespace, "v", "select 3")
    assert other.send(server, key).status_code == 422
    assert views.load(server, namespace) == made


def test_a_body_that_can_t_be_right_stays_wrong_to_its_key(server: Server, namespace: str) -> None:
    request, key = Request("POST", f"{views.ROOT}/namespaces/{namespace}/views", b"{"), new_key()
    refused = refuse(server, request, key, 400)
    assert answer(request.send(server, key)) == refused
    assert views.create(namespace).send(server, key).status_code == 422


def test_a_lost_race_of_a_version_leaves_its_key_free(server: Server, namespace: str) -> None:
    table, key = declare(server, f"{namespace}$t"), new_key()
    table.commit(1, 2)
    lost = lance(f"table/{table.id}/version/create", table.entry(2))
    refused = lost.send(server, key)
    assert (refused.status_code, refused.json()["code"]) == (409, 14)
    won = lance(f"table/{table.id}/version/create", table.entry(3))
    assert won.send(server, key).status_code == 200
    assert table.listed() == [1, 2, 3]


def test_a_missing_right_leaves_its_key_free(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    request, key = views.create(namespace), new_key()
    outside = Request("POST", request.path, {**request.body, "location": f"file://{tmp_path}/x"})
    assert outside.send(server, key).status_code == 403
    assert request.send(server, key).status_code == 200
