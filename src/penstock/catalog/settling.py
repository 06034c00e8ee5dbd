"""Settling: a recorded version's manifest gets its final name.

This is the second step of a commit. It can be repeated at any time by anyone, so a crash
between record and name is mended by whoever sees the unsettled record next.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum

from penstock.crash import crash_point
from penstock.datasets import files
from penstock.datasets.lake import Place
from penstock.model.tables import TableVersion

FLUSH_SECONDS = 0.05

Key = tuple[str, str, int]


class Outcome(Enum):
    SETTLED = "the final name holds our manifest"
    TAKEN = "the final name holds somebody else's manifest"
    LOST = "neither the staged nor the final file exists"


def settle(place: Place, version: TableVersion, content: bytes | None = None) -> Outcome:
    """Move the staged manifest to its final name, durably; blocks."""
    staged, final = version.staged_path, version.manifest_path
    if staged == final:
        return Outcome.SETTLED
    try:
        content = files.read(place, staged) if content is None else content
        named = files.publish(place, staged, final, content)
        crash_point("version named")
        if not named and files.read(place, final) != content:
            return Outcome.TAKEN
        files.remove(place, staged)
        # A first version, or a branch, may lie in folders that are new themselves.
        folder = final.rpartition("/")[0]
        is_new = version.version == 1 or folder != "_versions"
        files.make_folder_durable(place, folder, with_parents=is_new)
    except FileNotFoundError:
        # Only a finished move, or the removal of the table, takes the staged name away.
        return Outcome.SETTLED if files.exists(place, final) else Outcome.LOST
    return Outcome.SETTLED


def unsettle(place: Place, version: TableVersion, content: bytes) -> None:
    """Take the final name away again, if it is our manifest that has it; blocks."""
    with contextlib.suppress(FileNotFoundError):
        if files.read(place, version.manifest_path) == content:
            files.remove(place, version.manifest_path)
    files.remove(place, version.staged_path)


class Settler:
    """Collects keys of settled versions and notes them in one write a moment later.

    Nothing depends on that note being durable: without it the settling is only repeated.
    """

    def __init__(self, write: Callable[[Sequence[Key]], Awaitable[None]]) -> None:
        self._write = write
        self._keys: list[Key] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, keys: Sequence[Key]) -> None:
        self._keys.extend(keys)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._flush_later())

    async def flush(self) -> None:
        while self._keys:
            keys, self._keys = self._keys[:500], self._keys[500:]
            await self._write(keys)

    async def _flush_later(self) -> None:
        await asyncio.sleep(FLUSH_SECONDS)
        await self.flush()
