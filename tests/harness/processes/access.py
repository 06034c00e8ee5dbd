"""Servers with authentication, keys for them, and an issuer of tokens that tests play."""

import asyncio
import base64
import datetime
import hashlib
import json
import socket
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from penstock.catalog.access import grants, tokens
from penstock.catalog.access.grants import Target
from penstock.catalog.access.tokens import KEY, NewToken
from penstock.database.connect import open_beside
from penstock.database.interface import Database
from penstock.model.origins import NOBODY
from tests.harness.processes import servers
from tests.harness.processes.databases import sqlite_url
from tests.harness.processes.servers import Server

T = TypeVar("T")

# Tests come with wrong credentials as often as they like.
AUTH = {"PENSTOCK__AUTH__ENABLED": "true", "PENSTOCK__AUTH__FAILURES_PER_SECOND": "0"}
AUDIENCE = "penstock-tests"
CLIENT, CLIENT_SECRET = "penstock-console", "s3cret:of/the console"


class Link:
    """A database that stays open: tests use it hundreds of times."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._runner: asyncio.Runner | None = None
        self._database: Database | None = None

    def run(self, work: Callable[[Database], Awaitable[T]]) -> T:
        if self._runner is None or self._database is None:
            self._runner = asyncio.Runner()
            self._database = self._runner.run(open_beside(self._url))

        async def act(database: Database) -> T:
            return await work(database)

        return self._runner.run(act(self._database))

    def close(self) -> None:
        if self._runner is not None and self._database is not None:
            self._runner.run(self._database.close())
            self._runner.close()
            self._runner = self._database = None


@dataclass(frozen=True)
class GuardedServer:
    """A server that needs credentials, and its database."""

    server: Server
    database: str
    link: "Link"

    def key(self, principal: str, **more: Any) -> str:
        """A new key of a principal."""
        return self.make_key(principal, **more)[1]

    def make_key(self, principal: str, kind: str = KEY, **more: Any) -> tuple[tokens.Token, str]:
        new = NewToken(principal, kind, **more)
        return self.work(lambda database: tokens.create(database, new))

    def grant(self, grantee: str, role: str, kind: str = "namespace", *id: str) -> None:
        """Give a role on something; without an id, on the catalog."""
        target = Target(kind, id)
        self.work(lambda db: db.write(grants.create_in, grantee, role, target, NOBODY))

    def ungrant(self, grantee: str, role: str, kind: str = "namespace", *id: str) -> None:
        target = Target(kind, id)
        self.work(lambda db: db.write(grants.revoke_in, grantee, role, target, NOBODY))

    def as_(self, key: str) -> Server:
        """The server as somebody with this key asks it."""
        client = httpx.Client(
            base_url=self.server.url,
            timeout=30,
            verify=False,
            trust_env=False,
            headers={"Authorization": f"Bearer {key}"},
        )
        return replace(self.server, client=client)

    def admin(self) -> Server:
        """The server as somebody asks it who may do everything."""
        name = f"admin{uuid.uuid4().hex[:8]}"
        for role in ("owner", "functions"):
            self.grant(name, role)
        return self.as_(self.key(name))

    def revoke(self, id: str) -> None:
        self.work(lambda database: tokens.revoke(database, id))

    def work(self, work: Callable[[Database], Awaitable[T]]) -> T:
        """Do something with the database, beside the server."""
        return self.link.run(work)

    def ask(
        self,
        path: str,
        credential: str = "",
        body: Any = None,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Ask with a key or token as bearer."""
        given = {"Authorization": f"Bearer {credential}"} if credential else {}
        return self.server.client.request(
            method, path, json=body, headers={**given, **(headers or {})}
        )

    def token(self, **form: str) -> httpx.Response:
        """Ask for a short-lived token."""
        return self.server.client.post("/iceberg/v1/oauth/tokens", data=form)

    def client_token(self, key: str) -> str:
        answer = self.token(grant_type="client_credentials", client_secret=key)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])


@dataclass
class Person:
    """Somebody with a key of their own."""

    gate: GuardedServer
    name: str
    server: Server

    def ask(self, path: str, body: Any = None, **params: Any) -> httpx.Response:
        return self.server.post(f"/v1/{path}", body, **params)

    def get(self, path: str, **params: Any) -> Any:
        answer = self.server.get(f"/v1/{path}", **params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def sees(self, table: str) -> bool:
        answer = self.ask(f"table/{table}/describe")
        assert answer.status_code in (200, 404), answer.text
        return answer.status_code == 200


def person(gate: GuardedServer, **more: Any) -> Person:
    name = f"p{uuid.uuid4().hex[:8]}"
    return Person(gate, name, gate.as_(gate.key(name, **more)))


@contextmanager
def guarded(
    data: Path,
    *arguments: str,
    database: str = "",
    environ: Mapping[str, str] | None = None,
    **more: Any,
) -> Iterator[GuardedServer]:
    """A server that needs credentials, for the length of a block."""
    with servers.running(
        data, *arguments, database=database, environ={**AUTH, **(environ or {})}, **more
    ) as server:
        url = database or sqlite_url(data)
        link = Link(url)
        try:
            yield GuardedServer(server, url, link)
        finally:
            link.close()


@dataclass
class Issuer:
    """An OpenID Connect issuer: its keys, and how often it was asked for them."""

    url: str = ""
    keys: dict[str, Any] = field(default_factory=dict)
    asked: int = 0
    # What was asked of whom by which code, and how the tokens for them differ.
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    claims_of: dict[str, Any] = field(default_factory=dict)
    # Where browsers find its page, if not at its own address, and who sits before them.
    host: str = ""
    visitor: dict[str, Any] = field(default_factory=lambda: {"sub": "ann"})

    def show_page(self, way: str) -> str:
        """Its page in a browser: whoever sits there goes on, or does not."""
        query = {key: values[0] for key, values in parse_qs(urlsplit(way).query).items()}
        denied = urlencode({"error": "access_denied", "state": query["state"]})
        ways = {
            f"Go on as {self.visitor['sub']}": self.sign_in(way, **self.visitor),
            "Not now": f"{query['redirect_uri']}?{denied}",
        }
        links = (f'<p><a href="{escape(to)}">{escape(text)}</a></p>' for text, to in ways.items())
        return f"<!doctype html><title>Issuer</title><main>{''.join(links)}</main>"

    def sign_in(self, way: str, **claims: Any) -> str:
        """Play its page: somebody signs in there; returns where the browser is sent back to."""
        query = {key: values[0] for key, values in parse_qs(urlsplit(way).query).items()}
        code = uuid.uuid4().hex
        self.codes[code], self.claims_of[code] = query, claims
        back = urlencode({"code": code, "state": query["state"]})
        return f"{query['redirect_uri']}?{back}"

    def exchange(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """A token for a code; None for one that it did not give to who asks."""
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or asked["redirect_uri"] != form.get("redirect_uri"):
            return None
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (asked["code_challenge_method"], asked["code_challenge"]) != ("S256", challenge):
            return None
        pair = f"{quote(asked['client_id'])}:{quote(CLIENT_SECRET, safe='')}"
        secret = base64.b64encode(pair.encode()).decode()
        if authorization != f"Basic {secret}":
            return None
        claims = {"aud": asked["client_id"], "nonce": asked["nonce"]}
        return {"id_token": self.sign(**{**claims, **self.claims_of[form["code"]]})}

    def add_key(self, kid: str, kind: str = "RSA") -> None:
        make = RSAKey.generate_key(2048) if kind == "RSA" else ECKey.generate_key("P-256")
        self.keys[kid] = make

    def environ(self) -> dict[str, str]:
        return {
            "PENSTOCK__AUTH__OIDC_ISSUER": self.url,
            "PENSTOCK__AUTH__OIDC_AUDIENCE": AUDIENCE,
        }

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        return {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "exp": now + 300, **more}

    def sign(self, kid: str = "one", alg: str = "RS256", key: Any = None, **more: Any) -> str:
        """A token of this issuer; `more` are claims that differ, None to leave one out."""
        claims = {k: v for k, v in self.claims(**more).items() if v is not None}
        return jwt.encode({"alg": alg, "kid": kid}, claims, key or self.keys[kid], algorithms=[alg])

    def documents(self) -> dict[str, Any]:
        keys = [
            {**key.as_dict(private=False), "kid": kid, "use": "sig"}
            for kid, key in self.keys.items()
        ]
        found = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        found |= {f"{each}_endpoint": f"{self.url}/{each}" for each in ("authorization", "token")}
        if self.host:
            port = urlsplit(self.url).port
            found["authorization_endpoint"] = f"http://{self.host}:{port}/authorization"
        return {"/.well-known/openid-configuration": found, "/keys": {"keys": keys}}


@contextmanager
def issuing() -> Iterator[Issuer]:
    """An issuer with one key, for the length of a block."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked += self.path == "/keys"
            is_page = self.path.startswith("/authorization?")
            shown = issuer.show_page(self.path) if is_page else ""
            content = (shown or json.dumps(issuer.documents().get(self.path, {}))).encode()
            self.send_response(200)
            self.send_header("content-type", "text/html" if is_page else "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {key: values[0] for key, values in parse_qs(body).items()}
            found = issuer.exchange(form, self.headers.get("authorization", ""))
            content = json.dumps(found or {"error": "invalid_grant"}).encode()
            self.send_response(400 if found is None else 200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
    issuer.add_key("one")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()


def connect(server: Server) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=10)


def tls(folder: Path) -> dict[str, str]:
    """Settings with a certificate for localhost that is made for them."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    hosts = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(hosts, critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "tls.crt", folder / "tls.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    names = ("CERTIFICATE", "KEY")
    return {f"PENSTOCK__SERVER__TLS_{n}": str(f) for n, f in zip(names, files, strict=True)}
