"""Short-lived tokens of our own: JWTs that are signed with a key of this catalog.

They name the key they were given for, which is looked at with every request: what revokes the key
revokes them. joserfc is imported late, because a server without authentication never needs it.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import NotAuthenticated
from penstock.model.principals import Identity

ISSUER = "penstock"
# The kid of every key that we sign with begins so; no other verifier gets to see such a token.
OWN_KEY_PREFIX = "penstock-"
# One algorithm, so that no header can choose another.
ALGORITHM = "HS256"


@dataclass(frozen=True, slots=True)
class Claims:
    """What one of our tokens says; times are seconds."""

    sub: str
    exp: int
    tid: str = ""
    groups: Sequence[str] = field(default=())

    @property
    def identity(self) -> Identity:
        return Identity(self.sub, tuple(self.groups), self.tid, expires_at=self.exp * 1000)


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
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import OctKey

    secret = dict(keys).get(kid)
    if secret is None:
        raise NotAuthenticated("the token was signed with a key that is not used any more")
    try:
        found = jwt.decode(text, OctKey.import_key(secret), algorithms=[ALGORITHM]).claims
    except (JoseError, ValueError) as error:
        raise NotAuthenticated("the token's signature is not right") from error
    subject, expires = found.get("sub"), found.get("exp")
    if found.get("iss") != ISSUER or found.get("aud") != ISSUER:
        raise NotAuthenticated("the token was not made for this server")
    if not isinstance(subject, str) or not isinstance(expires, int) or not subject:
        raise NotAuthenticated("the token lacks sub or exp")
    if now >= expires:
        raise NotAuthenticated("the token has expired", detail="ask for a new one")
    return Claims(subject, expires, str(found.get("tid", "")), tuple(found.get("groups", ())))
