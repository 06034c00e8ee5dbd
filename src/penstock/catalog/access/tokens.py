"""Keys of principals, and the keys that short-lived tokens are signed with.

A key is `pstk_<id>_<secret>`. The secret has 256 random bits and is stored only as its SHA-256: it
cannot be guessed, so a slow digest would only slow requests down.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from penstock.database.interface import Database, Row, Transaction
from penstock.errors import InvalidRequest, TokenNotFound
from penstock.model.principals import Identity, check_group, check_principal

PREFIX = "pstk_"
KEY, RUNNER = "key", "runner"
COLUMNS = (
    "id, digest, kind, principal, member_of, note, created_at, expires_at, used_at, revoked_at, "
    "clusters"
)
MAX_CLUSTER_CHARACTERS = 200
SECRET_BYTES = 32
# Compared with when there is no such key, so that a miss takes as long as a hit.
NO_DIGEST = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Token:
    """A key's record; times are milliseconds."""

    id: str
    digest: str
    kind: str
    principal: str
    groups: tuple[str, ...]
    note: str
    created_at: int
    expires_at: int | None
    used_at: int | None
    revoked_at: int | None
    # Of a runner's key: the clusters whose jobs it leases; none means the default cluster.
    clusters: tuple[str, ...] = ()
    identity: Identity = field(init=False, compare=False)

    def __post_init__(self) -> None:
        is_runner = self.kind == RUNNER
        shown = Identity(
            self.principal, self.groups, self.id, is_runner, self.expires_at, self.clusters
        )
        object.__setattr__(self, "identity", shown)

    def is_valid(self, now_millis: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now_millis < self.expires_at)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A key to create; `seconds` is how long it lasts, None for ever."""

    principal: str
    kind: str = KEY
    groups: tuple[str, ...] = ()
    note: str = ""
    seconds: int | None = None
    # Of a runner's key only.
    clusters: tuple[str, ...] = ()


async def create(database: Database, new: NewToken) -> tuple[Token, str]:
    """Create a key; this is the only time its text is returned."""
    check_new(new)
    id, secret = secrets.token_hex(8), secrets.token_hex(SECRET_BYTES)
    token = await database.write(_create, new, id, _digest(secret))
    return token, f"{PREFIX}{id}_{secret}"


def check_new(new: NewToken) -> None:
    """Refuse a key with invalid names, clusters or note."""
    check_principal(new.principal)
    for group in new.groups:
        check_group(group)
    if new.clusters and new.kind != RUNNER:
        raise InvalidRequest(
            "only a runner's key is for clusters", detail="add --runner, or leave the clusters out"
        )
    for cluster in new.clusters:
        if not cluster.isprintable() or not 0 < len(cluster) <= MAX_CLUSTER_CHARACTERS:
            raise InvalidRequest(
                f"{cluster[:MAX_CLUSTER_CHARACTERS]!r} is no name of a cluster",
                detail="use a name of the settings, as in [clusters.NAME]",
            )
    if not new.note.isprintable():
        raise InvalidRequest(
            f"the note {new.note!r} holds control characters", detail="write it in one plain line"
        )


async def revoke(database: Database, id: str) -> Token:
    """Revoke a key, and with it all short-lived tokens that were issued for it."""
    return await database.write(_revoke, id)


async def list_tokens(tx: Transaction, principal: str | None = None) -> list[Token]:
    """List all keys, newest first, or those of one principal."""
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM tokens WHERE ($1 = '' OR principal = $1) "
        "ORDER BY created_at DESC, id",
        principal or "",
    )
    return [_to_token(row) for row in rows]


async def find(tx: Transaction, id: str) -> Token | None:
    row = await tx.fetch_one(f"SELECT {COLUMNS} FROM tokens WHERE id = $1", id)
    return None if row is None else _to_token(row)


async def get(tx: Transaction, id: str) -> Token:
    found = await find(tx, id)
    if found is None:
        raise _not_found(id)
    return found


def split_key(text: str) -> tuple[str, str] | None:
    """Split a key's text into id and secret; None when it has another form."""
    id, _, secret = text.removeprefix(PREFIX).partition("_")
    fits = text.startswith(PREFIX) and text.isascii() and id.isalnum() and len(id) == 16
    return (id, secret) if fits else None


def matches(token: Token | None, secret: str) -> bool:
    """Whether the secret is this key's, compared in constant time."""
    wanted = NO_DIGEST if token is None else token.digest
    return hmac.compare_digest(wanted, _digest(secret)) and token is not None


async def record_uses(database: Database, uses: Mapping[str, int]) -> None:
    """Note when keys were last used."""
    await database.write(_record_uses, uses)


async def purge_in(tx: Transaction, oldest: int) -> None:
    """Delete keys that were revoked or expired before this time."""
    await tx.fetch("DELETE FROM tokens WHERE revoked_at < $1 OR expires_at < $1", oldest)


async def get_signing_keys(database: Database) -> Sequence[tuple[str, str]]:
    """The keys that tokens are signed with, newest first; creates one when there is none."""
    found = await _list_signing_keys(database)
    return found or await database.write(_create_signing_key)


async def rotate_signing_keys(database: Database) -> None:
    """Replace all signing keys by a new one, which invalidates every short-lived token."""
    await database.write(_rotate)


async def bump_in(tx: Transaction) -> None:
    """Tell all servers, in the transaction of a change, that cached rights are out of date."""
    await tx.fetch("UPDATE locks SET taken = taken + 1 WHERE name = 'access'")


async def _create(tx: Transaction, new: NewToken, id: str, digest: str) -> Token:
    row = await tx.fetch_one(
        f"INSERT INTO tokens ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, now_millis(), "
        f"now_millis() + $7, NULL, NULL, $8) RETURNING {COLUMNS}",
        *(id, digest, new.kind, new.principal, msgspec.json.encode(new.groups).decode(), new.note),
        None if new.seconds is None else new.seconds * 1000,
        msgspec.json.encode(tuple(dict.fromkeys(new.clusters))).decode(),
    )
    assert row is not None
    return _to_token(row)


async def _revoke(tx: Transaction, id: str) -> Token:
    row = await tx.fetch_one(
        "UPDATE tokens SET revoked_at = coalesce(revoked_at, now_millis()) WHERE id = $1 "
        f"RETURNING {COLUMNS}",
        id,
    )
    if row is None:
        raise _not_found(id)
    await bump_in(tx)
    return _to_token(row)


async def _record_uses(tx: Transaction, uses: Mapping[str, int]) -> None:
    for id, at in uses.items():
        await tx.fetch(
            "UPDATE tokens SET used_at = $2 WHERE id = $1 AND (used_at IS NULL OR used_at < $2)",
            id,
            at,
        )


async def _list_signing_keys(tx: Transaction) -> list[tuple[str, str]]:
    rows = await tx.fetch("SELECT id, secret FROM signing_keys ORDER BY created_at DESC, id")
    return [(row[0], row[1]) for row in rows]


async def _create_signing_key(tx: Transaction) -> list[tuple[str, str]]:
    # Take the lock first: of two servers that start together, one creates the key.
    await bump_in(tx)
    if found := await _list_signing_keys(tx):
        return found
    await tx.fetch(
        "INSERT INTO signing_keys (id, secret, created_at) VALUES ($1, $2, now_millis())",
        f"penstock-{secrets.token_hex(8)}",
        secrets.token_urlsafe(SECRET_BYTES),
    )
    return await _list_signing_keys(tx)


async def _rotate(tx: Transaction) -> None:
    await bump_in(tx)
    await tx.fetch("DELETE FROM signing_keys")
    await _create_signing_key(tx)


def _not_found(id: str) -> TokenNotFound:
    return TokenNotFound(f"there is no key {id!r}", detail="'penstock token list' tells the ids")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _to_token(row: Row) -> Token:
    *first, member_of, note, created_at, expires_at, used_at, revoked_at, clusters = row
    id, digest, kind, principal = first
    groups = msgspec.json.decode(member_of, type=tuple[str, ...])
    of = msgspec.json.decode(clusters, type=tuple[str, ...])
    times = (created_at, expires_at, used_at, revoked_at)
    return Token(id, digest, kind, principal, groups, note, *times, of)
