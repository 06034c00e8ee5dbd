"""Tokens of an OpenID Connect issuer: verified by its keys, whatever a forger tries."""

import asyncio
import base64
import hmac
import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt
from joserfc.jwk import RSAKey

from penstock.catalog.access import tokens
from penstock.errors import NotAuthenticated
from penstock.server.access.oidc import Oidc, Provider
from tests.harness.processes.access import AUDIENCE, GuardedServer, Issuer, issuing

LIST = "/v1/namespace/$/list"
ODD: tuple[Any, ...] = (None, 1, "x", [], {})
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


def status(gate: GuardedServer, credential: str) -> int:
    return gate.ask(LIST, credential, method="GET").status_code


def part(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def sign_with_secret(head: Any, claims: Any, secret: bytes) -> str:
    text = f"{part(head)}.{part(claims)}"
    digest = hmac.digest(secret, text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def test_a_token_of_the_issuer_is_accepted(gate: GuardedServer, issuer: Issuer) -> None:
    assert status(gate, issuer.sign()) == 200
    assert status(gate, issuer.sign(aud=["other", AUDIENCE])) == 200
    assert status(gate, issuer.sign(exp=int(time.time()) - 5)) == 200
    assert status(gate, issuer.sign(nbf=int(time.time()) + 5)) == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"aud": "another"},
        {"aud": ["another"]},
        {"aud": None},
        {"aud": 7},
        {"iss": "https://elsewhere.example"},
        {"iss": None},
        {"exp": int(time.time()) - 3600},
        {"exp": None},
        {"exp": "9999999999"},
        {"exp": True},
        {"nbf": int(time.time()) + 3600},
        {"nbf": "x"},
        {"iat": int(time.time()) + 3600},
        {"sub": None},
        {"sub": ""},
        {"sub": ["a"]},
        {"sub": "a\x00b"},
    ],
)
def test_a_token_that_is_wrong_in_one_claim_is_refused(
    gate: GuardedServer, issuer: Issuer, wrong: dict[str, Any]
) -> None:
    assert status(gate, issuer.sign(**wrong)) == 401


def test_a_forged_token_is_refused(gate: GuardedServer, issuer: Issuer) -> None:
    claims = issuer.claims()
    public = issuer.keys["one"].as_pem(private=False)
    head, payload, signature = issuer.sign().split(".")
    forged = [
        f"{part({'alg': 'none', 'kid': 'one'})}.{payload}.",
        f"{part({'alg': 'None', 'kid': 'one'})}.{payload}.",
        f"{part({'alg': 'HS256', 'kid': 'one'})}.{payload}.{signature}",
        # The public key taken for a shared secret.
        sign_with_secret({"alg": "HS256", "kid": "one"}, claims, public),
        issuer.sign(key=RSAKey.generate_key(2048)),
        f"{head}.{part(claims | {'sub': 'root'})}.{signature}",
        # An algorithm that the settings do not allow, with the right key.
        issuer.sign(alg="RS512"),
        issuer.sign(alg="PS256"),
        f"{part({'alg': 'RS256', 'kid': 'one', 'crit': ['x'], 'x': 1})}.{payload}.{signature}",
        f"{part({'alg': 'RS256'})}.{payload}.{signature}",
        # Before anybody knows who sent it, so that no kind of value may break a library.
        *(
            f"{part({'alg': 'RS256', 'kid': 'one', 'crit': crit})}.{payload}.{signature}"
            for crit in ODD
        ),
    ]
    assert [status(gate, each) for each in forged] == [401] * len(forged)


# As JSON text, because some of it is none.
NUL, LONG = r'["\u0000"]', '["' + "a" * 3000 + '"]'
VALUES = (
    *("null", "true", "0", "-1", "1.5", "1e400", "-1e400", "NaN", "Infinity", "9" * 5000, '""'),
    *('"x"', r'"\ud800"', r'"a\nb"', r'"\u0000"', "[]", '["a"]', "[null]", "[7]", '[[["a"]]]'),
    *("[{}]", "{}", '{"a": 1}', NUL, LONG, r'["\ud800"]'),
    *("[" * 4000 + "]" * 4000, '{"a":' * 1500 + "1" + "}" * 1500),
)


def with_value(content: dict[str, Any], name: str, value: str) -> str:
    """The content as JSON, where this name has a value that Python may not be able to write."""
    others = json.dumps({k: v for k, v in content.items() if k != name})[1:-1]
    return f"{{{others}{', ' if others else ''}{json.dumps(name)}: {value}}}"


def encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode(errors="surrogatepass")).decode().rstrip("=")


def sign_text(issuer: Issuer, head: str, claims: str) -> str:
    text = f"{encode(head)}.{encode(claims)}"
    private = issuer.keys["one"].raw_value
    signature = private.sign(text.encode(), PKCS1v15(), SHA256())
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


HEAD = {"alg": "RS256", "kid": "one"}
# What the claims may be all the same; a claim that nobody reads may be anything that is JSON.
FINE = {
    "nbf": {"null", "0", "-1", "1.5"},
    "iat": {"null", "0", "-1", "1.5"},
    "sub": {'"x"'},
    "groups": {"null", '""', '"x"', r'"a\nb"', r'"\u0000"', "[]", '["a"]', NUL, LONG},
}


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "exp", "nbf", "iat", "groups"])
def test_a_claim_of_any_type_is_right_or_refused(
    gate: GuardedServer, issuer: Issuer, claim: str
) -> None:
    texts = [with_value(issuer.claims(), claim, value) for value in VALUES]
    answers = [status(gate, sign_text(issuer, json.dumps(HEAD), each)) for each in texts]
    found = dict(zip(VALUES, answers, strict=True))
    fine = FINE.get(claim, set())
    assert found == {value: 200 if value in fine else 401 for value in VALUES}


def test_claims_that_are_no_object_are_refused(gate: GuardedServer, issuer: Issuer) -> None:
    wrong = (*VALUES, "", "{", '{"a": 1}{"b": 2}', "\x00", "\ud800")
    answers = [status(gate, sign_text(issuer, json.dumps(HEAD), each)) for each in wrong]
    assert set(answers) == {401}


@pytest.mark.parametrize("field", ["alg", "kid", "crit", "b64", "typ", "zip", "jwk", "x5c", "p2c"])
def test_a_head_of_any_shape_is_right_or_refused(
    gate: GuardedServer, issuer: Issuer, field: str
) -> None:
    claims = json.dumps(issuer.claims())
    for value in (*VALUES, '["exp"]', "false"):
        head = with_value(HEAD, field, value)
        answer = gate.ask(LIST, sign_text(issuer, head, claims), method="GET")
        assert answer.status_code in (200, 401), (field, value[:50], answer.text)
        # Also when nobody has signed it, for whichever verifier it is meant.
        for kid in ("one", "penstock-0"):
            forged = with_value({"alg": "HS256", "kid": kid}, field, value)
            assert status(gate, f"{encode(forged)}.{encode(claims)}.") == 401, (field, value[:50])


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "exp", "groups", "tid", "jti"])
def test_a_token_of_our_own_with_wrong_claims_is_refused(gate: GuardedServer, claim: str) -> None:
    ((kid, secret), *_) = gate.work(tokens.get_signing_keys)
    right = {"iss": "penstock", "aud": "penstock", "sub": "ann", "exp": 2_000_000_000, "tid": ""}
    for value in VALUES:
        text = f"{part({'alg': 'HS256', 'kid': kid})}.{encode(with_value(right, claim, value))}"
        digest = hmac.digest(secret.encode(), text.encode(), "sha256")
        signed = f"{text}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
        assert status(gate, signed) in (200, 401), (claim, value[:50])
        if claim == "groups" and not value.startswith(("[", '"')):
            assert status(gate, signed) == 401, value[:50]


def test_credentials_in_a_body_of_any_shape_are_refused(gate: GuardedServer) -> None:
    for value in VALUES:
        for body in (f'{{"identity": {value}}}', f'{{"x": {value}}}', value):
            content = body.encode(errors="surrogatepass")
            answer = gate.server.client.post("/v1/table/a$b/describe", content=content)
            assert answer.status_code == 401, (body[:50], answer.text)


def test_a_key_in_the_token_itself_is_not_trusted(gate: GuardedServer, issuer: Issuer) -> None:
    own = RSAKey.generate_key(2048)
    head = {"alg": "RS256", "kid": "one", "jwk": own.as_dict(private=False)}
    assert status(gate, jwt.encode(head, issuer.claims(), own)) == 401
    head = {"alg": "RS256", "kid": "one", "jku": f"{issuer.url}/keys"}
    assert status(gate, jwt.encode(head, issuer.claims(), own)) == 401


async def proves(oidc: Oidc, token: str, kid: str) -> bool:
    try:
        await oidc.verify(token, kid, int(time.time()))
    except NotAuthenticated:
        return False
    return True


@pytest.mark.anyio
async def test_a_new_key_of_the_issuer_is_fetched_but_not_for_every_unknown_one() -> None:
    with issuing() as issuer:
        oidc = Oidc(Provider(issuer.url, (AUDIENCE,)), pause_seconds=0.3)
        assert await proves(oidc, issuer.sign(), "one")
        assert issuer.asked == 1
        issuer.add_key("two", "EC")
        token = issuer.sign("two", "ES256")
        assert not await proves(oidc, token, "two")
        await asyncio.sleep(0.3)
        results = await asyncio.gather(*(proves(oidc, token, "two") for _ in range(20)))
        assert results == [True] * 20
        assert issuer.asked == 2
        for number in range(50):
            assert not await proves(oidc, token, f"unknown{number}")
        assert issuer.asked <= 3
        # A key that the issuer takes back is not trusted any longer than that is unknown.
        del issuer.keys["one"]
        await asyncio.sleep(0.3)
        old = issuer.sign("one", key=RSAKey.generate_key(2048))
        assert not await proves(oidc, old, "three")
        assert not await proves(oidc, old, "one")


@pytest.mark.anyio
async def test_an_issuer_that_is_away_leaves_its_known_keys_in_use() -> None:
    with issuing() as issuer:
        oidc = Oidc(Provider(issuer.url, (AUDIENCE,)), pause_seconds=0)
        token = issuer.sign()
        assert await proves(oidc, token, "one")
    assert not await proves(oidc, token, "two")
    assert await proves(oidc, token, "one")


def test_a_token_for_a_token_of_the_issuer_does_not_last_longer(
    gate: GuardedServer, issuer: Issuer
) -> None:
    ends = int(time.time()) + 120
    answer = gate.token(grant_type=EXCHANGE, subject_token=issuer.sign(exp=ends))
    assert answer.status_code == 200, answer.text
    assert answer.json()["expires_in"] <= 155
    short = answer.json()["access_token"]
    assert status(gate, short) == 200
    again = gate.token(grant_type=EXCHANGE, subject_token=short)
    assert again.json()["expires_in"] <= 155
