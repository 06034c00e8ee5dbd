"""Bearer tokens of an OpenID Connect issuer: JWTs, verified with the issuer's public keys.

The keys are fetched in the background and cached; a token with an unknown key id triggers a fetch,
but only every few seconds, so that nobody can make us ask all the time. Redirects are not followed:
only the address in the settings is trusted.
"""

import asyncio
import hmac
import logging
import urllib.request
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from penstock.errors import NotAuthenticated, Unavailable
from penstock.model.principals import FOREIGN, Identity
from penstock.server.access.doors import errors, jwk
from penstock.server.access.jwts import NOT_JSON, open_signed, read_head

log = logging.getLogger(__name__)

DISCOVERY = "/.well-known/openid-configuration"
FETCH_SECONDS = 5
MAX_DOCUMENT_BYTES = 1024 * 1024
REFRESH_SECONDS = 300.0
# The least time between two fetches for unknown keys.
PAUSE_SECONDS = 10.0
MAX_GROUPS, MAX_NAME = 500, 250


@dataclass(frozen=True, slots=True)
class Provider:
    """The issuer's settings."""

    issuer: str
    audience: tuple[str, ...]
    jwks_url: str = ""
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    principal_claim: str = "sub"
    groups_claim: str = "groups"
    leeway_seconds: int = 30


class Oidc:
    """An issuer and its known keys."""

    def __init__(self, provider: Provider, pause_seconds: float = PAUSE_SECONDS) -> None:
        self.provider = provider
        self._pause_seconds = pause_seconds
        self._keys: dict[str, jwk.Key] = {}
        self._fetching: asyncio.Task[None] | None = None
        self._asked_at = float("-inf")
        # How often the keys changed.
        self.changes = 0

    async def keep(self) -> None:
        """Fetch the keys at intervals."""
        while True:
            await self._fetch()
            await asyncio.sleep(REFRESH_SECONDS)

    async def verify(self, text: str, kid: str, now: int) -> Identity:
        """The bearer's identity, once everything about the token is verified."""
        return read_claims(await self._open(text, kid), self.provider, now)

    async def verify_sign_in(self, text: str, client: str, nonce: str, now: int) -> Identity:
        """Who signed in, by a token that was made for this client and this very occasion."""
        claims = await self._open(text, read_head(text).kid)
        if not hmac.compare_digest(str(claims.get("nonce")).encode(), nonce.encode()):
            raise NotAuthenticated("the token was made for another occasion", detail="begin again")
        return read_claims(claims, replace(self.provider, audience=(client,)), now)

    async def _open(self, text: str, kid: str) -> dict[str, Any]:
        """The claims of a token that one of the issuer's keys has signed."""
        key = await self._find_key(kid)
        claims = open_signed(text, key, self.provider.algorithms)
        if (wanted := key.get("alg")) is not None and wanted != read_head(text).alg:
            raise NotAuthenticated("the token's algorithm is not its key's")
        return claims

    async def _find_key(self, kid: str) -> "jwk.Key":
        if kid not in self._keys:
            clock = asyncio.get_running_loop().time
            if self._fetching is None and clock() - self._asked_at >= self._pause_seconds:
                self._asked_at = clock()
                self._fetching = asyncio.create_task(self._fetch())
                self._fetching.add_done_callback(self._fetched)
            if self._fetching is not None:
                await asyncio.shield(self._fetching)
        found = self._keys.get(kid)
        if found is None:
            raise NotAuthenticated("the token was signed with a key that its issuer does not have")
        return found

    def _fetched(self, _: "asyncio.Task[None]") -> None:
        self._fetching = None

    async def _fetch(self) -> None:
        try:
            found = await asyncio.to_thread(_fetch_keys, self.provider)
            self.changes += {k: v.thumbprint() for k, v in found.items()} != {
                k: v.thumbprint() for k, v in self._keys.items()
            }
            self._keys = found
        except Unavailable as error:
            # Keep using known keys: an unreachable issuer must not lock everyone out.
            log.warning("%s", error.message)


def read_claims(claims: dict[str, Any], provider: Provider, now: int) -> Identity:
    """The identity in a token with a valid signature."""
    leeway = provider.leeway_seconds
    if claims.get("iss") != provider.issuer:
        raise NotAuthenticated("the token comes from another issuer")
    audience = claims.get("aud")
    given = audience if isinstance(audience, list) else [audience]
    if not set(provider.audience) & {each for each in given if isinstance(each, str)}:
        raise NotAuthenticated("the token was made for another audience")
    expires = claims.get("exp")
    if not _is_time(expires):
        raise NotAuthenticated("the token has no exp")
    assert isinstance(expires, int | float)
    if now >= expires + leeway:
        raise NotAuthenticated("the token has expired", detail="ask its issuer for a new one")
    for claim in ("nbf", "iat"):
        since = claims.get(claim)
        if since is not None and (not _is_time(since) or now + leeway < since):
            raise NotAuthenticated(f"the token is not valid yet ({claim})")
    name = claims.get(provider.principal_claim)
    if not isinstance(name, str) or not name or not name.isprintable() or len(name) > MAX_NAME:
        raise NotAuthenticated(f"the token's {provider.principal_claim} is not a name")
    groups = claims.get(provider.groups_claim)
    given = groups if isinstance(groups, list) else [] if groups is None else [groups]
    if not all(isinstance(each, str) for each in given):
        raise NotAuthenticated(f"the token's {provider.groups_claim} are not names")
    # Illegal names can have no grants, and need not reach a database.
    known = tuple(g for g in given[:MAX_GROUPS] if g and g.isprintable() and len(g) <= MAX_NAME)
    return Identity(f"{FOREIGN}{name}", known, expires_at=int(expires + leeway) * 1000)


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53


def read_discovery(provider: Provider) -> dict[str, Any]:
    """What an issuer says of itself."""
    found = _fetch_json(provider.issuer.rstrip("/") + DISCOVERY)
    if found.get("issuer") != provider.issuer:
        raise Unavailable(f"{provider.issuer} does not describe itself as auth.oidc_issuer")
    return found


def _fetch_keys(provider: Provider) -> "dict[str, jwk.Key]":
    url = provider.jwks_url
    if not url:
        url = str(read_discovery(provider).get("jwks_uri"))
        if not url.startswith("https://") and provider.issuer.startswith("https://"):
            raise Unavailable(f"{provider.issuer} has its keys at {url}, which is not https")
    keys: dict[str, jwk.Key] = {}
    entries = _fetch_json(url).get("keys")
    for entry in entries if isinstance(entries, list) else ():
        # Only public signing keys; a shared secret in a public document is no secret.
        if not isinstance(entry, dict) or entry.get("kty") == "oct" or entry.get("use") == "enc":
            continue
        try:
            keys[str(entry["kid"])] = jwk.JWKRegistry.import_key(entry)
        except (errors.JoseError, ValueError, KeyError) as error:
            log.warning("a key of %s cannot be used: %r", url, error)
    return keys


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows nobody to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _fetch_json(url: str) -> dict[str, Any]:
    if not url.startswith(("https://", "http://")):
        raise Unavailable(f"{url!r} is no web address")
    try:
        with urllib.request.build_opener(NoRedirects).open(url, timeout=FETCH_SECONDS) as answer:
            content = answer.read(MAX_DOCUMENT_BYTES)
        return msgspec.json.decode(content, type=dict[str, Any])
    except (OSError, ValueError, *NOT_JSON) as error:
        raise Unavailable(f"{url} cannot be read: {error}") from error
