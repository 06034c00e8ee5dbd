"""Keys: who shows one is known, who does not is refused, and a revoked one is worth nothing."""

import time
import uuid

import pytest

from penstock.catalog import tokens
from tests.harness.access import Guarded

CONFIG = "/iceberg/v1/config"
LIST = "/v1/namespace/$/list"


def lance_refused(gate: Guarded, credential: str = "", **headers: str) -> str:
    answer = gate.ask(LIST, credential, method="GET", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, 16), answer.text
    assert answer.headers["www-authenticate"].startswith("Bearer")
    return str(answer.json()["error"])


@pytest.mark.parametrize("path", [LIST, "/v1/table", "/iceberg/v1/namespaces", CONFIG])
def test_a_request_without_credentials_is_refused(gate: Guarded, path: str) -> None:
    answer = gate.ask(path, method="GET")
    assert answer.status_code == 401
    assert "www-authenticate" in answer.headers
    if path.startswith("/iceberg"):
        assert answer.json()["error"]["type"] == "NotAuthorizedException"
    else:
        assert answer.json()["code"] == 16


def test_health_is_told_to_everybody(gate: Guarded) -> None:
    assert gate.ask("/healthz", method="GET").status_code == 200
    assert gate.ask("/readyz", method="GET").status_code == 200


def test_a_key_is_taken_as_bearer_and_as_api_key(gate: Guarded) -> None:
    key = gate.key("alice")
    assert gate.ask(LIST, key, method="GET").status_code == 200
    assert gate.ask(LIST, method="GET", headers={"x-api-key": key}).status_code == 200
    assert gate.ask(CONFIG, key, method="GET").status_code == 200
    assert gate.ask(CONFIG, method="GET", headers={"x-api-key": key}).status_code == 200


@pytest.mark.parametrize("field", ["api_key", "auth_token"])
def test_credentials_in_the_body_count_when_the_headers_have_none(
    gate: Guarded, field: str
) -> None:
    key = gate.key("alice")
    body = {"identity": {field: key}}
    path = f"/v1/namespace/{uuid.uuid4().hex}/exists"
    assert gate.ask(path, body=body).status_code == 404
    assert gate.ask(path, "pstk_no", body=body).status_code == 401
    assert gate.ask(path, body={"identity": {field: "nonsense"}}).status_code == 401
    assert gate.ask(path, body={"identity": "nonsense"}).status_code == 401


def test_a_key_that_is_wrong_in_one_character_is_refused(gate: Guarded) -> None:
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
def test_nonsense_is_refused(gate: Guarded, credential: str) -> None:
    latin = credential.encode("latin-1", "replace").decode("latin-1")
    answer = gate.server.client.get(LIST, headers=[(b"x-api-key", latin.encode("latin-1"))])
    assert answer.status_code == 401
    assert len(answer.content) < 500


def test_another_scheme_than_bearer_is_refused(gate: Guarded) -> None:
    assert "scheme" in lance_refused(gate, Authorization="Basic YTpi")


def test_a_revoked_key_stops_at_once_and_its_tokens_with_it(gate: Guarded) -> None:
    token, key = gate.make_key("alice")
    short = gate.client_token(key)
    for credential in (key, short):
        assert gate.ask(LIST, credential, method="GET").status_code == 200
    gate.revoke(token.id)
    for credential in (key, short):
        assert "revoked" in lance_refused(gate, credential)
    assert gate.token(grant_type="client_credentials", client_secret=key).status_code == 401


def test_a_key_ends_by_itself_and_its_tokens_with_it(gate: Guarded) -> None:
    key = gate.key("alice", seconds=1)
    answer = gate.token(grant_type="client_credentials", client_secret=key).json()
    assert answer["expires_in"] <= 1
    assert gate.ask(LIST, key, method="GET").status_code == 200
    time.sleep(1.1)
    assert "expired" in lance_refused(gate, key)
    assert "expired" in lance_refused(gate, answer["access_token"])


def test_the_database_has_no_secret_of_a_key(gate: Guarded) -> None:
    token, key = gate.make_key("alice")
    secret = key.rpartition("_")[2]
    found = gate.work(lambda database: tokens.list_tokens(database, "alice"))
    assert token in found
    assert not [each for each in found if secret in repr(each)]


def test_nothing_of_a_credential_is_logged(gate: Guarded) -> None:
    key = gate.key("alice")
    short = gate.client_token(key)
    gate.ask(LIST, key, method="GET")
    gate.ask(LIST, key + "x", method="GET")
    gate.ask(LIST, short, method="GET")
    gate.ask(LIST, short[:-4] + "AAAA", method="GET")
    printed = gate.server.output()
    assert key.rpartition("_")[2] not in printed
    assert short.rpartition(".")[2][:16] not in printed
