"""The table that maps our errors to status, type and wording of the Iceberg protocol."""

from typing import Any

import msgspec

from penstock.errors import (
    ConcurrentCommit,
    DialectLost,
    FileNotFound,
    Forbidden,
    InvalidRequest,
    InvalidTable,
    InvalidView,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    NotAuthenticated,
    NothingAdded,
    OutcomeUnknown,
    OutsideLake,
    PenstockError,
    RequestTooLarge,
    TableAlreadyExists,
    TableInUse,
    TableNotFound,
    TooManyRequests,
    Unavailable,
    UnknownEncoding,
    Unprocessable,
    Unsupported,
    ViewAlreadyExists,
    ViewNotFound,
    WarehouseNotFound,
)
from penstock.server.transport.http import Reply, retry_headers

# Status, the exception that clients know, and how its message names the subject.
ICEBERG_ERRORS: dict[type[PenstockError], tuple[int, str, str]] = {
    InvalidRequest: (400, "BadRequestException", ""),
    InvalidView: (400, "IllegalArgumentException", ""),
    InvalidTable: (400, "IllegalArgumentException", ""),
    NothingAdded: (400, "ValidationException", ""),
    DialectLost: (400, "IllegalStateException", ""),
    NotAuthenticated: (401, "NotAuthorizedException", ""),
    Forbidden: (403, "ForbiddenException", ""),
    OutsideLake: (403, "ForbiddenException", ""),
    NamespaceNotFound: (404, "NoSuchNamespaceException", "Namespace does not exist: {}"),
    ViewNotFound: (404, "NoSuchViewException", "View does not exist: {}"),
    TableNotFound: (404, "NoSuchTableException", "Table does not exist: {}"),
    WarehouseNotFound: (404, "NoSuchWarehouseException", ""),
    FileNotFound: (404, "NotFoundException", ""),
    Unsupported: (406, "UnsupportedOperationException", ""),
    NamespaceAlreadyExists: (409, "AlreadyExistsException", "Namespace already exists: {}"),
    ViewAlreadyExists: (409, "AlreadyExistsException", "View already exists: {}"),
    TableAlreadyExists: (409, "AlreadyExistsException", "Table with same name already exists: {}"),
    NamespaceNotEmpty: (409, "NamespaceNotEmptyException", "Namespace {} is not empty"),
    ConcurrentCommit: (409, "CommitFailedException", ""),
    TableInUse: (409, "IllegalStateException", ""),
    RequestTooLarge: (413, "BadRequestException", ""),
    UnknownEncoding: (415, "BadRequestException", ""),
    Unprocessable: (422, "UnprocessableEntityException", ""),
    TooManyRequests: (429, "SlowDownException", ""),
    OutcomeUnknown: (500, "CommitStateUnknownException", ""),
    Unavailable: (503, "ServiceUnavailableException", ""),
}
INTERNAL = (500, "InternalServerException", "")

_encoder = msgspec.json.Encoder()


def to_reply(error: PenstockError) -> Reply:
    """The answer to an error of ours."""
    status, kind, wording = next(
        (ICEBERG_ERRORS[c] for c in type(error).__mro__ if c in ICEBERG_ERRORS), INTERNAL
    )
    message = error.message
    if wording and error.subject:
        message = wording.format(".".join(error.subject))
    elif error.detail:
        message = f"{message}; {error.detail}"
    return error_reply(status, kind, message, retry_headers(status))


def error_reply(
    status: int, kind: str, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Reply:
    body: dict[str, Any] = {"error": {"message": message, "type": kind, "code": status}}
    return Reply(status, _encoder.encode(body), headers=headers)
