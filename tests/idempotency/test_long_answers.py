"""Answers too long to be kept: they are made anew, for clients that accept compressed ones too."""

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients.idempotency_keys import new_key, query
from tests.idempotency.conftest import Stand


def test_a_long_answer_is_made_anew(stand: Stand, namespace: str) -> None:
    views.create(namespace).send(stand.server).raise_for_status()
    long = "select " + ", ".join(f"{n} as c{n}" for n in range(20_000))
    request, key = views.replace(namespace, "v", long), new_key()
    first = request.send(stand.server, key)
    assert first.status_code == 200
    kept = query(stand.database, ["SELECT status, answer FROM idempotency_keys"])[0]
    assert (-1, "") in [tuple(row) for row in kept]
    again = request.send(stand.server, key)
    assert again.status_code == 200
    assert again.json() == first.json()
