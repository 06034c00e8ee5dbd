"""A cache of keys and grants that is never older than the database.

Each request reads one number, which every change of access increments in its own transaction. While
the number stays the same, everything else is answered from memory; when it changes, the cache is
emptied. So a revoked key or grant is refused from the next request on, whichever process revoked
it.
"""

import asyncio
import logging
from collections.abc import Sequence

from penstock.catalog.access import grants, sessions, tokens
from penstock.catalog.access.sessions import Session
from penstock.catalog.access.tokens import Token
from penstock.catalog.functions import functions
from penstock.catalog.iceberg_tables import iceberg_tables
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.names import namespaces, tables
from penstock.database.interface import Database
from penstock.errors import PenstockError
from penstock.jobs.specs import decode_reach
from penstock.model.identifiers import Identifier, to_path
from penstock.model.principals import Identity
from penstock.model.rights import (
    FUNCTION,
    ICEBERG_TABLE,
    NAMESPACE,
    READ,
    VIEW,
    WRITE,
    Need,
    Standing,
)

log = logging.getLogger(__name__)

# How many entries of each kind are cached; when there are more, all are dropped.
MAX_KEPT = 10_000
USES_SECONDS = 60.0


class AccessCache:
    """One server's cache; call `refresh` first in each request."""

    def __init__(self, database: Database, watch: Database | None = None) -> None:
        self.database = database
        # A separate connection for this one read, so that it never queues behind other work.
        self._watch = watch or database
        # The database's clock at the last refresh.
        self.now_millis = 0
        # How often the cache was emptied, for those who cache things that depend on it.
        self.generation = -1
        self._tokens: dict[str, Token | None] = {}
        self._sessions: dict[str, Session] = {}
        self._standings: dict[tuple[tuple[str, ...], str, Identifier], Standing] = {}
        self._signing_keys: Sequence[tuple[str, str]] = ()
        self._uses: dict[str, int] = {}
        self._reading: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Check whether access has changed up to now.

        Where that takes a round trip, callers that arrive during a read share the next one: the
        read in flight may have missed a change that they must see.
        """
        if self.database.kind == "sqlite":
            await self._read()
            return
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
            await asyncio.shield(self._reading)
            return
        if self._next is None:
            self._next = asyncio.create_task(self._read_after(self._reading))
        await asyncio.shield(self._next)

    async def _read_after(self, reading: "asyncio.Task[None]") -> None:
        await asyncio.gather(reading, return_exceptions=True)
        self._reading, self._next = asyncio.current_task(), None
        await self._read()

    async def _read(self) -> None:
        row = await self._watch.fetch_one(
            "SELECT taken, now_millis() FROM locks WHERE name = 'access'"
        )
        assert row is not None
        number, self.now_millis = row
        if number != self.generation:
            self.generation = number
            self.forget()

    def forget(self) -> None:
        self._tokens.clear()
        self._sessions.clear()
        self._standings.clear()
        self._signing_keys = ()

    def remembers(self, token_id: str) -> bool:
        """Whether a key is cached."""
        return token_id in self._tokens

    async def find_token(self, id: str) -> Token | None:
        """Find the record of a key, valid or not."""
        if id in self._tokens:
            return self._tokens[id]
        generation = self.generation
        found = await tokens.find(self.database, id)
        # Creating a key does not increment the number, so a missing key is not cached. Neither is a
        # record that was read before a change that others have noticed meanwhile.
        if found is not None and generation == self.generation:
            if len(self._tokens) >= MAX_KEPT:
                self._tokens.clear()
            self._tokens[id] = found
        return found

    async def find_session(self, digest: str) -> Session | None:
        """Find the record of a session that has not expired."""
        found = self._sessions.get(digest)
        if found is None:
            generation = self.generation
            found = await sessions.find(self.database, digest)
            if found is not None and generation == self.generation:
                if len(self._sessions) >= MAX_KEPT:
                    self._sessions.clear()
                self._sessions[digest] = found
        return found if found is not None and found.is_valid(self.now_millis) else None

    async def standing(self, identity: Identity, kind: str, id: Identifier) -> Standing:
        """What a caller may do with an object."""
        if identity.is_runner:
            return await self._stand_by_jobs(identity.token, kind, id)
        key = (identity.grantees, NAMESPACE if kind == NAMESPACE else "", id)
        found = self._standings.get(key)
        if found is None:
            generation = self.generation
            found = await grants.find_standing(self.database, key[0], kind, id)
            if len(self._standings) >= MAX_KEPT:
                self._standings.clear()
            if generation == self.generation:
                self._standings[key] = found
        return found

    async def may(self, identity: Identity, need: Need) -> bool:
        """Whether a caller has a right."""
        return (await self.standing(identity, need.kind, need.id)).has(need.right)

    async def check(self, identity: Identity, need: Need) -> Standing:
        """Refuse a caller without the right; an object it may not see does not exist for it."""
        found = await self.standing(identity, need.kind, need.id)
        if not found.sees:
            raise await self._missing(identity, need)
        if not found.has(need.right):
            raise grants.lacking(identity.principal, need)
        return found

    async def _missing(self, identity: Identity, need: Need) -> PenstockError:
        """The error for an object that does not exist."""
        if need.kind == VIEW:
            return iceberg_views.missing(need.id)
        if need.kind == ICEBERG_TABLE:
            return iceberg_tables.missing(need.id)
        if need.kind == NAMESPACE:
            return namespaces.missing(need.id)
        if not (await self.standing(identity, NAMESPACE, need.id[:-1])).sees:
            return namespaces.missing(need.id[:-1])
        return functions.missing(need.id) if need.kind == FUNCTION else tables.missing(need.id)

    async def _stand_by_jobs(self, token: str, kind: str, id: Identifier) -> Standing:
        """A runner's rights: those of the jobs that it holds now, and nothing more."""
        if kind == NAMESPACE:
            # The runner may see the namespaces around its jobs' tables, but nothing else in them.
            return Standing(0, sees=not id)
        rows = await self.database.fetch(
            "SELECT j.spec, o.id FROM jobs j, objects o WHERE j.token = $1 "
            "AND j.state = 'RUNNING' AND o.namespace = $2 AND o.name = $3",
            *(token, to_path(id[:-1]), id[-1]),
        )
        rights = 0
        for text, object_id in rows:
            reach = decode_reach(text)
            if object_id in reach.target_ids:
                rights |= READ | WRITE
            elif object_id in reach.source_ids:
                rights |= READ
        return Standing(rights, sees=rights != 0)

    async def signing_keys(self) -> Sequence[tuple[str, str]]:
        if self._signing_keys:
            return self._signing_keys
        generation = self.generation
        found = await tokens.get_signing_keys(self.database)
        if generation == self.generation:
            self._signing_keys = found
        return found

    def note_use(self, token_id: str) -> None:
        self._uses[token_id] = self.now_millis

    async def record_uses(self) -> None:
        """Record which keys were used since the last call."""
        if self._uses:
            uses, self._uses = self._uses, {}
            await tokens.record_uses(self.database, uses)

    async def close(self) -> None:
        await self.record_uses()
        if self._watch is not self.database:
            await self._watch.close()

    async def record_for_ever(self) -> None:
        while True:
            await asyncio.sleep(USES_SECONDS)
            try:
                await self.record_uses()
            except PenstockError as error:
                log.warning("the last use of keys is not noted: %s", error.message)
