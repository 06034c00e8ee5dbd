"""JWTs as they come in: nothing of one reaches a library before its parts are what they must be.

The head is read before anybody has verified it, so whoever sends a request chooses what is in it.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from penstock.errors import NotAuthenticated

if TYPE_CHECKING:
    from joserfc.jwk import Key

HOW = "send a key as x-api-key, or a key or token as Authorization: Bearer"
# What msgspec says of a text that is no JSON, holds broken characters, or is nested too deep.
NOT_JSON = (msgspec.MsgspecError, UnicodeError, RecursionError)
Name = Annotated[str, msgspec.Meta(max_length=1000)]


class Head(msgspec.Struct):
    """What the head of a token has to say; `crit` would ask for what we don't know."""

    alg: Name = ""
    kid: Name = ""
    typ: Name = ""
    crit: msgspec.UnsetType = msgspec.UNSET
    b64: bool | msgspec.UnsetType = msgspec.UNSET


_head = msgspec.json.Decoder(Head)
_claims = msgspec.json.Decoder(dict[str, Any])


def read_head(text: str) -> Head:
    """The head of a token, which nobody has verified yet."""
    part = text.partition(".")[0]
    try:
        content = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        found = _head.decode(content)
    except (binascii.Error, ValueError, *NOT_JSON):
        raise NotAuthenticated("the token cannot be read", detail=HOW) from None
    if found.b64 is False:
        raise NotAuthenticated("the token cannot be read", detail=HOW)
    return found


def open_signed(text: str, key: "Key", algorithms: Sequence[str]) -> dict[str, Any]:
    """The claims of a token whose signature is right."""
    from joserfc import jws
    from joserfc.errors import JoseError

    read_head(text)
    try:
        found = jws.deserialize_compact(text, key, algorithms=list(algorithms))
    except (JoseError, ValueError) as error:
        raise NotAuthenticated("the token's signature is not right") from error
    try:
        return _claims.decode(found.payload or b"")
    except NOT_JSON:
        raise NotAuthenticated("the token's claims cannot be read", detail=HOW) from None
