"""Our own short-lived tokens: JWTs, signed with a key of this catalog.

A token names the key it was issued for, which is checked at every request, so revoking the key
revokes the token. joserfc is imported late, because a server without authentication never needs it.
"""

import secrets
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from penstock.errors import NotAuthenticated
from penstock.model.principals import Identity
from penstock.server.access.doors import jwk, jwt
from penstock.server.access.jwts import open_signed

ISSUER = "penstock"
# The kid of all our signing keys begins like this; no other verifier gets such a token.
OWN_KEY_PREFIX = "penstock-"
# One algorithm, so that no header can choose another.
ALGORITHM = "HS256"
# The range that both databases can query.
PLAIN = "^[^\\x00]*$"


class Claims(msgspec.Struct, frozen=True):
    """The claims of our tokens; times are seconds."""

    iss: str
    aud: str
    sub: Annotated[str, msgspec.Meta(pattern=PLAIN, min_length=1)]
    exp: Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
    tid: Annotated[str, msgspec.Meta(pattern=PLAIN)] = ""
    groups: tuple[Annotated[str, msgspec.Meta(pattern=PLAIN)], ...] = ()

    @property
    def identity(self) -> Identity:
        return Identity(self.sub, self.groups, self.tid, expires_at=self.exp * 1000)


def sign(identity: Identity, key: tuple[str, str], now: int, expires: int) -> str:
    """A token for this caller."""
    claims: dict[str, Any] = {
        "iss": ISSUER,
        "aud": ISSUER,
        "sub": identity.principal,
        "groups": list(identity.groups),
        "tid": identity.token,
        "iat": now,
        "exp": expires,
        "jti": secrets.token_hex(8),
    }
    kid, secret = key
    return jwt.encode(
        {"alg": ALGORITHM, "kid": kid},
        claims,
        jwk.OctKey.import_key(secret),
        algorithms=[ALGORITHM],
    )


def verify(text: str, kid: str, keys: Sequence[tuple[str, str]], now: int) -> Claims:
    """The claims of one of our tokens, after checking its signature and times."""
    secret = dict(keys).get(kid)
    if secret is None:
        raise NotAuthenticated("the token was signed with a key that is not used any more")
    claims = open_signed(text, jwk.OctKey.import_key(secret), [ALGORITHM])
    try:
        found = msgspec.convert(claims, Claims)
    except msgspec.ValidationError as error:
        raise NotAuthenticated(f"the token is not one of this server's: {error}") from error
    if found.iss != ISSUER or found.aud != ISSUER:
        raise NotAuthenticated("the token was not made for this server")
    if now >= found.exp:
        raise NotAuthenticated("the token has expired", detail="ask for a new one")
    return found
