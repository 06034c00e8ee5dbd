"""Sign in, tell who is signed in, and sign out: /console/api/session."""

import logging
from typing import Annotated

import msgspec

from penstock.catalog.access import sessions, tokens
from penstock.catalog.catalog import Catalog
from penstock.errors import Forbidden, InvalidRequest, NotAuthenticated
from penstock.model.codes import UNSUPPORTED
from penstock.model.principals import Identity
from penstock.model.rights import NAMESPACE, ROLES, Standing
from penstock.server.access import browser_sessions, oidc_sign_in
from penstock.server.access.gate import Gate
from penstock.server.access.oidc_sign_in import OidcSignIn
from penstock.server.lance.errors import error_reply
from penstock.server.transport.exchange import Exchange
from penstock.server.transport.http import (
    JSON,
    NOT_STORED,
    Reply,
    decode_json,
    read_body,
    read_query,
)

SESSION, SIGN_IN, SIGNED_IN = "session", "sign-in", "signed-in"
JOURNEY_COOKIE = "penstock_sign_in"
# Where the page says that it did not work.
NOT_SIGNED_IN = b"/console/sign-in?refused"
log = logging.getLogger(__name__)

MAX_BODY = 16 * 1024
SENT_JSON = JSON.decode()
METHODS = "GET, POST, DELETE"


class SignIn(msgspec.Struct):
    key: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class SessionAnswer(msgspec.Struct, kw_only=True):
    """Who looks at the console, and what they may on the whole catalog."""

    # Whether this server asks for credentials at all.
    authentication: bool
    signed_in: bool
    principal: str = ""
    groups: tuple[str, ...] = ()
    roles: list[str] = []
    expires_at: int | None = None
    csrf: str = ""
    # How one can sign in.
    sign_in: list[str]
    version: str


_sign_in = msgspec.json.Decoder(SignIn)


class SessionRequests:
    """The console's own requests; all others are the API's."""

    def __init__(
        self,
        catalog: Catalog,
        gate: Gate | None,
        seconds: int,
        version: str,
        issuer: OidcSignIn | None = None,
    ) -> None:
        self._catalog = catalog
        self._gate = gate
        self._seconds = seconds
        self._version = version
        self._issuer = issuer
        self._ways = ["key"] if issuer is None else ["key", "oidc"]

    async def answer(self, exchange: Exchange, within: list[str]) -> Reply:
        if within in ([SIGN_IN], [SIGNED_IN]) and self._gate is not None and self._issuer:
            if exchange.method != "GET":
                return self._refuse_method(exchange, "GET")
            if within == [SIGN_IN]:
                return await self._go(self._issuer, exchange)
            exchange.operation = "SignIn"
            return await self._come_back(self._gate, self._issuer, exchange)
        if within != [SESSION]:
            return error_reply(
                404, UNSUPPORTED, "nothing is served here", "", exchange.request_id, NOT_STORED
            )
        match exchange.method:
            case "GET" | "HEAD":
                exchange.operation = "DescribeSession"
                return await self._describe(exchange)
            case "POST":
                exchange.operation = "SignIn"
                return await self._sign_in(exchange)
            case "DELETE":
                exchange.operation = "SignOut"
                return await self._sign_out(exchange)
        return self._refuse_method(exchange, METHODS)

    def _refuse_method(self, exchange: Exchange, methods: str) -> Reply:
        told = f"{exchange.method} does nothing to a session"
        allow = (b"allow", methods.encode())
        return error_reply(405, UNSUPPORTED, told, f"use {methods}", exchange.request_id, (allow,))

    async def _go(self, issuer: OidcSignIn, exchange: Exchange) -> Reply:
        """Send a browser to the issuer."""
        exchange.operation = "BeginSignIn"
        journey = oidc_sign_in.begin()
        way = await issuer.find_way(journey)
        cookie = self._write_journey(exchange, str(journey), oidc_sign_in.SECONDS)
        headers = (*NOT_STORED, (b"location", way.encode()), (b"set-cookie", cookie))
        return Reply(302, headers=headers)

    async def _come_back(self, gate: Gate, issuer: OidcSignIn, exchange: Exchange) -> Reply:
        """Begin the session of somebody who comes back from the issuer."""
        query = read_query(exchange.scope)
        cookies = browser_sessions.read_cookies(exchange.headers.values)
        gone = (b"set-cookie", self._write_journey(exchange, "", 0))
        exchange.subject = ""
        try:
            journey = oidc_sign_in.read_journey(cookies.get(JOURNEY_COOKIE, ""))
            state, code = (query.get(name, [""])[-1] for name in ("state", "code"))
            who = await issuer.finish(journey, state, code)
        except NotAuthenticated as error:
            log.warning("somebody was not signed in by the issuer: %s", error.message)
            gate.count_failure(exchange.address)
            return Reply(302, headers=(*NOT_STORED, (b"location", NOT_SIGNED_IN), gone))
        exchange.principal = who.principal
        exchange.prove()
        gate.count(who)
        reply = await self._begin(gate, who, secure=self._is_secure(exchange))
        cookies_of = [each for each in reply.headers if each[0] == b"set-cookie"]
        return Reply(302, headers=(*NOT_STORED, (b"location", b"/console"), gone, *cookies_of))

    def _write_journey(self, exchange: Exchange, text: str, seconds: int) -> bytes:
        # Sent along when the issuer's page leads back here, which a strict cookie is not.
        secure = "; Secure" if self._is_secure(exchange) else ""
        return (
            f"{JOURNEY_COOKIE}={text}; Path=/console/api; HttpOnly; SameSite=Lax; "
            f"Max-Age={seconds}{secure}"
        ).encode()

    async def _describe(self, exchange: Exchange) -> Reply:
        if self._gate is None:
            return self._reply(self._tell_open())
        secret = self._find_secret(exchange)
        who = None if secret is None else await self._gate.find_session(secret)
        if who is None or secret is None:
            if secret is not None:
                self._gate.count_failure(exchange.address)
            return self._reply(self._tell_nobody())
        browser_sessions.check_page(exchange.headers.values)
        exchange.principal, exchange.token = who.principal, who.token
        exchange.prove()
        return self._reply(await self._tell(self._gate, who, secret))

    async def _sign_in(self, exchange: Exchange) -> Reply:
        if self._gate is None:
            raise InvalidRequest(
                "this server asks for no credentials", detail="go on without signing in"
            )
        headers = exchange.headers.values
        exchange.subject = ""
        browser_sessions.check_page(headers)
        # Other sites' pages can send forms and plain text, and this only if we would allow it.
        if headers.get("content-type", "").partition(";")[0].strip().lower() != SENT_JSON:
            raise InvalidRequest("the body is not said to be JSON", detail=f"say {SENT_JSON}")
        body = await read_body(exchange.receive, MAX_BODY, "send the key alone")
        key = decode_json(_sign_in, body, "sign-in").key.strip()
        if not key.startswith(tokens.PREFIX):
            self._gate.count_failure(exchange.address)
            raise NotAuthenticated(
                "that is no key", detail="paste what 'penstock token create' printed"
            )
        who = await self._gate.prove(key, exchange.address)
        exchange.principal, exchange.token = who.principal, who.token
        exchange.prove()
        if who.is_runner:
            raise Forbidden("a runner's key is not for people", detail="use another key")
        self._gate.count(who)
        return await self._begin(self._gate, who, secure=self._is_secure(exchange))

    async def _begin(self, gate: Gate, who: Identity, *, secure: bool) -> Reply:
        _, secret = await sessions.begin(self._catalog.database, who, self._seconds)
        signed_in = await gate.find_session(secret)
        if signed_in is None:
            raise NotAuthenticated("the key was revoked meanwhile", detail="ask for a new one")
        cookie = browser_sessions.write_cookie(secret, self._seconds, secure=secure)
        return self._reply(await self._tell(gate, signed_in, secret), cookie)

    async def _sign_out(self, exchange: Exchange) -> Reply:
        headers, secret = exchange.headers.values, self._find_secret(exchange)
        gone = tuple(
            (b"set-cookie", browser_sessions.write_cookie("", 0, secure=secure))
            for secure in (False, True)
        )
        if self._gate is not None and secret is not None:
            browser_sessions.check_page(headers)
            who = await self._gate.find_session(secret)
            if who is not None:
                exchange.subject = ""
                exchange.principal, exchange.token = who.principal, who.token
                browser_sessions.check_proof(headers, exchange.method, secret)
                if "all" in read_query(exchange.scope):
                    await sessions.end_all(self._catalog.database, who.principal)
                else:
                    await sessions.end(self._catalog.database, who.session)
        secure = self._is_secure(exchange)
        return Reply(204, headers=(*NOT_STORED, *(gone if secure else gone[:1])))

    def _is_secure(self, exchange: Exchange) -> bool:
        headers, scheme = exchange.headers.values, exchange.scope["scheme"]
        by_proxy = self._issuer is not None and self._issuer.is_secure
        return by_proxy or browser_sessions.is_secure(headers, scheme)

    def _find_secret(self, exchange: Exchange) -> str | None:
        return browser_sessions.find_secret(exchange.headers.values, exchange.scope["scheme"])

    async def _tell(self, gate: Gate, who: Identity, secret: str) -> SessionAnswer:
        standing = await gate.access.standing(who, NAMESPACE, ())
        return SessionAnswer(
            authentication=True,
            signed_in=True,
            principal=who.principal,
            groups=who.groups,
            roles=list_roles(standing),
            expires_at=who.expires_at,
            csrf=sessions.proof_of(secret),
            sign_in=self._ways,
            version=self._version,
        )

    def _tell_nobody(self) -> SessionAnswer:
        return SessionAnswer(
            authentication=True, signed_in=False, sign_in=self._ways, version=self._version
        )

    def _tell_open(self) -> SessionAnswer:
        return SessionAnswer(
            authentication=False,
            signed_in=True,
            roles=list(ROLES),
            sign_in=[],
            version=self._version,
        )

    def _reply(self, told: SessionAnswer, *cookies: bytes) -> Reply:
        headers = (*NOT_STORED, *((b"set-cookie", cookie) for cookie in cookies))
        return Reply(200, msgspec.json.encode(told), headers=headers)


def list_roles(standing: Standing) -> list[str]:
    """The roles whose rights somebody has, the least first."""
    return [role for role, rights in ROLES.items() if standing.has(rights)]
