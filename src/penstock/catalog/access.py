"""What this server knows of keys and grants, exactly as the database has it.

Each request reads one number, which every change of access counts up in its own transaction. While
it stays the same, everything else is answered from memory; when it has changed, memory is emptied.
So what is revoked, by whichever process, is refused from the next request on.
"""

import asyncio
import logging
from collections.abc import Sequence

from penstock.catalog import tokens
from penstock.catalog.tokens import Token
from penstock.database.interface import Database
from penstock.errors import PenstockError

log = logging.getLogger(__name__)

# Entries that are kept of each kind; more are forgotten all at once.
MAX_KEPT = 10_000
USES_SECONDS = 60.0


class Access:
    """The memory of one server; call `refresh` first in each request."""

    def __init__(self, database: Database) -> None:
        self.database = database
        # The database's clock at the last refresh.
        self.now_millis = 0
        # Counts the times that memory was emptied, for those who keep things elsewhere.
        self.generation = -1
        self._tokens: dict[str, Token | None] = {}
        self._signing_keys: Sequence[tuple[str, str]] = ()
        self._uses: dict[str, int] = {}

    async def refresh(self) -> None:
        row = await self.database.fetch_one(
            "SELECT taken, now_millis() FROM locks WHERE name = 'access'"
        )
        assert row is not None
        number, self.now_millis = row
        if number != self.generation:
            self.generation = number
            self.forget()

    def forget(self) -> None:
        self._tokens.clear()
        self._signing_keys = ()

    async def find_token(self, id: str) -> Token | None:
        """The record of a key, valid or not."""
        if id in self._tokens:
            return self._tokens[id]
        found = await tokens.find(self.database, id)
        # A key that is made later does not count the number up, so its absence is not kept.
        if found is not None:
            if len(self._tokens) >= MAX_KEPT:
                self._tokens.clear()
            self._tokens[id] = found
        return found

    async def signing_keys(self) -> Sequence[tuple[str, str]]:
        if not self._signing_keys:
            self._signing_keys = await tokens.get_signing_keys(self.database)
        return self._signing_keys

    def note_use(self, token_id: str) -> None:
        self._uses[token_id] = self.now_millis

    async def record_uses(self) -> None:
        """Write down which keys were used since the last time."""
        if self._uses:
            uses, self._uses = self._uses, {}
            await tokens.record_uses(self.database, uses)

    async def record_for_ever(self) -> None:
        while True:
            await asyncio.sleep(USES_SECONDS)
            try:
                await self.record_uses()
            except PenstockError as error:
                log.warning("the last use of keys is not noted: %s", error.message)
