"""Tokens by OAuth2: with authentication off, any client gets one, and needs none."""

import secrets
from urllib.parse import parse_qs

from penstock.server.http import Reply
from penstock.server.iceberg.call import Call
from penstock.server.iceberg.replies import json_reply

CLIENT_CREDENTIALS = "client_credentials"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
EXPIRES_SECONDS = 3600


async def issue(call: Call) -> Reply:
    try:
        form = {k: v[-1] for k, v in parse_qs(call.body.decode(), max_num_fields=50).items()}
    except ValueError:
        return _refuse("invalid_request", "the body is not a form in UTF-8")
    grant = form.get("grant_type")
    if grant is None:
        return _refuse("invalid_request", "grant_type is missing")
    if grant not in (CLIENT_CREDENTIALS, TOKEN_EXCHANGE):
        return _refuse("unsupported_grant_type", f"use {CLIENT_CREDENTIALS} or {TOKEN_EXCHANGE}")
    if grant == TOKEN_EXCHANGE and not form.get("subject_token"):
        return _refuse("invalid_request", "subject_token is missing")
    has_basic = call.headers.values.get("authorization", "").lower().startswith("basic ")
    if grant == CLIENT_CREDENTIALS and not (form.get("client_secret") or has_basic):
        return _refuse("invalid_request", "client_id and client_secret are missing")
    reply = json_reply(
        {
            "access_token": secrets.token_urlsafe(24),
            "token_type": "bearer",
            "expires_in": EXPIRES_SECONDS,
            "issued_token_type": ACCESS_TOKEN,
        }
    )
    return Reply(200, reply.body, headers=((b"cache-control", b"no-store"),))


def _refuse(error: str, description: str) -> Reply:
    reply = json_reply({"error": error, "error_description": description})
    return Reply(400, reply.body)
