"""Keys: who shows one is known, who does not is refused, and a revoked one is worth nothing."""

import hashlib
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from penstock.catalog.access import tokens
from penstock.catalog.access.audit import AuditLog
from penstock.catalog.access.permissions import AccessCache
from penstock.database.connect import open_beside
from penstock.errors import NotAuthenticated
from penstock.server.access.gate import Gate
from penstock.server.access.limits import Limiter, Quotas
from tests.harness.processes.access import GuardedServer, guarded
from tests.harness.processes.databases import new_postgres_database

CONFIG = "/iceberg/v1/config"
LIST = "/v1/namespace/$/list"


def lance_refused(gate: GuardedServer, credential: str = "", **headers: str) -> str:
    answer = gate.ask(LIST, credential, method="GET", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, 16), answer.text
    assert answer.headers["www-authenticate"].startswith("Bearer")
    return str(answer.json()["error"])


@pytest.mark.parametrize("path", [LIST, "/v1/table", "/iceberg/v1/namespaces", CONFIG])
def test_a_request_without_credentials_is_refused(gate: GuardedServer, path: str) -> None:
    answer = gate.ask(path, method="GET")
    assert answer.status_code == 401
    assert "www-authenticate" in answer.headers
    if path.startswith("/iceberg"):
        assert answer.json()["error"]["type"] == "NotAuthorizedException"
    else:
        assert answer.json()["code"] == 16


def test_health_is_told_to_everybody(gate: GuardedServer) -> None:
    assert gate.ask("/healthz", method="GET").status_code == 200
    assert gate.ask("/readyz", method="GET").status_code == 200


def test_a_key_is_taken_as_bearer_and_as_api_key(gate: GuardedServer) -> None:
    key = gate.key("alice")
    assert gate.ask(LIST, key, method="GET").status_code == 200
    assert gate.ask(LIST, method="GET", headers={"x-api-key": key}).status_code == 200
    assert gate.ask(CONFIG, key, method="GET").status_code == 200
    assert gate.ask(CONFIG, method="GET", headers={"x-api-key": key}).status_code == 200


@pytest.mark.parametrize("field", ["api_key", "auth_token"])
def test_credentials_in_the_body_count_when_the_headers_have_none(
    gate: GuardedServer, field: str
) -> None:
    key = gate.key("alice")
    body = {"identity": {field: key}}
    path = f"/v1/namespace/{uuid.uuid4().hex}/exists"
    assert gate.ask(path, body=body).status_code == 404
    assert gate.ask(path, "pstk_no", body=body).status_code == 401
    assert gate.ask(path, body={"identity": {field: "nonsense"}}).status_code == 401
    assert gate.ask(path, body={"identity": "nonsense"}).status_code == 401


def test_a_key_that_is_wrong_in_one_character_is_refused(gate: GuardedServer) -> None:
    key = gate.key("alice")
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
    message = lance_refused(gate, wrong)
    unknown = "pstk_" + "0" * 16 + "_" + "0" * 64
    # Whether there is a key with this id is not told.
    assert lance_refused(gate, unknown) == message
    assert "0000" not in message


@pytest.mark.parametrize(
    "credential", ["x", "pstk_", "pstk_a_b", "a.b.c", "..", "é", "x" * 20_000, "pstk_" + "é" * 16]
)
def test_nonsense_is_refused(gate: GuardedServer, credential: str) -> None:
    latin = credential.encode("latin-1", "replace").decode("latin-1")
    answer = gate.server.client.get(LIST, headers=[(b"x-api-key", latin.encode("latin-1"))])
    assert answer.status_code == 401
    assert len(answer.content) < 500


def test_another_scheme_than_bearer_is_refused(gate: GuardedServer) -> None:
    assert "scheme" in lance_refused(gate, Authorization="Basic YTpi")


def test_a_revoked_key_stops_at_once_and_its_tokens_with_it(gate: GuardedServer) -> None:
    token, key = gate.make_key("alice")
    short = gate.client_token(key)
    for credential in (key, short):
        assert gate.ask(LIST, credential, method="GET").status_code == 200
    gate.revoke(token.id)
    for credential in (key, short):
        assert "revoked" in lance_refused(gate, credential)
    assert gate.token(grant_type="client_credentials", client_secret=key).status_code == 401


def test_a_key_ends_by_itself_and_its_tokens_with_it(gate: GuardedServer) -> None:
    key = gate.key("alice", seconds=1)
    answer = gate.token(grant_type="client_credentials", client_secret=key).json()
    assert answer["expires_in"] <= 1
    assert gate.ask(LIST, key, method="GET").status_code == 200
    time.sleep(1.1)
    assert "expired" in lance_refused(gate, key)
    assert "expired" in lance_refused(gate, answer["access_token"])


def test_the_database_has_no_secret_of_a_key(gate: GuardedServer) -> None:
    token, key = gate.make_key("alice")
    secret = key.rpartition("_")[2]
    found = gate.work(lambda database: tokens.list_tokens(database, "alice"))
    assert token in found
    assert not [each for each in found if secret in repr(each)]


def test_nothing_of_a_credential_is_logged(gate: GuardedServer) -> None:
    key = gate.key("alice")
    short = gate.client_token(key)
    gate.ask(LIST, key, method="GET")
    gate.ask(LIST, key + "x", method="GET")
    gate.ask(LIST, short, method="GET")
    gate.ask(LIST, short[:-4] + "AAAA", method="GET")
    printed = gate.server.output()
    assert key.rpartition("_")[2] not in printed
    assert short.rpartition(".")[2][:16] not in printed


@pytest.mark.slow
def test_what_is_revoked_stops_at_once_on_every_server(postgres: str, tmp_path: Path) -> None:
    url = new_postgres_database(postgres)
    with (
        guarded(tmp_path, database=url) as one,
        guarded(tmp_path, database=url) as two,
    ):
        admin = one.admin()
        admin.post("/v1/namespace/n/create").raise_for_status()
        token, key = one.make_key("ann")
        grant = {"principal": "ann", "role": "reader", "namespace": ["n"]}
        for _ in range(20):
            admin.post("/v1/grants/create", grant).raise_for_status()
            assert two.ask("/v1/namespace/n/describe", key).status_code == 200
            admin.post("/v1/grants/revoke", grant).raise_for_status()
            assert two.ask("/v1/namespace/n/describe", key).status_code == 404
        short = one.client_token(key)
        for credential in (key, short):
            assert two.ask(LIST, credential, method="GET").status_code == 200
        one.revoke(token.id)
        for credential in (key, short):
            assert two.ask(LIST, credential, method="GET").status_code == 401


def steps(work: Callable[[], object]) -> list[str]:
    """The functions that some work calls, in their order, those written in C among them."""
    found: list[str] = []

    def note(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            found.append(called.__name__)
        elif event == "call":
            found.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def test_a_secret_is_compared_in_the_same_steps_whatever_of_it_is_right() -> None:
    secret = "a" * 64
    digest = hashlib.sha256(secret.encode()).hexdigest()
    token = tokens.Token("0" * 16, digest, "key", "ann", (), "", 0, None, None, None)
    assert tokens.matches(token, secret)
    unknown = steps(lambda: tokens.matches(None, "b" * 64))
    assert unknown.count("compare_digest") == 1
    for wrong in ("b" * 64, "a" * 63 + "b", "b" + "a" * 63):
        assert not tokens.matches(token, wrong)
        assert steps(lambda wrong=wrong: tokens.matches(token, wrong)) == unknown  # type: ignore[misc]
    # What is compared has one length: a difference in it would be told by the time.
    assert len(tokens.NO_DIGEST) == len(digest)
    # Nobody's secret has the digest that stands in for a key that does not exist.
    assert not tokens.matches(None, "")


@pytest.mark.anyio
async def test_a_key_that_is_not_known_takes_the_way_of_one_with_a_wrong_secret(
    gate: GuardedServer, tmp_path: Path
) -> None:
    database = await open_beside(gate.database)
    audit = AuditLog(database, tmp_path / "audit", 1)
    ways = []
    try:
        _, key = await tokens.create(database, tokens.NewToken("ann"))
        wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
        for credential in (wrong, tokens.PREFIX + "0" * 16 + "_" + "0" * 64):
            limiter = Limiter(Quotas(), lambda: 0.0)
            # One that remembers nothing yet.
            guard = Gate(AccessCache(database), 60, limiter, audit)
            with tracing() as way, pytest.raises(NotAuthenticated, match="the key is not known"):
                await guard.prove(credential, "127.0.0.1")
            ways.append(way)
    finally:
        await audit.close()
        await database.close()
    # Only a record that was found is made into a token.
    first, second = (
        [name for name in way if name not in ("_to_token", "__post_init__")] for way in ways
    )
    assert "matches" in first
    assert first == second


@contextmanager
def tracing() -> Iterator[dict[str, None]]:
    """The functions of keys and the gate that are called, in the order of their first calls."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.endswith(("/tokens.py", "/gate.py")):
            found[frame.f_code.co_name] = None

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
