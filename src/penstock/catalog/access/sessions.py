"""Sessions of people who signed in with a browser.

A session is a cookie with 256 random bits, of which the SHA-256 is kept. It has the rights of the
key that it began with, and ends with it, or those of somebody from an identity provider.
"""

import hashlib
import secrets
from dataclasses import dataclass

import msgspec

from penstock.catalog.access import tokens
from penstock.database.interface import Database, Row, Transaction
from penstock.model.principals import Identity

SECRET_BYTES = 32
# Of one principal; whoever begins one more ends the oldest.
MAX_SESSIONS = 20
COLUMNS = "digest, principal, token, member_of, created_at, expires_at"


@dataclass(frozen=True, slots=True)
class Session:
    """A session's record; times are milliseconds. `token` is the id of its key, if it has one."""

    digest: str
    principal: str
    token: str
    groups: tuple[str, ...]
    created_at: int
    expires_at: int

    def is_valid(self, now_millis: int) -> bool:
        return now_millis < self.expires_at


async def begin(database: Database, who: Identity, seconds: int) -> tuple[Session, str]:
    """Begin a session; this is the only time its secret is returned."""
    secret = secrets.token_hex(SECRET_BYTES)
    return await database.write(_begin, who, seconds, digest_of(secret)), secret


async def end(database: Database, digest: str) -> None:
    """End a session, on every server."""
    await database.write(_end, "digest", digest)


async def end_all(database: Database, principal: str) -> None:
    """End all sessions of a principal, on every server."""
    await database.write(_end, "principal", principal)


async def find(tx: Transaction, digest: str) -> Session | None:
    sql = f"SELECT {COLUMNS} FROM console_sessions WHERE digest = $1"
    row = await tx.fetch_one(sql, digest)
    return None if row is None else _to_session(row)


def digest_of(secret: str) -> str:
    """What is kept of a session's secret."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def proof_of(secret: str) -> str:
    """What a page shows with the cookie, to prove that it has read an answer of ours."""
    return hashlib.sha256(f"page:{secret}".encode(errors="replace")).hexdigest()


async def _begin(tx: Transaction, who: Identity, seconds: int, digest: str) -> Session:
    await tx.fetch("DELETE FROM console_sessions WHERE expires_at < now_millis()")
    ended = await tx.fetch(
        "DELETE FROM console_sessions WHERE principal = $1 AND digest NOT IN (SELECT digest "
        "FROM console_sessions WHERE principal = $1 ORDER BY created_at DESC, digest LIMIT $2) "
        "RETURNING digest",
        *(who.principal, MAX_SESSIONS - 1),
    )
    if ended:
        await tokens.bump_in(tx)
    row = await tx.fetch_one(
        f"INSERT INTO console_sessions ({COLUMNS}) VALUES ($1, $2, $3, $4, now_millis(), "
        f"now_millis() + $5) RETURNING {COLUMNS}",
        *(digest, who.principal, who.token, msgspec.json.encode(who.groups).decode()),
        seconds * 1000,
    )
    assert row is not None
    return _to_session(row)


async def _end(tx: Transaction, column: str, value: str) -> None:
    sql = f"DELETE FROM console_sessions WHERE {column} = $1 RETURNING digest"
    if await tx.fetch(sql, value):
        await tokens.bump_in(tx)


def _to_session(row: Row) -> Session:
    digest, principal, token, member_of, created_at, expires_at = row
    groups = msgspec.json.decode(member_of, type=tuple[str, ...])
    return Session(digest, principal, token, groups, created_at, expires_at)
