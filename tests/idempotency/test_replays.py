"""Every change of both protocols, sent again under its key: one effect, the same answer."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.server.iceberg.routes import ROUTES
from penstock.server.lance.extensions import EXTENSIONS
from penstock.server.lance.operations import OPERATIONS
from tests.harness.clients.changes.every import CHANGES, ICEBERG, LANCE
from tests.harness.clients.idempotency_keys import answer, new_key
from tests.harness.processes.servers import Server

State = Callable[[], Any]


def test_every_change_of_both_protocols_is_tried() -> None:
    served = (*OPERATIONS, *EXTENSIONS)
    changes = {each.name for each in served if each.is_change}
    # Grants need a server that knows its callers: tests/server/access tries them.
    assert {name.partition(" ")[0] for name in LANCE} == changes - {"CreateGrant", "RevokeGrant"}
    assert ICEBERG.keys() == {route.name for route in ROUTES if route.is_change}


@pytest.mark.parametrize("name", CHANGES)
def test_a_request_that_comes_again_changes_nothing_and_gets_the_same_answer(
    server: Server, namespace: str, state: State, name: str
) -> None:
    request, key = CHANGES[name](server, namespace), new_key()
    before = state()
    first = request.send(server, key)
    assert first.status_code in (200, 201, 202, 204), first.text
    after = state()
    assert after != before
    for _ in range(2):
        assert answer(request.send(server, key)) == answer(first)
        assert state() == after
    other = request.send(server, key.upper())
    assert answer(other) == answer(first)
    assert other.headers.get("content-type") == first.headers.get("content-type")
