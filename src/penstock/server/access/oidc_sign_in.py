"""Sign people in at an OpenID Connect issuer: the authorization code flow with PKCE.

What ties the way back to the way there (state, nonce and verifier) is in a cookie of the browser
that went, and in nothing of ours.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from penstock.errors import NotAuthenticated, Unavailable
from penstock.model.principals import Identity
from penstock.server.access.jwts import NOT_JSON
from penstock.server.access.oidc import (
    FETCH_SECONDS,
    MAX_DOCUMENT_BYTES,
    NoRedirects,
    Oidc,
    read_discovery,
)

# How long somebody may take at the issuer.
SECONDS = 600
# How long what the issuer says of itself counts.
KEPT_SECONDS = 300.0
MAX_CODE = 4096


@dataclass(frozen=True, slots=True)
class Client:
    """What the issuer knows the console as."""

    id: str
    # Empty for a public client.
    secret: str
    # Where the issuer sends people back to.
    redirect_url: str
    scope: str = "openid"


@dataclass(frozen=True, slots=True)
class Journey:
    """One way to the issuer and back."""

    state: str
    nonce: str
    verifier: str

    def __str__(self) -> str:
        return f"{self.state}.{self.nonce}.{self.verifier}"


def begin() -> Journey:
    return Journey(*(secrets.token_urlsafe(32) for _ in range(3)))


def read_journey(text: str) -> Journey:
    """The journey in a browser's cookie; it was not begun here if there is none."""
    parts = text.split(".")
    if len(parts) != 3 or not all(parts):
        raise NotAuthenticated("nobody began to sign in with this browser", detail="begin again")
    return Journey(*parts)


class OidcSignIn:
    """The issuer, as the console asks it."""

    def __init__(self, oidc: Oidc, client: Client) -> None:
        self._oidc = oidc
        self._client = client
        self._endpoints: tuple[str, str] | None = None
        self._asked_at = float("-inf")

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach us by TLS, whoever speaks it."""
        return self._client.redirect_url.startswith("https://")

    async def find_way(self, journey: Journey) -> str:
        """Where the browser has to go."""
        authorize, _ = await self._find_endpoints()
        digest = hashlib.sha256(journey.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": self._client.redirect_url,
            "scope": self._client.scope,
            "state": journey.state,
            "nonce": journey.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        return f"{authorize}{'&' if '?' in authorize else '?'}{urlencode(query)}"

    async def finish(self, journey: Journey, state: str, code: str) -> Identity:
        """Who came back from the issuer with this code."""
        if not hmac.compare_digest(state.encode(), journey.state.encode()):
            raise NotAuthenticated("this is another way back", detail="begin again")
        if not code or len(code) > MAX_CODE:
            raise NotAuthenticated("the issuer did not sign anybody in", detail="begin again")
        _, tokens = await self._find_endpoints()
        answer = await asyncio.to_thread(self._exchange, tokens, code, journey.verifier)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise NotAuthenticated("the issuer did not tell who it is", detail="begin again")
        return await self._oidc.verify_sign_in(
            token, self._client.id, journey.nonce, int(time.time())
        )

    async def _find_endpoints(self) -> tuple[str, str]:
        now = time.monotonic()
        if self._endpoints is None or now - self._asked_at > KEPT_SECONDS:
            found = await asyncio.to_thread(read_discovery, self._oidc.provider)
            issuer = self._oidc.provider.issuer
            authorize, tokens = (
                _check(found.get(f"{each}_endpoint"), issuer) for each in ("authorization", "token")
            )
            self._endpoints = authorize, tokens
            self._asked_at = now
        return self._endpoints

    def _exchange(self, url: str, code: str, verifier: str) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._client.redirect_url,
            "client_id": self._client.id,
            "code_verifier": verifier,
        }
        headers = {"accept": "application/json"}
        if self._client.secret:
            pair = f"{quote(self._client.id, safe='')}:{quote(self._client.secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        request = urllib.request.Request(url, urlencode(form).encode(), headers)
        opener = urllib.request.build_opener(NoRedirects)
        try:
            with opener.open(request, timeout=FETCH_SECONDS) as answer:
                content = answer.read(MAX_DOCUMENT_BYTES)
            return msgspec.json.decode(content, type=dict[str, Any])
        except urllib.error.HTTPError as error:
            # It never says more than who asks could know.
            raise NotAuthenticated(
                f"the issuer did not take the code ({error.code})", detail="begin again"
            ) from error
        except (OSError, ValueError, *NOT_JSON) as error:
            raise Unavailable(f"{url} cannot be asked: {error}") from error


def _check(url: Any, issuer: str) -> str:
    allowed = ("https://",) if issuer.startswith("https://") else ("https://", "http://")
    if not isinstance(url, str) or not url.startswith(allowed):
        raise Unavailable(f"{issuer} does not say where people sign in")
    return url
