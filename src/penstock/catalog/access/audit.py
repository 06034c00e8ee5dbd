"""The audit log: who changed what, when, and with what outcome.

Each entry is written to a file at once, as a line of JSON, and a moment later to the database,
together with others, so that no request waits for it.
"""

import asyncio
import itertools
import logging
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from penstock.catalog.access import tokens
from penstock.database.interface import Database, Row, Transaction
from penstock.errors import PenstockError
from penstock.model.paging import Page, PageRequest, cut_page

log = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0
PURGE_SECONDS = 3600.0
DAY_MILLIS = 86_400_000
# How many entries wait while the database does not answer; the file has the rest.
MAX_WAITING = 10_000
COLUMNS = "id, at, principal, token, operation, object, status, outcome, request_id, address"

OK, REFUSED, FAILED = "ok", "refused", "failed"

_numbers = itertools.count()


class AuditEntry(msgspec.Struct, frozen=True):
    """One change that somebody made or tried to make; `at` is milliseconds."""

    id: str
    at: int
    principal: str
    token: str
    operation: str
    object: str
    status: int
    outcome: str
    request_id: str
    address: str


class AuditFilter(msgspec.Struct, frozen=True):
    """Which entries to list; None matches any."""

    principal: str | None = None
    operation: str | None = None
    object: str | None = None
    since: int | None = None
    until: int | None = None


def make_entry(
    principal: str,
    operation: str,
    object: str,
    status: int = 200,
    *,
    token: str = "",
    request_id: str = "",
    address: str = "",
) -> AuditEntry:
    at = time.time_ns() // 1_000_000
    outcome = OK if status < 400 else REFUSED if status in (401, 403, 404, 429) else FAILED
    # Sorts by time, within a millisecond by the order of its server, and is unique across servers.
    id = f"{at:015d}-{next(_numbers) & 0xFFFFFF:06x}{secrets.token_hex(5)}"
    text = object.replace("\0", "�")[:2000]
    return AuditEntry(
        id, at, principal, token, operation, text, status, outcome, request_id, address
    )


class AuditLog:
    """The log of one server."""

    def __init__(self, database: Database, file: Path, keep_days: int) -> None:
        self._database = database
        self._keep_days = keep_days
        self._waiting: list[AuditEntry] = []
        self._encode = msgspec.json.Encoder().encode
        file.parent.mkdir(parents=True, exist_ok=True)
        # Each entry is appended in a single write, so several servers can share the file.
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def note(self, entry: AuditEntry) -> None:
        os.write(self._file, self._encode(entry) + b"\n")
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(entry)

    async def flush(self) -> None:
        """Write the waiting entries to the database."""
        entries, self._waiting = self._waiting, []
        if not entries:
            return
        try:
            await self._database.write(record_in, entries)
        except PenstockError as error:
            log.warning("the audit log is behind: %s", error.message)
            self._waiting = [*entries, *self._waiting][:MAX_WAITING]

    async def keep(self) -> None:
        """Flush at intervals, and delete entries that are too old."""
        purged_at = float("-inf")
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()
            if time.monotonic() - purged_at >= PURGE_SECONDS:
                purged_at = time.monotonic()
                oldest = time.time_ns() // 1_000_000 - self._keep_days * DAY_MILLIS
                try:
                    await self._database.write(_purge, oldest)
                except PenstockError as error:
                    log.warning("old entries of the audit log are kept: %s", error.message)

    async def close(self) -> None:
        await self.flush()
        os.close(self._file)


async def record_in(tx: Transaction, entries: Sequence[AuditEntry]) -> None:
    places = ", ".join(f"${number}" for number in range(1, COLUMNS.count(",") + 2))
    for entry in entries:
        await tx.fetch(
            f"INSERT INTO audit ({COLUMNS}) VALUES ({places}) ON CONFLICT DO NOTHING",
            *msgspec.structs.astuple(entry),
        )


async def list_entries(tx: Transaction, page: PageRequest, wanted: AuditFilter) -> Page[AuditEntry]:
    """List entries, newest first."""
    values: list[object] = [page.limit + 1]

    def place(value: object) -> str:
        values.append(value)
        return f"${len(values)}"

    conditions = ["1 = 1"]
    if page.after is not None:
        conditions.append(f"id < {place(page.after)}")
    named = {c: getattr(wanted, c) for c in ("principal", "operation", "object")}
    conditions += [f"{c} = {place(value)}" for c, value in named.items() if value is not None]
    if wanted.since is not None:
        conditions.append(f"at >= {place(wanted.since)}")
    if wanted.until is not None:
        conditions.append(f"at < {place(wanted.until)}")
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM audit WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT $1",
        *values,
    )
    return cut_page(page, [_to_entry(row) for row in rows], [row[0] for row in rows])


async def _purge(tx: Transaction, oldest: int) -> None:
    await tx.fetch("DELETE FROM audit WHERE id < $1", f"{oldest:015d}")
    # Keep keys for as long as the log names them, so that their owners can be looked up.
    await tokens.purge_in(tx, oldest)


def _to_entry(row: Row) -> AuditEntry:
    return AuditEntry(*row)
