"""The gate: authenticates requests by their credentials.

With authentication off there is no gate, and requests pass unchecked.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from penstock.catalog.access import sessions, tokens
from penstock.catalog.access.audit import AuditLog, make_entry
from penstock.catalog.access.permissions import MAX_KEPT, AccessCache
from penstock.errors import Forbidden, NotAuthenticated, PenstockError
from penstock.model.identifiers import ROOT
from penstock.model.principals import Identity
from penstock.model.rights import NAMESPACE, Need, Standing
from penstock.server.access import browser_sessions, signing
from penstock.server.access.jwts import HOW, NOT_JSON, read_head
from penstock.server.access.limits import Limiter
from penstock.server.access.oidc import Oidc
from penstock.server.access.rules import CATALOG, C, PathNames, Rule
from penstock.server.transport.exchange import Exchange

MAX_CREDENTIAL = 16_384
TOO_MANY = 429
# How much of a request with credentials in its body is read before its sender is known.
MAX_UNKNOWN_BODY = 1024 * 1024
SEND_LESS = "send less, or the credentials in a header"


class BodyIdentity(msgspec.Struct):
    api_key: str | None = None
    auth_token: str | None = None


class _WithIdentity(msgspec.Struct):
    identity: BodyIdentity | None = None


_identity = msgspec.json.Decoder(_WithIdentity)


class Gate:
    """Lets requests with valid credentials in."""

    def __init__(
        self,
        access: AccessCache,
        token_seconds: int,
        limiter: Limiter,
        audit: AuditLog,
        oidc: Oidc | None = None,
    ) -> None:
        self.access = access
        self._limiter = limiter
        self._audit = audit
        self._token_seconds = token_seconds
        self.oidc = oidc
        # Verified tokens, by digest; until they expire, or access changes.
        self._verified: dict[bytes, Identity] = {}
        self._generation = (-1, 0)

    async def enter(
        self,
        exchange: Exchange,
        identity: Identity | None = None,
        work: str = "",
        *,
        for_runners: bool = False,
    ) -> Identity:
        """Authenticate a request by its headers and count it; refuses it when that fails.

        `work` is the kind of long-running work that it is.
        """
        identity = identity or await self.identify(exchange)
        if identity is None:
            raise self._refuse(exchange)
        exchange.principal, exchange.token = identity.principal, identity.token
        exchange.prove()
        if identity.is_runner and not for_runners:
            raise Forbidden(
                "a runner's key leases jobs and commits their results, and nothing else",
                detail="use another key",
            )
        self.count(identity)
        if work:
            exchange.at_end = self._limiter.begin(identity.principal, work)
        return identity

    def count(self, identity: Identity) -> None:
        """Count a request of an authenticated caller."""
        if not identity.is_runner:
            self._limiter.take(identity.principal)

    def count_failure(self, address: str) -> None:
        """Count a request without valid credentials; refuses it when there were too many."""
        self._limiter.check_address(address)
        self._limiter.note_failure(address)

    def note(self, exchange: Exchange, status: int) -> None:
        """Record a change, done or refused, in the audit log."""
        if status == TOO_MANY and not exchange.principal:
            # Nobody can fill the log without credentials.
            return
        self._audit.note(
            make_entry(
                exchange.principal,
                exchange.operation,
                exchange.subject or "",
                status,
                token=exchange.token,
                request_id=exchange.request_id,
                address=exchange.address,
            )
        )

    async def close(self) -> None:
        """Write out what is pending."""
        await self._audit.close()
        await self.access.close()

    async def identify(self, exchange: Exchange) -> Identity | None:
        """The sender of a request, by its headers; None when they have no credentials."""
        headers = exchange.headers.values
        credential = find_credential(headers)
        if credential is not None:
            return await self.prove(credential, exchange.address)
        self._limiter.check_address(exchange.address)
        secret = browser_sessions.find_secret(headers, exchange.scope["scheme"])
        if secret is None:
            return None
        browser_sessions.check_page(headers)
        identity = await self.find_session(secret)
        if identity is None:
            self._limiter.note_failure(exchange.address)
            raise NotAuthenticated("the session has ended", detail="sign in again")
        browser_sessions.check_proof(headers, exchange.method, secret)
        return identity

    async def find_session(self, secret: str) -> Identity | None:
        """Whose session it is: the rights of the key that it began with, while both are valid."""
        await self.access.refresh()
        session = await self.access.find_session(sessions.digest_of(secret))
        if session is None:
            return None
        if not session.token:
            return Identity(
                session.principal,
                session.groups,
                expires_at=session.expires_at,
                session=session.digest,
            )
        key = await self.access.find_token(session.token)
        if key is None or not key.is_valid(self.access.now_millis):
            return None
        self.access.note_use(key.id)
        ends = min(session.expires_at, key.expires_at or session.expires_at)
        return replace(key.identity, expires_at=ends, session=session.digest)

    async def identify_body(self, body: bytes, exchange: Exchange) -> Identity:
        """The sender of a request, by `identity` in its body."""
        try:
            given = _identity.decode(body).identity if body else None
        except NOT_JSON:
            given = None
        credential = (given.api_key or given.auth_token) if given is not None else None
        if not credential:
            raise self._refuse(exchange)
        return await self.prove(credential, exchange.address)

    async def admit(
        self, identity: Identity, rule: Rule[C], call: C, names: PathNames, exchange: Exchange
    ) -> Standing:
        """Refuse a call that its rule does not allow; returns the caller's rights there."""
        need = rule.need(names)
        standing = await self.access.check(identity, need)
        if rule.more is not None:
            needs = await rule.more(call, self.access)
            if exchange.subject is not None and rule.on == CATALOG and needs:
                exchange.subject = ", ".join(dict.fromkeys(map(str, needs)))
            if exchange.subject is not None and rule.tell is not None:
                exchange.subject = rule.tell(call)
            for need in needs:
                standing = await self.access.check(identity, need)
        return standing

    async def still_admits(
        self, identity: Identity, rule: Rule[C], call: C, names: PathNames, exchange: Exchange
    ) -> bool:
        """Whether a call that is still running would be let in now."""
        try:
            await self.access.refresh()
            if identity.expires_at is not None and self.access.now_millis >= identity.expires_at:
                return False
            if identity.token:
                key = await self.access.find_token(identity.token)
                if key is None or not key.is_valid(self.access.now_millis):
                    return False
            if identity.session and await self.access.find_session(identity.session) is None:
                return False
            await self.admit(identity, rule, call, names, exchange)
        except PenstockError:
            return False
        return True

    async def check_catalog(self, exchange: Exchange, right: int) -> None:
        """Refuse a caller without a right on the whole catalog."""
        identity = await self.identify(exchange)
        if identity is None:
            raise self._refuse(exchange)
        await self.access.check(identity, Need(right, NAMESPACE, ROOT))

    async def prove(self, credential: str, address: str) -> Identity:
        """The identity that a key or token proves, sent from an address."""
        await self.access.refresh()
        if not self._is_remembered(credential):
            self._limiter.check_address(address)
        try:
            return await self._prove(credential)
        except NotAuthenticated:
            self._limiter.note_failure(address)
            raise

    def _is_remembered(self, credential: str) -> bool:
        """Whether it is cached, as all credentials in use are."""
        parts = tokens.split_key(credential)
        if parts is not None:
            return self.access.remembers(parts[0])
        return len(credential) <= MAX_CREDENTIAL and _digest(credential) in self._verified

    def _refuse(self, exchange: Exchange) -> NotAuthenticated:
        self._limiter.note_failure(exchange.address)
        return NotAuthenticated("this server needs credentials", detail=HOW)

    async def _prove(self, credential: str) -> Identity:
        if len(credential) > MAX_CREDENTIAL:
            raise NotAuthenticated("the credentials are too long", detail=HOW)
        if credential.startswith(tokens.PREFIX):
            identity = await self._prove_key(credential)
        elif credential.count(".") == 2:
            identity = await self._prove_jwt(credential)
        else:
            raise NotAuthenticated("the credentials are neither a key nor a token", detail=HOW)
        if identity.token:
            self.access.note_use(identity.token)
        return identity

    async def issue(self, identity: Identity) -> tuple[str, int]:
        """A short-lived token for a caller, and for how many seconds it is valid."""
        now = self.access.now_millis // 1000
        expires = now + self._token_seconds
        # A token never outlives the credential it was issued for. One of ours that was issued for a
        # key can be exchanged for a new one: the key is what ends it.
        ends = identity.expires_at
        if identity.token:
            key = await self.access.find_token(identity.token)
            ends = None if key is None else key.expires_at
        if ends is not None:
            expires = min(expires, math.floor(ends / 1000))
        keys = await self.access.signing_keys()
        return signing.sign(identity, keys[0], now, expires), expires - now

    async def _prove_key(self, credential: str) -> Identity:
        parts = tokens.split_key(credential)
        if parts is None:
            raise NotAuthenticated("the key is not complete", detail="copy all of it")
        id, secret = parts
        found = await self.access.find_token(id)
        if not tokens.matches(found, secret) or found is None:
            raise NotAuthenticated("the key is not known", detail="ask for a new one")
        self._check_key(found)
        return found.identity

    async def _prove_jwt(self, credential: str) -> Identity:
        generation = (self.access.generation, 0 if self.oidc is None else self.oidc.changes)
        if self._generation != generation:
            self._generation = generation
            self._verified.clear()
        digest = _digest(credential)
        identity = self._verified.get(digest)
        now = self.access.now_millis
        if identity is None:
            identity = await self._verify(credential, now // 1000)
            if len(self._verified) >= MAX_KEPT:
                self._verified.clear()
            # Keys may have changed while it was verified.
            if self._generation == generation:
                self._verified[digest] = identity
        elif identity.expires_at is not None and now >= identity.expires_at:
            del self._verified[digest]
            raise NotAuthenticated("the token has expired", detail="ask for a new one")
        if identity.token:
            # The key that it was issued for may have expired.
            found = await self.access.find_token(identity.token)
            if found is None:
                raise NotAuthenticated("the token's key is not known", detail="ask for a new one")
            self._check_key(found)
        return identity

    async def _verify(self, credential: str, now: int) -> Identity:
        kid = read_head(credential).kid
        if kid.startswith(signing.OWN_KEY_PREFIX):
            keys = await self.access.signing_keys()
            return signing.verify(credential, kid, keys, now).identity
        if self.oidc is None:
            raise NotAuthenticated("the token is not one of this server's", detail=HOW)
        return await self.oidc.verify(credential, kid, now)

    def _check_key(self, found: tokens.Token) -> None:
        if not found.is_valid(self.access.now_millis):
            how = "was revoked" if found.revoked_at is not None else "has expired"
            raise NotAuthenticated(f"the key {how}", detail="ask for a new one")


def _digest(credential: str) -> bytes:
    return hashlib.sha256(credential.encode(errors="replace")).digest()


def find_credential(headers: Mapping[str, str]) -> str | None:
    """The key or token in the headers, if there is one."""
    if key := headers.get("x-api-key", "").strip():
        return key
    scheme, _, value = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer" and (token := value.strip()):
        return token
    if scheme and scheme.lower() != "bearer":
        raise NotAuthenticated("Authorization has another scheme than Bearer", detail=HOW)
    return None
