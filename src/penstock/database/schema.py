"""The schema: what a fresh database gets, and the migrations that upgrade an old one.

Migrations only go forward. Each is recorded with the checksum of its text, so a database made by
other text, or by a newer release, is refused before anything is read from it.
"""

import hashlib
from dataclasses import dataclass
from importlib.resources import files

from penstock.database.interface import Database, Transaction
from penstock.errors import DatabaseMismatch

PRELUDE_POSTGRES = (
    'CREATE DOMAIN KEYTEXT AS TEXT COLLATE "C"',
    "CREATE FUNCTION now_millis() RETURNS BIGINT LANGUAGE SQL VOLATILE AS "
    "'SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)'",
)
LEDGER = (
    "CREATE TABLE migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL, "
    "checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)"
)
# Any fixed number: it keeps two servers from upgrading one PostgreSQL at once.
ADVISORY_LOCK = 7236_2333


@dataclass(frozen=True)
class Migration:
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class SchemaStatus:
    """The state of a database; `applied` is empty for one without a catalog."""

    applied: tuple[int, ...]
    pending: tuple[Migration, ...]

    @property
    def is_fresh(self) -> bool:
        return not self.applied

    @property
    def is_current(self) -> bool:
        return not self.pending


def list_migrations() -> tuple[Migration, ...]:
    """The migrations of this release, in order."""
    found = [
        f
        for f in files("penstock.database").joinpath("migrations").iterdir()
        if f.name.endswith(".sql")
    ]
    return tuple(
        Migration(int(f.name[:4]), f.name[5:-4], f.read_text())
        for f in sorted(found, key=lambda f: f.name)
    )


async def get_status(database: Database) -> SchemaStatus:
    """Compare the database with this release; raises when it can't be used."""
    return await database.read(_read_status, database.kind)


async def upgrade(database: Database) -> SchemaStatus:
    """Upgrade the database to this release; returns the status from before."""
    return await database.write(_upgrade, database.kind)


async def set_up(tx: Transaction, kind: str, number: int) -> None:
    """Set up an empty database as of a given migration, for rows of then; refuses any other."""
    if not (await _read_status(tx, kind)).is_fresh:
        raise DatabaseMismatch(
            "the database holds a catalog already", detail="name an empty one with --database"
        )
    known = list_migrations()
    if number > known[-1].number:
        raise DatabaseMismatch(
            f"the backup has schema {number}, this release knows only up to {known[-1].number}",
            detail="restore it with the release that made it, or a newer one",
        )
    if number == known[-1].number:
        await _upgrade(tx, kind)
        return
    for statement in PRELUDE_POSTGRES if kind == "postgresql" else ():
        await tx.fetch(statement)
    await tx.fetch(LEDGER)
    for migration in known:
        if migration.number <= number:
            await run_script(tx, migration.text)
            await _note(tx, migration)


async def upgrade_in(tx: Transaction, kind: str) -> SchemaStatus:
    """Upgrade the database to this release in the caller's transaction."""
    return await _upgrade(tx, kind)


async def _read_status(tx: Transaction, kind: str) -> SchemaStatus:
    known = list_migrations()
    if not await _has_ledger(tx, kind):
        return SchemaStatus((), known)
    rows = await tx.fetch("SELECT number, checksum FROM migrations ORDER BY number")
    applied: dict[int, str] = {row[0]: row[1] for row in rows}
    newest = max(applied, default=0)
    if newest > known[-1].number:
        raise DatabaseMismatch(
            f"the database has schema {newest}, this release knows only up to {known[-1].number}",
            detail="start the newer Penstock that last used this database, or restore a backup",
        )
    for migration in known:
        if applied.get(migration.number, migration.checksum) != migration.checksum:
            raise DatabaseMismatch(
                f"migration {migration.number} ({migration.name}) of the database is not this "
                "release's",
                detail="use the release that made the database",
            )
    return SchemaStatus(tuple(applied), tuple(m for m in known if m.number not in applied))


async def _upgrade(tx: Transaction, kind: str) -> SchemaStatus:
    if kind == "postgresql":
        await tx.fetch("SELECT pg_advisory_xact_lock($1)", ADVISORY_LOCK)
    status = await _read_status(tx, kind)
    if status.is_fresh:
        for statement in PRELUDE_POSTGRES if kind == "postgresql" else ():
            await tx.fetch(statement)
        await tx.fetch(LEDGER)
        await run_script(tx, files("penstock.database").joinpath("schema.sql").read_text())
    for migration in status.pending:
        if not status.is_fresh:
            await run_script(tx, migration.text)
        await _note(tx, migration)
    return status


async def _note(tx: Transaction, migration: Migration) -> None:
    await tx.fetch(
        "INSERT INTO migrations (number, name, checksum, applied_at) "
        "VALUES ($1, $2, $3, now_millis())",
        migration.number,
        migration.name,
        migration.checksum,
    )


async def run_script(tx: Transaction, text: str) -> None:
    """Run a script whose statements each end a line with a semicolon."""
    for statement in text.split(";\n"):
        if statement.strip():
            await tx.fetch(statement)


async def _has_ledger(tx: Transaction, kind: str) -> bool:
    sql = (
        "SELECT 1 FROM information_schema.columns WHERE table_name = 'migrations' "
        "AND column_name = 'checksum' AND table_schema = current_schema()"
        if kind == "postgresql"
        else "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'"
    )
    return await tx.fetch_one(sql) is not None
