"""Records of table versions: one history for each branch of a table.

A record is written before its manifest has its final name (`settled` is 0 until then). When the
newest version's record is deleted it is only hidden, so that the next number stays known.
"""

from collections.abc import Awaitable, Callable, Sequence

from penstock.database.interface import Row, Transaction
from penstock.errors import InvalidRequest
from penstock.lance.commit.manifest import MAX_VERSION
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.properties import decode_properties, encode_properties
from penstock.model.tables import TableVersion, VersionRange

COLUMNS = (
    "version, manifest_path, manifest_size, timestamp_millis, e_tag, metadata, staged_path, "
    "settled, transaction_id, hidden"
)

INSERT = (
    f"INSERT INTO table_versions (table_id, branch, {COLUMNS}) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0)"
)


async def find(tx: Transaction, table_id: str, branch: str, version: int) -> TableVersion | None:
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM table_versions "
        "WHERE table_id = $1 AND branch = $2 AND version = $3 AND hidden = 0",
        table_id,
        branch,
        version,
    )
    return None if row is None else to_version(row)


async def find_latest(tx: Transaction, table_id: str, branch: str) -> TableVersion | None:
    """Find the newest listed version."""
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM table_versions WHERE table_id = $1 AND branch = $2 AND hidden = 0 "
        "ORDER BY version DESC LIMIT 1",
        table_id,
        branch,
    )
    return None if row is None else to_version(row)


async def find_head(tx: Transaction, table_id: str, branch: str) -> TableVersion | None:
    """Find the newest version that was ever recorded, listed or not."""
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM table_versions WHERE table_id = $1 AND branch = $2 "
        "ORDER BY version DESC LIMIT 1",
        table_id,
        branch,
    )
    return None if row is None else to_version(row)


async def list_page(
    tx: Transaction, table_id: str, branch: str, page: PageRequest, descending: bool
) -> Page[TableVersion]:
    comparison, order = ("<", "DESC") if descending else (">", "ASC")
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM table_versions WHERE table_id = $1 AND branch = $2 AND hidden = 0 "
        f"AND version {comparison} $3 ORDER BY version {order} LIMIT $4",
        table_id,
        branch,
        _start(page.after, descending),
        page.limit + 1,
    )
    found = [to_version(row) for row in rows]
    return cut_page(page, found, [str(v.version) for v in found])


async def insert(tx: Transaction, table_id: str, branch: str, version: TableVersion) -> None:
    """Record a new version; on PostgreSQL the loser of a race runs again."""
    await tx.fetch(INSERT, table_id, branch, *_to_row(version))


async def adopt(
    tx: Transaction, table_id: str, branch: str, versions: Sequence[TableVersion]
) -> None:
    """Record versions; existing ones stay as they are, but are listed again."""
    for version in versions:
        await tx.fetch(
            f"{INSERT} ON CONFLICT (table_id, branch, version) DO UPDATE SET hidden = 0",
            table_id,
            branch,
            *_to_row(version),
        )


async def delete(
    tx: Transaction, table_id: str, branch: str, ranges: Sequence[VersionRange]
) -> int:
    """Delete records; returns how many were listed."""
    head = await find_head(tx, table_id, branch)
    if head is None:
        return 0
    count = 0
    for each in ranges:
        end = head.version + 1 if each.end is None else each.end
        count += len(
            await tx.fetch(
                "UPDATE table_versions SET hidden = 1 WHERE table_id = $1 AND branch = $2 "
                "AND version >= $3 AND version < $4 AND hidden = 0 RETURNING version",
                table_id,
                branch,
                each.start,
                end,
            )
        )
        await tx.fetch(
            "DELETE FROM table_versions WHERE table_id = $1 AND branch = $2 "
            "AND version >= $3 AND version < $4 AND version < $5",
            table_id,
            branch,
            each.start,
            end,
            head.version,
        )
    return count


async def keep(tx: Transaction, table_id: str) -> Callable[[Transaction], Awaitable[None]]:
    """Remember all records of a table; returns a step that restores them."""
    rows = await tx.fetch(
        f"SELECT branch, {COLUMNS} FROM table_versions WHERE table_id = $1 AND hidden = 0", table_id
    )

    async def bring_back(tx: Transaction) -> None:
        for branch, *columns in rows:
            await adopt(tx, table_id, branch, [to_version(columns)])

    return bring_back


async def mark_settled(tx: Transaction, keys: Sequence[tuple[str, str, int, str]]) -> None:
    """Record that these manifests have their final names, durably."""
    for table_id, branch, version, staged_path in keys:
        await tx.fetch(
            "UPDATE table_versions SET settled = 1 "
            "WHERE table_id = $1 AND branch = $2 AND version = $3 AND staged_path = $4",
            table_id,
            branch,
            version,
            staged_path,
        )


async def withdraw(tx: Transaction, table_id: str, branch: str, version: TableVersion) -> None:
    """Withdraw a record after looking at storage: its manifest is not there (any more)."""
    await tx.fetch(
        "DELETE FROM table_versions WHERE table_id = $1 AND branch = $2 AND version = $3 "
        "AND staged_path = $4",
        table_id,
        branch,
        version.version,
        version.staged_path,
    )


def _to_row(v: TableVersion) -> tuple[object, ...]:
    return (
        v.version,
        v.manifest_path,
        v.manifest_size,
        v.timestamp_millis,
        v.e_tag,
        encode_properties(v.metadata),
        v.staged_path,
        int(v.settled),
        v.transaction_id,
    )


def to_version(row: Row) -> TableVersion:
    version, path, size, millis, e_tag, metadata, staged, settled, transaction, hidden = row
    return TableVersion(
        version,
        path,
        size,
        millis,
        e_tag,
        decode_properties(metadata),
        staged,
        bool(settled),
        transaction,
        bool(hidden),
    )


def _start(after: str | None, descending: bool) -> int:
    if after is None:
        return MAX_VERSION if descending else -1
    if not (after.isascii() and after.isdigit() and int(after) <= MAX_VERSION):
        raise InvalidRequest("page_token was changed", detail="pass it back as it came")
    return int(after)
