"""Read JWTs: check every part before a library sees it.

The head is read before anyone has verified it, so its sender chooses its content.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from penstock.errors import NotAuthenticated
from penstock.server.access.doors import errors, jwk, jws

HOW = "send a key as x-api-key, or a key or token as Authorization: Bearer"
# msgspec's errors for text that is no JSON, has broken characters, or is nested too deep.
NOT_JSON = (msgspec.MsgspecError, UnicodeError, RecursionError)
Name = Annotated[str, msgspec.Meta(max_length=1000)]


class Head(msgspec.Struct):
    """The head of a token; `crit` would require extensions that we don't know."""

    alg: Name = ""
    kid: Name = ""
    typ: Name = ""
    crit: msgspec.UnsetType = msgspec.UNSET
    b64: bool | msgspec.UnsetType = msgspec.UNSET


_head = msgspec.json.Decoder(Head)
_claims = msgspec.json.Decoder(dict[str, Any])


def read_head(text: str) -> Head:
    """Read the head of a token, which is not verified yet."""
    part = text.partition(".")[0]
    try:
        content = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        found = _head.decode(content)
    except (binascii.Error, ValueError, *NOT_JSON):
        raise NotAuthenticated("the token cannot be read", detail=HOW) from None
    if found.b64 is False:
        raise NotAuthenticated("the token cannot be read", detail=HOW)
    return found


def open_signed(text: str, key: "jwk.Key", algorithms: Sequence[str]) -> dict[str, Any]:
    """The claims of a token with a valid signature."""
    read_head(text)
    try:
        found = jws.deserialize_compact(text, key, algorithms=list(algorithms))
    except (errors.JoseError, ValueError) as error:
        raise NotAuthenticated("the token's signature is not right") from error
    try:
        return _claims.decode(found.payload or b"")
    except NOT_JSON:
        raise NotAuthenticated("the token's claims cannot be read", detail=HOW) from None
