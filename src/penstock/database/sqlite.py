"""SQLite through apsw: reads inline, writes by durable group commit.

Writes that arrive while a commit is being synced share the next commit, each under its own
savepoint, so that a failing write leaves the others whole. Statements run on the event loop's
thread (microseconds each); only COMMIT, which waits for the disk, runs in another thread. One
process owns a file: a lock beside it refuses a second one.
"""

import asyncio
import fcntl
import logging
import os
import re
import time
from collections.abc import Awaitable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import apsw

from penstock.database.interface import P, Row, T, Work
from penstock.database.location_sql import expand
from penstock.errors import Unavailable

log = logging.getLogger(__name__)

BROKEN = (
    *(apsw.FullError, apsw.IOError, apsw.BusyError, apsw.ReadOnlyError, apsw.CantOpenError),
    *(apsw.CorruptError, apsw.NotADBError),
)

# Bounds how long one batch may block the event loop.
MAX_BATCH = 64


class SqliteTransaction:
    """Statements on one connection; none waits, so a coroutine of them runs straight through."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def fetch(self, sql: str, *args: object) -> list[Row]:
        try:
            return cast("list[Row]", list(self._connection.execute(_translate(sql), args)))
        except BROKEN as error:
            raise _unusable(error) from error

    async def fetch_one(self, sql: str, *args: object) -> Row | None:
        rows = await self.fetch(sql, *args)
        return rows[0] if rows else None


@dataclass(slots=True)
class _Write:
    work: Coroutine[Any, Any, Any]
    done: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class SqliteDatabase(SqliteTransaction):
    """One SQLite file, owned by this process; or, `beside` its owner, for a few small writes."""

    kind = "sqlite"

    def __init__(self, path: Path, *, to_write: bool = True, beside: bool = False) -> None:
        if to_write and not beside:
            _make_folder(path.parent)
        elif not path.exists():
            raise Unavailable(f"there is no catalog at {path}", detail="'penstock serve' makes one")
        self._lock = _own(path) if to_write and not beside else None
        try:
            self._writer = _connect(path)
            self._reader = _connect(path)
        except apsw.Error as error:
            raise Unavailable(
                f"{path} is no SQLite database that can be used: {error}",
                detail="check the file and its permissions, or name another with --data",
            ) from error
        self._reader.execute("PRAGMA query_only = 1")
        super().__init__(self._reader)
        self._write_tx = SqliteTransaction(self._writer)
        self._queue: list[_Write] = []
        self._drain: asyncio.Task[None] | None = None
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="sqlite-commit")

    async def read(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._reader.execute("BEGIN")
        try:
            return _run(work(self, *args, **kwargs))
        finally:
            self._reader.execute("COMMIT")

    async def write(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        coroutine = cast("Coroutine[Any, Any, T]", work(self._write_tx, *args, **kwargs))
        self._queue.append(_Write(coroutine, done))
        if self._drain is None or self._drain.done():
            self._drain = asyncio.create_task(self._drain_queue())
        # A client that disconnects must not cancel a commit that others share.
        return await asyncio.shield(done)

    def pending_writes(self) -> int:
        return len(self._queue)

    async def close(self) -> None:
        if self._drain is not None:
            await self._drain
        self._disk.shutdown()
        self._reader.close()
        self._writer.close()
        if self._lock is not None:
            os.close(self._lock)

    async def _drain_queue(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue:
            batch, self._queue = self._queue[:MAX_BATCH], self._queue[MAX_BATCH:]
            failure: Exception | None = None
            try:
                changed = self._apply(batch)
                # A batch without changes has nothing to sync.
                end = "COMMIT" if changed else "ROLLBACK"
                await loop.run_in_executor(self._disk, self._writer.execute, end)
            except (apsw.Error, Unavailable) as error:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                log.exception("a batch of writes failed")
                failure = _unusable(error)
            for write in batch:
                _deliver(write, failure)

    def _apply(self, batch: list[_Write]) -> bool:
        connection, changed = self._writer, False
        connection.execute("BEGIN IMMEDIATE")
        for write in batch:
            connection.execute("SAVEPOINT one")
            try:
                write.result = _run(write.work)
                changed = True
            except Exception as error:
                # Not swallowed: it is raised to the caller of `write`.
                write.error = error
                connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
        return changed


def _deliver(write: _Write, failure: Exception | None) -> None:
    # A write that never ran, because its batch failed first, must not wait for ever.
    write.work.close()
    if write.done.cancelled():
        return
    if failure is not None:
        write.done.set_exception(failure)
    elif write.error is not None:
        write.done.set_exception(write.error)
    else:
        write.done.set_result(write.result)


def _run(work: Awaitable[T]) -> T:
    """Run a coroutine that awaits nothing but its own statements."""
    coroutine = cast("Coroutine[Any, Any, T]", work)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return cast("T", stop.value)
    coroutine.close()
    raise RuntimeError("a transaction waited for something other than its database")


@lru_cache(maxsize=512)
def _translate(sql: str) -> str:
    return re.sub(r"\$(\d+)", r"?\1", expand(sql))


def _connect(path: Path) -> apsw.Connection:
    # The file holds signing keys, so only its owner may read it. SQLite gives the files that it
    # creates beside it the same permissions.
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)
    # Plans do not depend on bound values; without this, SQLite plans again whenever values are
    # bound, which takes longer than running the statement.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = 1")
    connection.execute("PRAGMA cache_size = -16000")
    connection.create_scalar_function("now_millis", _now_millis, 0)
    return connection


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"the folder {folder} cannot be made: {error.strerror}",
            detail="name another with --data",
        ) from error


def _unusable(error: BaseException) -> Unavailable:
    return Unavailable(
        f"the catalog database cannot be used: {error}",
        detail="check the disk's space and permissions, then retry",
    )


def _now_millis(*_: object) -> int:
    return time.time_ns() // 1_000_000


def _own(path: Path) -> int:
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(
            f"{path}.lock cannot be made: {error.strerror}",
            detail="name another folder with --data",
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(lock, 32, 0).decode(errors="replace").strip()
        os.close(lock)
        raise Unavailable(
            f"another Penstock process (pid {owner or 'unknown'}) owns {path}",
            detail="stop it first, use another --data folder, or move the catalog to PostgreSQL "
            "to share it between processes",
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock
