"""Policies of tables: how a server keeps each small by itself, and what its last run did."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from penstock.catalog.catalog import Catalog
from penstock.catalog.names import tables, transactions
from penstock.database.interface import Row, Transaction
from penstock.errors import InvalidRequest
from penstock.lance.upkeep.compaction import DELETED_SHARE
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import Table

# Whoever has opened a version may read it for so long, whatever a policy says.
READER_SECONDS = 3600
YEARS = 100 * 366 * 86_400
# Rings when a policy was set.
BELL = "upkeep"


SmallFragments = Annotated[int, Meta(ge=2, le=10_000)]
Share = Annotated[float, Meta(gt=0, le=1)]
Age = Annotated[int, Meta(ge=READER_SECONDS, le=YEARS)]
Versions = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class Policy(Struct, frozen=True, kw_only=True):
    """What is done: compaction, removal of old versions, or both."""

    compact: bool = True
    # So many small neighbours, or this share of deleted rows in one fragment, are worth it.
    small_fragments: SmallFragments = 20
    deleted_share: Share = DELETED_SHARE
    # None of both: versions stay. A version goes when it is older, and not of the newest.
    older_than_seconds: Age | None = None
    keep_versions: Versions | None = None

    @property
    def removes(self) -> bool:
        return self.older_than_seconds is not None or self.keep_versions is not None


class Run(Struct, frozen=True, kw_only=True):
    """What a run did, over all branches."""

    fragments_removed: int = 0
    fragments_added: int = 0
    pieces_lost: int = 0
    versions_removed: int = 0
    bytes_removed: int = 0


class KeptPolicy(Struct, frozen=True, kw_only=True):
    """A policy, and how it goes; times are milliseconds."""

    policy: Policy
    due_at: int
    ran_at: int | None = None
    result: Run = Run()
    # Of the last run, if it failed, and how many have failed in a row.
    error: str = ""
    failures: int = 0


COLUMNS = "policy, due_at, ran_at, result, error, failures"
_policy = msgspec.json.Decoder(Policy)
_run = msgspec.json.Decoder(Run)


def check(policy: Policy) -> Policy:
    """Refuse a policy that does nothing."""
    if not (policy.compact or policy.removes):
        raise InvalidRequest(
            "the policy neither compacts nor removes versions",
            detail="set compact, older_than_seconds or keep_versions; to have none, end it",
        )
    return policy


async def put(catalog: Catalog, table: Table, policy: Policy, origin: Origin = NOBODY) -> None:
    """Give a table a policy, in place of the one that it has; it is due at once."""
    await catalog.database.write(_put, table, policy, origin)
    catalog.queue.ring(BELL)


async def end(catalog: Catalog, table: Table, origin: Origin = NOBODY) -> None:
    """Let nobody but people keep a table small."""
    await catalog.database.write(_end, table, origin)


async def find(tx: Transaction, table_id: str) -> KeptPolicy | None:
    row = await tx.fetch_one(f"SELECT {COLUMNS} FROM upkeep_policies WHERE table_id = $1", table_id)
    return None if row is None else to_kept(row)


async def count(tx: Transaction) -> tuple[int, int]:
    """How many policies there are, and of how many the last run failed."""
    row = await tx.fetch_one(
        "SELECT count(*), count(CASE WHEN failures > 0 THEN 1 END) FROM upkeep_policies"
    )
    return (0, 0) if row is None else (row[0], row[1])


def to_kept(row: Row) -> KeptPolicy:
    policy, due_at, ran_at, result, error, failures = row
    return KeptPolicy(
        policy=decode_policy(policy),
        due_at=due_at,
        ran_at=ran_at,
        result=_run.decode(result),
        error=error,
        failures=failures,
    )


def decode_policy(text: str) -> Policy:
    return _policy.decode(text)


def encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


async def _put(tx: Transaction, table: Table, policy: Policy, origin: Origin) -> None:
    if await tables.find_by_id(tx, table.id) is None:
        raise tables.missing(table.identifier)
    await tx.fetch(
        "INSERT INTO upkeep_policies (table_id, policy, due_at) VALUES ($1, $2, now_millis()) "
        "ON CONFLICT (table_id) DO UPDATE SET policy = excluded.policy, due_at = excluded.due_at, "
        "error = '', failures = 0",
        *(table.id, encode(policy)),
    )
    await transactions.record(tx, "SetTableUpkeep", str(table), origin)


async def _end(tx: Transaction, table: Table, origin: Origin) -> None:
    await tx.fetch("DELETE FROM upkeep_policies WHERE table_id = $1", table.id)
    await transactions.record(tx, "EndTableUpkeep", str(table), origin)
