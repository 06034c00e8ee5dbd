"""Keeping a table small: its files compacted, and its old versions removed."""

import datetime
from dataclasses import dataclass, field

from penstock.errors import InvalidRequest
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
