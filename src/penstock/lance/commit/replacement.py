"""Commit finished files of columns to a table. Everything here blocks."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from penstock.errors import InvalidTableState, OutcomeUnknown, PenstockError
from penstock.lance.commit.transaction import read_transaction
from penstock.lance.doors import lance
from penstock.lance.errors import translated

JOB_PROPERTY, ATTEMPT_PROPERTY = "penstock.job", "penstock.attempt"
# The version that a commit was made for.
BASE_PROPERTY = "penstock.base"
ROWS_PROPERTY, FRAGMENTS_PROPERTY = "penstock.rows", "penstock.fragments"
# Of a refresh: what the view follows from the commit on.
WATERMARK_PROPERTY = "penstock.watermark"
# The digest of the definition that a view has from a commit on.
ALTERATION_PROPERTY = "penstock.alteration"
# For functions: the binding of the columns, and the function's identity.
COLUMN_PROPERTY, FUNCTION_PROPERTY = "penstock.column", "penstock.function"


class Computation(Struct, frozen=True):
    """What is computed for a column."""

    column: str
    expression: str = ""
    where: str | None = None
    # The expression reads no column.
    is_constant: bool = False


class ColumnFile(Struct, frozen=True):
    """A finished file of columns, as a commit names it."""

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    major: int
    minor: int
    size_bytes: int
    rows: int


class OwnCommit(NamedTuple):
    """A version that a job committed, and how much it filled."""

    version: int
    rows: int
    fragments: int


def commit_files(
    dataset: "lance.LanceDataset", files: Mapping[int, ColumnFile], properties: Mapping[str, str]
) -> int:
    """Put files into the fragments of the newest version, which is open; returns the new version.

    Raises ConcurrentCommit when someone changed one of the fragments or the schema meanwhile.
    """
    groups = []
    for id, file in files.items():
        fragment = dataset.get_fragment(id)
        if fragment is None or fragment.physical_rows != file.rows:
            raise InvalidTableState(f"{file.path} does not have the length of fragment {id}")
        new = lance.fragment.DataFile(
            file.path,
            list(file.fields),
            list(file.column_indices),
            file.major,
            file.minor,
            file.size_bytes,
        )
        groups.append(lance.LanceOperation.DataReplacementGroup(id, new))
    return commit_operation(dataset, lance.LanceOperation.DataReplacement(groups), properties)


def commit_operation(
    dataset: "lance.LanceDataset", operation: Any, properties: Mapping[str, str]
) -> int:
    """Commit on top of the open version; returns the new one."""
    transaction = lance.Transaction(
        dataset.version, operation, transaction_properties=dict(properties)
    )
    try:
        with translated():
            return lance.LanceDataset.commit(dataset, transaction).version
    except PenstockError as error:
        # Lance could not find out whether its commit went in: only the table can tell.
        if "unknown" in error.message and "ommit" in error.message:
            raise OutcomeUnknown(error.message) from error
        raise


def find_commits(dataset: "lance.LanceDataset", job: str, back: int) -> list[OwnCommit]:
    """The versions among the last few that a job committed, newest first."""
    return [
        OwnCommit(
            version,
            int(properties.get(ROWS_PROPERTY, 0)),
            int(properties.get(FRAGMENTS_PROPERTY, 0)),
        )
        for version, properties in _read_properties(dataset, back)
        if properties.get(JOB_PROPERTY) == job
    ]


def find_fills(dataset: "lance.LanceDataset", binding: str, function: str, back: int) -> list[int]:
    """The versions in which any job filled columns by a function, newest first."""
    wanted = {COLUMN_PROPERTY: binding, FUNCTION_PROPERTY: function}
    return [
        version
        for version, properties in _read_properties(dataset, back)
        if wanted.items() <= properties.items()
    ]


def _read_properties(
    dataset: "lance.LanceDataset", back: int
) -> Iterator[tuple[int, dict[str, str]]]:
    for version in range(dataset.version, max(0, dataset.version - back), -1):
        try:
            transaction = read_transaction(dataset, version)
        except (OSError, ValueError):
            # Versions that are gone are older than everything that still counts.
            break
        yield version, dict((transaction.transaction_properties if transaction else None) or {})
