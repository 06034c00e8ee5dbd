"""Our errors as answers of the Lance protocol."""

from typing import Any

import msgspec

from penstock.errors import PenstockError
from penstock.model.codes import INTERNAL, LANCE_ERRORS
from penstock.server.transport.http import Reply, retry_headers

_encoder = msgspec.json.Encoder()


def to_reply(error: PenstockError, request_id: str) -> Reply:
    """The answer to an error of ours."""
    status, code = next(
        (LANCE_ERRORS[c] for c in type(error).__mro__ if c in LANCE_ERRORS), (500, INTERNAL)
    )
    headers = retry_headers(status)
    return error_reply(status, code, error.message, error.detail, request_id, headers)


def error_reply(
    status: int,
    code: int,
    message: str,
    detail: str,
    request_id: str,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> Reply:
    body: dict[str, Any] = {"error": message, "code": code, "instance": request_id}
    if detail:
        body["detail"] = detail
    return Reply(status, _encoder.encode(body), headers=headers)
