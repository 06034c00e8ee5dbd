"""Rows that functions failed on."""

import datetime
from dataclasses import dataclass
from typing import Any

from penstock.sdk.connection.wire import Wire, path_of
from penstock.sdk.show import to_time

# Each may have a long traceback.
AT_ONCE = 1_000


@dataclass(frozen=True)
class RowError:
    """A row that a function failed on."""

    row_id: int
    column: str
    function: str
    function_version: str
    error_type: str
    message: str
    inputs: str
    traceback: str
    tries: int
    job_id: str
    created_at: datetime.datetime


def list_errors(
    wire: Wire,
    table: tuple[str, ...],
    *,
    column: str | None = None,
    job_id: str | None = None,
    branch: str | None = None,
    limit: int | None = None,
) -> list[RowError]:
    """Rows of a table that functions failed on, the newest first."""
    path = path_of("table", table, "errors")
    body: dict[str, Any] = {"column": column, "job_id": job_id, "branch": branch}
    body["limit"] = AT_ONCE if limit is None else min(limit, AT_ONCE)
    found: list[RowError] = []
    pages = wire.pages(lambda token: wire.read(path, {**body, "page_token": token}), "records")
    for page in pages:
        found += map(_read, page)
        if limit is not None and len(found) >= limit:
            break
    return found[:limit]


def _read(told: dict[str, Any]) -> RowError:
    return RowError(
        row_id=told["row_id"],
        column=told["column"],
        function=told["function"],
        function_version=told["function_version"],
        error_type=told["error_type"],
        message=told["error_message"],
        inputs=told["inputs"],
        traceback=told["traceback"],
        tries=told["tries"],
        job_id=told["job_id"],
        created_at=to_time(told["created_at_millis"]),
    )
