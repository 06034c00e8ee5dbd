"""Read the history of a view: the commits of its refreshes, and those of others. It blocks."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata

from penstock.lance.columns.fields import parse_path
from penstock.lance.columns.schemas import decode_schema, find_type
from penstock.lance.commit.removal import Removal
from penstock.lance.commit.replacement import (
    BASE_PROPERTY,
    JOB_PROPERTY,
    WATERMARK_PROPERTY,
    commit_operation,
)
from penstock.lance.commit.transaction import read_transaction
from penstock.model.views import Source, Watermark

INSERTED_PROPERTY = "penstock.rows_inserted"
UPDATED_PROPERTY = "penstock.rows_updated"
DELETED_PROPERTY = "penstock.rows_deleted"
CALLS_PROPERTY = "penstock.function_calls"
READ_PROPERTY = "penstock.rows_read"
MODE_PROPERTY, REASON_PROPERTY = "penstock.mode", "penstock.reason"


class RefreshCommit(NamedTuple):
    """A version that a refresh committed."""

    version: int
    job: str
    watermark: Watermark
    properties: dict[str, str]


class History(NamedTuple):
    """What happened to a view since a version: its last refresh, and what others did since."""

    refresh: RefreshCommit | None
    # How someone else changed its rows; "" when nobody did.
    foreign: str
    # Whether columns were added, dropped or renamed since.
    is_altered: bool = False
    # What is unknown because it was cleaned up; "" when nothing is.
    gap: str = ""


def read_history(view: LanceDataset, since: int) -> History:
    """Read the commits after a version, which is the watermark's or 0."""
    foreign, is_altered = "", False
    for version in range(view.version, since, -1):
        try:
            transaction = read_transaction(view, version)
        except (OSError, ValueError):
            transaction = None
        if transaction is None:
            # Before the first refresh, not knowing loses nothing.
            gap = f"version {version} of the view is gone" * (since > 0)
            return History(None, foreign, is_altered, gap)
        properties = dict(transaction.transaction_properties or {})
        if WATERMARK_PROPERTY in properties:
            return History(_read(version, properties), foreign, is_altered)
        if _writes_rows(transaction.operation):
            name = type(transaction.operation).__name__.lower()
            foreign = f"version {version} of the view is somebody else's {name}"
        is_altered = is_altered or _alters(transaction.operation)
    return History(None, foreign, is_altered)


def find_moved(now: LanceDataset, then: LanceDataset, names: Sequence[str]) -> str:
    """The first of these columns that differs between two versions of a view; "" if none does."""
    here, there = _field_ids(now), _field_ids(then)
    return next((name for name in names if here.get(name) != there.get(name)), "")


def find_changed(dataset: LanceDataset, source: Source) -> str:
    """How a source's columns differ from those that a query was read against; "" if they don't."""
    names = {id: name for name, id in _field_ids(dataset).items()}
    for name, id in source.fields.items():
        if names.get(id, name) != name:
            return f"column {name} is called {names[id]}"
    for field in decode_schema(source.types) if source.types else ():
        kind = find_type(dataset.schema, parse_path(field.name))
        if kind is None:
            return f"column {field.name} is gone"
        if kind != field.type:
            return f"column {field.name} was {field.type} and is {kind}"
    return ""


def commit_refresh(
    view: LanceDataset,
    removal: Removal,
    fragments: Sequence[str],
    properties: Mapping[str, str],
) -> int:
    """Remove rows and add others in one version; returns its number.

    Lance rebases it on whatever came meanwhile, even on the same rows in a commit that seemed lost.
    So it names the version that it was made for, and the catalog accepts it only there.
    """
    operation = LanceOperation.Update(
        removed_fragment_ids=removal.removed,
        updated_fragments=removal.updated,
        new_fragments=[FragmentMetadata.from_json(each) for each in fragments],
        fields_modified=[],
    )
    base = {BASE_PROPERTY: str(view.version)}
    return commit_operation(view, operation, {**properties, **base})


def encode_watermark(watermark: Watermark) -> str:
    """A watermark for a commit: the version of the view is the commit's own."""
    return msgspec.json.encode(msgspec.structs.replace(watermark, view_version=0)).decode()


def _read(version: int, properties: dict[str, str]) -> RefreshCommit:
    found = msgspec.json.decode(properties[WATERMARK_PROPERTY], type=Watermark)
    watermark = msgspec.structs.replace(found, view_version=version)
    return RefreshCommit(version, properties.get(JOB_PROPERTY, ""), watermark, properties)


def _field_ids(dataset: LanceDataset) -> dict[str, int]:
    return {field.name(): field.id() for field in dataset.lance_schema.fields()}


def _alters(operation: Any) -> bool:
    return isinstance(operation, LanceOperation.Merge | LanceOperation.Project)


def _writes_rows(operation: Any) -> bool:
    return isinstance(
        operation,
        LanceOperation.Append
        | LanceOperation.Delete
        | LanceOperation.Overwrite
        | LanceOperation.Restore
        | LanceOperation.Update,
    )
