"""Settling: give a recorded version's manifest its final name.

This is the second step of a commit. Anyone can repeat it at any time, so whoever sees an unsettled
record repairs a crash between record and name.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from penstock.crash import crash_point
from penstock.lance.commit.manifest import BadManifest, parse_manifest
from penstock.lance.storage import files
from penstock.lance.storage.lake import Lake, Place
from penstock.model.tables import TableVersion

FLUSH_SECONDS = 0.05
# Table, branch, version, and the staged path, which tells this record from a later one.
Key = tuple[str, str, int, str]

# The disk handles a few syncs at once; more threads would only wait for each other.
LANES, MOST_TOGETHER = 4, 8
MOST_RECENT = 4096


class SettleOutcome(Enum):
    SETTLED = "the final name holds our manifest"
    TAKEN = "the final name holds somebody else's manifest"
    LOST = "neither the staged nor the final file exists"


def settle(place: Place, version: TableVersion, content: bytes | None = None) -> SettleOutcome:
    """Move the staged manifest to its final name, durably; blocks.

    Without content it repairs what a crash left, so nothing on storage is trusted.
    """
    staged, final = version.staged_path, version.manifest_path
    # A first version, or a branch, may be in folders that are new themselves.
    is_new = version.version == 1 or not final.startswith("_versions/")
    try:
        content = _read_whole(place, staged, version) if content is None else content
        if staged != final:
            named = files.publish(place, staged, final, content)
            crash_point("version named")
            if not named and files.read(place, final) != content:
                return SettleOutcome.TAKEN
            files.remove(place, staged)
        files.make_durable(place, final, with_parents=is_new)
    except FileNotFoundError:
        # Only a finished move, or the removal of the table, removes the staged name.
        return _look_at_final(place, version)
    return SettleOutcome.SETTLED


def _look_at_final(place: Place, version: TableVersion) -> SettleOutcome:
    try:
        content = _read_whole(place, version.manifest_path, version)
        files.make_durable(place, version.manifest_path)
    except FileNotFoundError:
        return SettleOutcome.LOST
    return SettleOutcome.SETTLED if len(content) == version.manifest_size else SettleOutcome.TAKEN


def _read_whole(place: Place, path: str, version: TableVersion) -> bytes:
    """Read a manifest; one damaged by a power cut is removed and counts as missing."""
    content = files.read(place, path)
    try:
        if parse_manifest(content).version == version.version:
            return content
    except BadManifest:
        pass
    files.remove(place, path)
    raise FileNotFoundError(path)


def unsettle(place: Place, version: TableVersion, content: bytes) -> None:
    """Remove the final name again, if it is our manifest's; blocks."""
    with contextlib.suppress(FileNotFoundError):
        if files.read(place, version.manifest_path) == content:
            files.remove(place, version.manifest_path)
    files.remove(place, version.staged_path)


def version_key(table_id: str, branch: str, version: TableVersion) -> Key:
    return table_id, branch, version.version, version.staged_path


@dataclass(frozen=True, slots=True)
class _SettleRequest:
    place: Place
    version: TableVersion
    content: bytes | None
    done: "asyncio.Future[SettleOutcome]"


class Settler:
    """Settles versions, those that wait together at once, and records a moment later which are.

    The record need not be durable: without it, settling is only repeated.
    """

    def __init__(self, lake: Lake, write: Callable[[Sequence[Key]], Awaitable[None]]) -> None:
        self._lake = lake
        self._write = write
        self._wishes: list[_SettleRequest] = []
        self._lanes: set[asyncio.Task[None]] = set()
        self._running = 0
        self._keys: list[Key] = []
        self._task: asyncio.Task[None] | None = None
        # Versions that this process settled lately; the database learns of them later.
        self._recent: OrderedDict[Key, None] = OrderedDict()

    async def settle(
        self, place: Place, version: TableVersion, content: bytes | None = None
    ) -> SettleOutcome:
        """Settle one version; under load, many share one trip to a thread."""
        done: asyncio.Future[SettleOutcome] = asyncio.get_running_loop().create_future()
        self._wishes.append(_SettleRequest(place, version, content, done))
        if self._running < LANES:
            self._running += 1
            lane = asyncio.create_task(self._run_lane())
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)
        return await done

    async def _run_lane(self) -> None:
        try:
            while self._wishes:
                taken, self._wishes = self._wishes[:MOST_TOGETHER], self._wishes[MOST_TOGETHER:]
                outcomes = await self._lake.run(_settle_all, taken)
                for wish, outcome in zip(taken, outcomes, strict=True):
                    if wish.done.cancelled():
                        continue
                    if isinstance(outcome, SettleOutcome):
                        wish.done.set_result(outcome)
                    else:
                        wish.done.set_exception(outcome)
        finally:
            # At once, not when the task is done: a request in between needs a lane.
            self._running -= 1

    def knows(self, key: Key) -> bool:
        """Whether this process just settled a version."""
        return key in self._recent

    def add(self, keys: Sequence[Key]) -> None:
        """Record that versions are settled."""
        self._recent.update(dict.fromkeys(keys))
        while len(self._recent) > MOST_RECENT:
            self._recent.popitem(last=False)
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


def _settle_all(wishes: Sequence[_SettleRequest]) -> list[SettleOutcome | Exception]:
    outcomes: list[SettleOutcome | Exception] = []
    for wish in wishes:
        try:
            outcomes.append(settle(wish.place, wish.version, wish.content))
        except Exception as error:
            # Not swallowed: it is raised to the caller that asked for this version.
            outcomes.append(error)
    return outcomes
