"""Versions, tags and branches of a table, and what a merge did."""

import datetime
from dataclasses import dataclass


@dataclass(frozen=True)
class Version:
    """A version of a table; times are milliseconds."""

    version: int
    timestamp_millis: int

    @property
    def at(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.timestamp_millis / 1000, datetime.UTC)


@dataclass(frozen=True)
class Tag:
    version: int
    branch: str | None = None


@dataclass(frozen=True)
class Branch:
    parent_version: int
    parent_branch: str | None = None


@dataclass(frozen=True)
class Merged:
    """What a merge did: the version that it made, and how many rows."""

    version: int
    inserted: int
    updated: int
    deleted: int
