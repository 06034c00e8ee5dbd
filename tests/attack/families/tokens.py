"""Credentials that nobody gave: forged, mixed up, of the wrong kind, or with odd claims."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

from joserfc.jwk import RSAKey

from tests.attack.attack import HANDLED, UNKNOWN, Attack, Request, to_json
from tests.attack.place import HIDDEN, Place
from tests.harness.processes.access import Issuer

FAMILY = "tokens"
LIST = "/v1/namespace/$/list"
# One value of each kind of JSON, and those that are true, large or near to what is wanted.
CLAIMS: tuple[Any, ...] = (
    *(0, -1, 7, 2**31, 2**63, 10**40, 1.5, 1e308, True, False, "", "x", "9999999999", "\x00"),
    *("the-owner", "oidc:ann", "group:all", "operator", "runner", "é" * 3_000),
    *([], ["ann"], [7], [[]], [None], [""], ["a\x00"], ["x"] * 2_000, {}, {"a": 1}, [{"a": []}]),
)
NAMES = ("iss", "sub", "aud", "exp", "nbf", "iat", "jti", "groups", "scope", "azp", "amr", "crit")
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


def make(place: Place) -> Iterator[Attack]:
    for name, token in _forged(place):
        for carrier in ("Authorization", "x-api-key", "body"):
            yield _show(f"{name}, by {carrier}", token, carrier, UNKNOWN)
        yield _exchange(name, token)
    # Signed by the issuer's own key: whatever it claims, it is nobody with a right here.
    for claim in NAMES:
        for value in CLAIMS:
            yield _peek(f"{claim} is {str(value)[:30]!r}", _sign(place.issuer, claim, value))
    for name, head in _heads():
        yield _show(name, _sign_odd(place, head), "Authorization", UNKNOWN)
    yield from _keys(place)


def part(content: Any) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def mac(head: Any, claims: Any, secret: bytes, how: str = "sha256") -> str:
    text = f"{part(head)}.{part(claims)}"
    return f"{text}.{part(hmac.digest(secret, text.encode(), how))}"


def _forged(place: Place) -> Iterator[tuple[str, str]]:
    issuer, claims = place.issuer, place.issuer.claims(sub="root", groups=["admins"])
    key = issuer.keys["one"]
    head, payload, signature = issuer.sign(exp=int(time.time()) + 3600).split(".")
    public = {
        "as PEM": key.as_pem(private=False),
        "as DER": key.as_der(private=False),
        "as a JWK": json.dumps(key.as_dict(private=False)).encode(),
        "as its modulus": key.as_dict(private=False)["n"].encode(),
    }
    for alg in ("none", "None", "NONE", "nOnE", "", " none", "HS256", "RS256 ", "null"):
        yield f"alg {alg!r}, no signature", f"{part({'alg': alg, 'kid': 'one'})}.{payload}."
        yield (
            f"alg {alg!r}, a signature",
            f"{part({'alg': alg, 'kid': 'one'})}.{payload}.{signature}",
        )
    for form, secret in public.items():
        for how in ("256", "384", "512"):
            forged = mac({"alg": f"HS{how}", "kid": "one"}, claims, secret, f"sha{how}")
            yield f"HS{how} with the public key {form}", forged
    for secret in (b"", b"secret", b"\x00" * 32, b"one", b"penstock", hashlib.sha256(b"").digest()):
        for kid in ("one", "", "own", "pstk", "penstock-1", "0", "k" * 500):
            name = f"HS256 with {secret[:8]!r} under {kid[:8]!r}"
            yield name, mac({"alg": "HS256", "kid": kid}, claims, secret)
    own = RSAKey.generate_key(2048)
    yield "another key", issuer.sign(key=own)
    for alg in ("RS384", "RS512", "PS256", "PS384", "PS512"):
        yield f"{alg}, which is not allowed", issuer.sign(alg=alg)
    yield "claims changed", f"{head}.{part(claims)}.{signature}"
    yield "no claims", f"{head}..{signature}"
    yield "claims that are a list", f"{head}.{part([])}.{signature}"
    yield "no signature", f"{head}.{payload}."
    for cut in (1, 10, 100):
        yield f"a signature short of {cut}", f"{head}.{payload}.{signature[:-cut]}"
    yield "a signature of nothing", f"{head}.{payload}.{part(b'')}"
    yield "a signature of zeros", f"{head}.{payload}.{part(bytes(256))}"
    yield "four parts", f"{head}.{payload}.{signature}.{signature}"
    yield "five parts", f"{head}.{payload}.x.{payload}.{signature}"
    yield "two parts", f"{head}.{payload}"
    yield "dots", ".."
    yield "a long one", f"{head}.{'A' * 30_000}.{signature}"
    for claim, value in {
        "aud": ["another", "else"],
        "iss": "https://elsewhere.example",
        "exp": 1,
        "nbf": 2**40,
        "iat": 2**40,
    }.items():
        yield f"{claim} of somebody else", _sign(issuer, claim, value)
    for claim in ("aud", "iss", "exp", "sub"):
        yield f"without {claim}", _sign(issuer, claim, None)


def _sign(issuer: Issuer, claim: str, value: Any) -> str:
    changed: dict[str, Any] = {claim: value}
    return issuer.sign(**changed)


def _heads() -> Iterator[tuple[str, dict[str, Any]]]:
    """Heads that name a key, or where to find one."""
    for kid in (
        "../../etc/passwd",
        "/dev/null",
        "one' OR 1=1 --",
        "one\x00",
        "\x00",
        "One",
        " one",
    ):
        yield f"kid {kid!r}", {"alg": "RS256", "kid": kid}
    for value in (None, 1, True, [], ["one"], {}, {"kid": "one"}):
        yield f"kid is {value!r}", {"alg": "RS256", "kid": value}
        yield f"alg is {value!r}", {"alg": value, "kid": "one"}
    for name in ("jku", "x5u"):
        yield name, {"alg": "RS256", "kid": "one", name: "http://127.0.0.1:1/keys"}
    yield "x5c", {"alg": "RS256", "kid": "one", "x5c": ["AAAA"]}
    yield "jwk", {"alg": "RS256", "kid": "one", "jwk": {"kty": "oct", "k": "AAAA"}}
    for crit in ([], ["exp"], ["x"], "x", 1, None):
        yield f"crit is {crit!r}", {"alg": "RS256", "kid": "one", "crit": crit, "x": 1}
    yield "not encoded", {"alg": "RS256", "kid": "one", "b64": False, "crit": ["b64"]}
    yield "compressed", {"alg": "RS256", "kid": "one", "zip": "DEF"}
    yield "encrypted", {"alg": "RSA-OAEP", "enc": "A256GCM", "kid": "one"}
    yield "a token in it", {"alg": "RS256", "kid": "one", "cty": "JWT"}
    yield "no head", {}


def _sign_odd(place: Place, head: dict[str, Any]) -> str:
    """A head of our own before claims that another key has signed."""
    _, payload, signature = place.issuer.sign().split(".")
    return f"{part(head)}.{payload}.{signature}"


def _keys(place: Place) -> Iterator[Attack]:
    """Keys that are nearly somebody's."""
    key = place.keys["owner"]
    for name, shown in {
        "the last letter": key[:-1] + ("0" if key[-1] != "0" else "1"),
        "one too few": key[:-1],
        "one too many": key + "0",
        "upper case": key.upper(),
        "without its secret": key.rpartition("_")[0],
        "without its id": f"pstk__{key.rpartition('_')[2]}",
        "another's secret": f"{key.rpartition('_')[0]}_{place.keys['reader'].rpartition('_')[2]}",
        "like": "pstk_%_%",
        "wildcard": "pstk_*_*",
        "statement": "pstk_' OR '1'='1_x",
        "empty": "pstk__",
        "prefix": "pstk_",
        "long": "pstk_" + "0" * 15_000,
        "longer": "pstk_" + "0" * 17_000,
        "two keys": f"{key[:-1]},{key[:-1]}",
        "revoked": place.keys["revoked"],
        "expired": place.keys["expired"],
    }.items():
        for carrier in ("Authorization", "x-api-key", "body"):
            yield _show(f"a key: {name}, by {carrier}", shown, carrier, UNKNOWN)
        yield _exchange(f"a key: {name}", shown)
    for scheme in ("Basic", "Digest", "Negotiate", "AWS4-HMAC-SHA256", "Bearer Bearer", "Token"):
        header = (("Authorization", f"{scheme} {key}"),)
        yield Attack(FAMILY, f"scheme {scheme}", "", Request("GET", LIST, b"", header), UNKNOWN)


def _show(name: str, token: str, carrier: str, may: frozenset[int]) -> Attack:
    if carrier == "body":
        content = to_json({"identity": {"auth_token": token}})
        request = Request("POST", f"/v1/namespace/{HIDDEN}/describe", content)
    else:
        shown = f"Bearer {token}" if carrier == "Authorization" else token
        request = Request("GET", LIST, b"", ((carrier, shown),))
    return Attack(FAMILY, name, "", request, may)


def _peek(name: str, token: str) -> Attack:
    """Somebody whom the issuer knows must not see what is hidden, whatever it claims."""
    header = (("Authorization", f"Bearer {token}"),)
    may = frozenset(HANDLED - {200})
    return Attack(
        FAMILY, name, "", Request("POST", f"/v1/namespace/{HIDDEN}/describe", b"", header), may
    )


def _exchange(name: str, token: str) -> Attack:
    from urllib.parse import urlencode

    form = urlencode({"grant_type": EXCHANGE, "subject_token": token}).encode()
    headers = (("Content-Type", "application/x-www-form-urlencoded"),)
    request = Request("POST", "/iceberg/v1/oauth/tokens", form, headers)
    return Attack(FAMILY, f"exchange: {name}", "", request, frozenset({400, 401, 413, 431}))
