"""Versions, tags, branches and indexes of a table, and what a write did to its rows."""

import datetime
from dataclasses import dataclass
from typing import Any

from penstock.sdk.show import to_time


@dataclass(frozen=True)
class Version:
    """A version of a table."""

    version: int
    created_at: datetime.datetime


@dataclass(frozen=True)
class Tag:
    version: int
    branch: str | None = None


@dataclass(frozen=True)
class Branch:
    parent_version: int
    parent_branch: str | None = None


@dataclass(frozen=True)
class Index:
    """An index of a table."""

    name: str
    # As in `create_index`: `IVF_PQ`, `FTS`, `BTREE` …
    index_type: str
    columns: list[str]
    # Rows that came after it was made are found without it.
    rows_indexed: int | None = None
    rows_unindexed: int | None = None


@dataclass(frozen=True)
class WriteResult:
    """What a write did: the version that has it, and how many rows it changed."""

    version: int
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0


def read_version(told: dict[str, Any]) -> Version:
    return Version(told["version"], to_time(told["timestamp_millis"]))


def read_index(told: dict[str, Any]) -> Index:
    return Index(
        told["index_name"],
        told["index_type"],
        told["columns"],
        told.get("num_indexed_rows"),
        told.get("num_unindexed_rows"),
    )


def read_result(told: dict[str, Any]) -> WriteResult:
    """A result from the answer to any write, each of which has the counts of its own kind."""
    return WriteResult(
        told["version"],
        told.get("num_inserted_rows") or 0,
        told.get("num_updated_rows") or told.get("updated_rows") or 0,
        told.get("num_deleted_rows") or 0,
    )
