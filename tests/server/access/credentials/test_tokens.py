"""Short-lived tokens by OAuth2: given for keys and tokens, and refused when anything is wrong."""

import base64
import json
import time
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from penstock.catalog.access import tokens
from penstock.model.principals import Identity
from penstock.server.access import signing
from tests.harness.processes.access import GuardedServer

LIST = "/v1/namespace/$/list"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


def part(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def read(token: str, index: int) -> dict[str, Any]:
    text = token.split(".")[index]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return found


def status(gate: GuardedServer, credential: str) -> int:
    return gate.ask(LIST, credential, method="GET").status_code


def test_a_client_gets_a_token_for_its_key(gate: GuardedServer) -> None:
    token, key = gate.make_key("etl")
    for id in ("", "etl", token.id):
        form = {"grant_type": "client_credentials", "client_id": id, "client_secret": key}
        answer = gate.token(**form)
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
        assert 0 < answer.json()["expires_in"] <= 3600
        assert status(gate, answer.json()["access_token"]) == 200


def test_a_client_may_show_its_key_in_the_header(gate: GuardedServer) -> None:
    basic = base64.b64encode(f"etl:{gate.key('etl')}".encode()).decode()
    answer = gate.server.client.post(
        "/iceberg/v1/oauth/tokens",
        data={"grant_type": "client_credentials"},
        headers={"Authorization": f"Basic {basic}"},
    )
    assert status(gate, answer.json()["access_token"]) == 200


def test_another_client_id_than_the_keys_is_refused(gate: GuardedServer) -> None:
    answer = gate.token(
        grant_type="client_credentials", client_id="root", client_secret=gate.key("etl")
    )
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_a_token_is_exchanged_for_a_new_one(gate: GuardedServer) -> None:
    short = gate.client_token(gate.key("etl"))
    for subject in (short, gate.key("etl")):
        answer = gate.token(grant_type=EXCHANGE, subject_token=subject)
        assert status(gate, answer.json()["access_token"]) == 200
    refused = gate.token(grant_type=EXCHANGE, subject_token=short[:-8] + "AAAAAAAA")
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")


def test_a_runner_gets_no_token(gate: GuardedServer) -> None:
    key = gate.key("runner", kind="runner")
    answer = gate.token(grant_type="client_credentials", client_secret=key)
    assert (answer.status_code, answer.json()["error"]) == (400, "unauthorized_client")


def test_a_forged_token_is_refused(gate: GuardedServer) -> None:
    short = gate.client_token(gate.key("etl"))
    head, claims = read(short, 0), read(short, 1)
    signature = short.rpartition(".")[2]
    forged = [
        f"{part(head)}.{part(claims | {'sub': 'root'})}.{signature}",
        f"{part({'alg': 'none', 'kid': head['kid']})}.{part(claims)}.",
        f"{part({'alg': 'none'})}.{part(claims)}.",
        f"{part(head | {'alg': 'HS512'})}.{part(claims)}.{signature}",
        jwt.encode(head, claims, OctKey.generate_key(256)),
        jwt.encode(head | {"kid": "penstock-other"}, claims, OctKey.generate_key(256)),
        jwt.encode({"alg": "HS256", "kid": "../../dev/null"}, claims, OctKey.generate_key(256)),
        short[:-2],
        short + ".x",
    ]
    assert status(gate, short) == 200
    assert [status(gate, each) for each in forged] == [401] * len(forged)


def test_a_token_with_a_right_signature_must_be_right_in_all_else(gate: GuardedServer) -> None:
    token, _ = gate.make_key("etl")
    (kid, secret), *_ = gate.work(tokens.get_signing_keys)
    now = int(time.time())
    good = signing.sign(Identity("etl", token=token.id), (kid, secret), now, now + 60)
    assert status(gate, good) == 200
    key = OctKey.import_key(secret)
    for wrong in (
        {"exp": now - 1},
        {"exp": "soon"},
        {"exp": None},
        {"iss": "elsewhere"},
        {"aud": "elsewhere"},
        {"sub": ""},
        {"sub": 7},
        {"tid": "0" * 16},
    ):
        claims = {k: v for k, v in (read(good, 1) | wrong).items() if v is not None}
        assert status(gate, jwt.encode({"alg": "HS256", "kid": kid}, claims, key)) == 401, wrong


def test_no_token_is_valid_after_the_signing_key_was_changed(gate: GuardedServer) -> None:
    key = gate.key("etl")
    short = gate.client_token(key)
    gate.work(tokens.rotate_signing_keys)
    assert status(gate, short) == 401
    assert status(gate, gate.client_token(key)) == 200


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({"grant_type": "client_credentials"}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": EXCHANGE}, "invalid_request"),
        (
            {"grant_type": EXCHANGE, "subject_token": "x", "subject_token_type": "y"},
            "invalid_request",
        ),
    ],
)
def test_a_request_that_is_not_right_is_told_as_oauth_does(
    gate: GuardedServer, form: dict[str, str], error: str
) -> None:
    answer = gate.token(**form)
    assert (answer.status_code, answer.json()["error"]) == (400, error)
