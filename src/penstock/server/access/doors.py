"""The modules of joserfc, loaded by the first token that is signed or checked."""

from typing import TYPE_CHECKING

from penstock.late import LateModule

if TYPE_CHECKING:
    from joserfc import errors, jwk, jws, jwt
else:
    errors = LateModule("joserfc.errors")
    jwk = LateModule("joserfc.jwk")
    jws = LateModule("joserfc.jws")
    jwt = LateModule("joserfc.jwt")

__all__ = ["errors", "jwk", "jws", "jwt"]
