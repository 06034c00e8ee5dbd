"""OAuth2 tokens: exchange a key, or another token, for a short-lived token.

A client's secret is one of our keys; its id is the key's id or principal, and may be omitted. With
authentication off, any client gets a token, and needs none.
"""

import base64
import binascii
import hmac
import secrets
from urllib.parse import parse_qs, unquote_plus

from penstock.errors import NotAuthenticated
from penstock.model.principals import Identity
from penstock.server.access.gate import Gate
from penstock.server.iceberg.call import Call
from penstock.server.iceberg.replies import json_reply
from penstock.server.transport.http import NOT_STORED, Reply, retry_headers

CLIENT_CREDENTIALS = "client_credentials"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
TOKEN_TYPES = (ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:jwt")
EXPIRES_SECONDS = 3600


async def issue(call: Call) -> Reply:
    read = _read_wish(call)
    if isinstance(read, Reply):
        if call.gate is not None:
            call.gate.count_failure(call.address)
        return read
    if call.gate is None:
        return _give(secrets.token_urlsafe(24), EXPIRES_SECONDS)
    grant, id, credential = read
    try:
        identity = await _prove(call.gate, call.address, id, credential)
    except NotAuthenticated as error:
        if grant == TOKEN_EXCHANGE:
            return _refuse("invalid_grant", error.message)
        return _refuse("invalid_client", error.message, 401)
    if identity.is_runner:
        return _refuse("unauthorized_client", "a runner shows its key itself")
    call.gate.count(identity)
    return _give(*await call.gate.issue(identity))


def _read_wish(call: Call) -> tuple[str, str, str] | Reply:
    """Read the kind of grant, the client's id if it has one, and the credential; or refuse."""
    try:
        form = {k: v[-1] for k, v in parse_qs(call.body.decode(), max_num_fields=50).items()}
    except ValueError:
        return _refuse("invalid_request", "the body is not a form in UTF-8")
    grant = form.get("grant_type")
    if grant is None:
        return _refuse("invalid_request", "grant_type is missing")
    if grant not in (CLIENT_CREDENTIALS, TOKEN_EXCHANGE):
        return _refuse("unsupported_grant_type", f"use {CLIENT_CREDENTIALS} or {TOKEN_EXCHANGE}")
    if grant == TOKEN_EXCHANGE:
        if not form.get("subject_token"):
            return _refuse("invalid_request", "subject_token is missing")
        if form.get("subject_token_type", ACCESS_TOKEN) not in TOKEN_TYPES:
            return _refuse("invalid_request", "use one of " + ", ".join(TOKEN_TYPES))
        return grant, "", form["subject_token"]
    client = _read_client(form, call.headers.values.get("authorization", ""))
    if client is None:
        return _refuse("invalid_request", "client_id and client_secret are missing")
    return grant, *client


async def _prove(gate: Gate, address: str, id: str, credential: str) -> Identity:
    identity = await gate.prove(credential, address)
    names = (identity.principal, identity.token)
    if id and not any(hmac.compare_digest(id.encode(), name.encode()) for name in names):
        gate.count_failure(address)
        raise NotAuthenticated("client_id is not the key's")
    return identity


def _read_client(form: dict[str, str], header: str) -> tuple[str, str] | None:
    """The id and secret of a client, from the form or from the header."""
    if secret := form.get("client_secret"):
        return form.get("client_id", ""), secret
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        id, _, secret = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    # RFC 6749, section 2.3.1: both are form-encoded.
    return unquote_plus(id), unquote_plus(secret)


def _give(token: str, seconds: int) -> Reply:
    reply = json_reply(
        {
            "access_token": token,
            "token_type": "bearer",
            "expires_in": seconds,
            "issued_token_type": ACCESS_TOKEN,
        }
    )
    return Reply(200, reply.body, headers=NOT_STORED)


def _refuse(error: str, description: str, status: int = 400) -> Reply:
    reply = json_reply({"error": error, "error_description": description})
    return Reply(status, reply.body, headers=(*NOT_STORED, *retry_headers(status)))
