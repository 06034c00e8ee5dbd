"""The one table from our errors to the status and code of the Lance protocol."""

from typing import Any

import msgspec

from penstock.errors import (
    BranchAlreadyExists,
    BranchNotFound,
    ColumnNotFound,
    ConcurrentCommit,
    Forbidden,
    GrantNotFound,
    IndexAlreadyExists,
    IndexNotFound,
    InvalidRequest,
    InvalidTableState,
    ManifestAlreadyExists,
    ManifestNotFound,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    NotAuthenticated,
    PenstockError,
    RequestTooLarge,
    SchemaMismatch,
    TableAlreadyExists,
    TableInUse,
    TableNotFound,
    TagAlreadyExists,
    TagNotFound,
    TooManyRequests,
    TransactionNotFound,
    Unavailable,
    Unprocessable,
    Unsupported,
    VersionNotFound,
)
from penstock.server.http import Reply, retry_headers

UNSUPPORTED, INVALID_INPUT, INTERNAL = 0, 13, 18

LANCE_ERRORS: dict[type[PenstockError], tuple[int, int]] = {
    Unsupported: (406, UNSUPPORTED),
    NamespaceNotFound: (404, 1),
    NamespaceAlreadyExists: (409, 2),
    NamespaceNotEmpty: (409, 3),
    TableNotFound: (404, 4),
    TableAlreadyExists: (409, 5),
    IndexNotFound: (404, 6),
    IndexAlreadyExists: (409, 7),
    TagNotFound: (404, 8),
    TagAlreadyExists: (409, 9),
    TransactionNotFound: (404, 10),
    VersionNotFound: (404, 11),
    ColumnNotFound: (404, 12),
    InvalidRequest: (400, INVALID_INPUT),
    ManifestNotFound: (404, INVALID_INPUT),
    GrantNotFound: (404, INVALID_INPUT),
    ManifestAlreadyExists: (409, INVALID_INPUT),
    RequestTooLarge: (413, INVALID_INPUT),
    ConcurrentCommit: (409, 14),
    Forbidden: (403, 15),
    NotAuthenticated: (401, 16),
    Unprocessable: (422, INVALID_INPUT),
    Unavailable: (503, 17),
    InvalidTableState: (400, 19),
    TableInUse: (409, 19),
    SchemaMismatch: (400, 20),
    TooManyRequests: (429, 21),
    BranchNotFound: (404, 22),
    BranchAlreadyExists: (409, 23),
}


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
