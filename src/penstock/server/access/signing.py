"""Short-lived tokens of our own: JWTs that are signed with a key of this catalog.

They name the key they were given for, which is looked at with every request: what revokes the key
revokes them. joserfc is imported late, because a server without authentication never needs it.
"""

import secrets
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from penstock.errors import NotAuthenticated
from penstock.model.principals import Identity
from penstock.server.access.jwts import open_signed

ISSUER = "penstock"
# The kid of every key that we sign with begins so; no other verifier gets to see such a token.
OWN_KEY_PREFIX = "penstock-"
# One algorithm, so that no header can choose another.
ALGORITHM = "HS256"
# What both databases can be asked for.
PLAIN = "^[^\\x00]*$"


class Claims(msgspec.Struct, frozen=True):
    """What one of our tokens says; times are seconds."""

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
    from joserfc import jwt
    from joserfc.jwk import OctKey

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
        {"alg": ALGORITHM, "kid": kid}, claims, OctKey.import_key(secret), algorithms=[ALGORITHM]
    )


def verify(text: str, kid: str, keys: Sequence[tuple[str, str]], now: int) -> Claims:
    """What one of our own tokens says, once its signature and its time are right."""
    from joserfc.jwk import OctKey

    secret = dict(keys).get(kid)
    if secret is None:
        raise NotAuthenticated("the token was signed with a key that is not used any more")
    claims = open_signed(text, OctKey.import_key(secret), [ALGORITHM])
    try:
        found = msgspec.convert(claims, Claims)
    except msgspec.ValidationError as error:
        raise NotAuthenticated(f"the token is not one of this server's: {error}") from error
    if found.iss != ISSUER or found.aud != ISSUER:
        raise NotAuthenticated("the token was not made for this server")
    if now >= found.exp:
        raise NotAuthenticated("the token has expired", detail="ask for a new one")
    return found
