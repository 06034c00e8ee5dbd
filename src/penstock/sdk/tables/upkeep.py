"""Keeping a table small: its files compacted, and its old versions removed."""

import datetime
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import InvalidRequest
from penstock.sdk.show import to_time
from penstock.sdk.tables.handle import Handle

WEEK = datetime.timedelta(days=7)


@dataclass(frozen=True)
class CompactionResult:
    """What a compaction did; the version is the newest one after it."""

    version: int
    fragments_removed: int = 0
    fragments_added: int = 0
    # Pieces that somebody else changed meanwhile: they stay as they were.
    pieces_lost: int = 0


@dataclass(frozen=True)
class CleanupResult:
    """What a clean-up did, or with `dry_run` would do."""

    version: int
    versions_removed: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    # How many versions stayed, by reason: `newest`, `recent`, `tag`, `branch`, `column`, `view`,
    # `job`, `kept work`.
    versions_kept: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class UpkeepPolicy:
    """How the server keeps a table small by itself, and what its last run did."""

    compact: bool
    small_fragments: int
    deleted_share: float
    older_than: datetime.timedelta | None
    keep_versions: int | None
    due_at: datetime.datetime | None = None
    ran_at: datetime.datetime | None = None
    # Of the last run: `fragments_removed`, `versions_removed` and their like.
    result: dict[str, int] = field(default_factory=dict)
    # Why the last run failed, and how many have failed in a row.
    error: str | None = None
    failures: int = 0


class Upkeep(Handle):
    """What a table or view does to stay small."""

    def compact(self) -> CompactionResult:
        """Merge small files, and leave deleted rows out of them; no value changes.

        The server works in pieces, so others read and write meanwhile, and whoever stops in the
        middle has what was done until then.
        """
        removed = added = lost = 0
        while True:
            told = self._change("compact", {"branch": self._branch})
            removed += told["fragments_removed"]
            added += told["fragments_added"]
            lost += told["pieces_lost"]
            if not told["pieces_left"]:
                return CompactionResult(told["version"], removed, added, lost)

    def set_upkeep(
        self,
        *,
        compact: bool = True,
        small_fragments: int = 20,
        deleted_share: float = 0.1,
        older_than: datetime.timedelta | None = None,
        keep_versions: int | None = None,
    ) -> UpkeepPolicy:
        """Let the server keep it small from now on, in place of a policy that it has.

        compact: merge files, when so many small ones (`small_fragments`) lie side by side, or when
            this share of a file's rows is deleted.
        older_than: remove versions that were replaced so long ago, an hour or more.
        keep_versions: leave the newest so many in any case; alone, remove all others.
        """
        seconds = None if older_than is None else int(older_than.total_seconds())
        body = {
            "compact": compact,
            "small_fragments": small_fragments,
            "deleted_share": deleted_share,
            "older_than_seconds": seconds,
            "keep_versions": keep_versions,
        }
        found = read_policy(self._note("upkeep/set", body))
        assert found is not None
        return found

    def upkeep(self) -> UpkeepPolicy | None:
        """The policy by which the server keeps it small; None if it has none."""
        return read_policy(self._read("upkeep/describe", None))

    def end_upkeep(self) -> None:
        """Let the server not keep it small any more."""
        self._note("upkeep/end", None)

    def cleanup(
        self,
        *,
        older_than: datetime.timedelta = WEEK,
        keep_versions: int = 1,
        dry_run: bool = False,
    ) -> CleanupResult:
        """Remove versions that were replaced so long ago, and the files that only they had.

        The newest `keep_versions` stay in any case, and so does what a tag, a branch, a column, a
        view, a job or kept work needs.
        """
        seconds = older_than.total_seconds()
        if seconds < 0:
            raise InvalidRequest(f"older_than is {older_than}", detail="give zero or more")
        body = {
            "branch": self._branch,
            "older_than_seconds": int(seconds),
            "keep_versions": keep_versions,
            "dry_run": dry_run,
        }
        versions = files = size = 0
        while True:
            told = self._change("cleanup", body)
            versions += told["versions_removed"]
            files += told["files_removed"]
            size += told["bytes_removed"]
            # A round that removed nothing would be repeated for ever.
            if dry_run or not told["versions_left"] or not told["versions_removed"]:
                kept = told["versions_kept"]
                return CleanupResult(told["version"], versions, files, size, kept)


def read_policy(told: dict[str, Any]) -> UpkeepPolicy | None:
    policy = told["policy"]
    if policy is None:
        return None
    seconds = policy["older_than_seconds"]
    return UpkeepPolicy(
        policy["compact"],
        policy["small_fragments"],
        policy["deleted_share"],
        None if seconds is None else datetime.timedelta(seconds=seconds),
        policy["keep_versions"],
        to_time(told["due_at_millis"]),
        None if told["ran_at_millis"] is None else to_time(told["ran_at_millis"]),
        told["result"] or {},
        told["error"],
        told["failures"],
    )
