"""The commits of refreshes, and what else was committed to a view. All of it blocks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from lance import LanceOperation
from lance.fragment import FragmentMetadata

from penstock.lance.columns.fields import parse_path
from penstock.lance.columns.schemas import decode_schema, find_type
from penstock.lance.commit.removal import Removal
from penstock.lance.commit.replacement import BASE_PROPERTY, JOB_PROPERTY, commit_operation
from penstock.model.views import Watermark

if TYPE_CHECKING:
    from lance import LanceDataset

WATERMARK_PROPERTY = "penstock.watermark"
INSERTED_PROPERTY = "penstock.rows_inserted"
UPDATED_PROPERTY = "penstock.rows_updated"
DELETED_PROPERTY = "penstock.rows_deleted"
CALLS_PROPERTY = "penstock.function_calls"
MODE_PROPERTY, REASON_PROPERTY = "penstock.mode", "penstock.reason"


class Refreshed(NamedTuple):
    """A version that a refresh committed."""

    version: int
    job: str
    watermark: Watermark
    properties: dict[str, str]


class History(NamedTuple):
    """What happened to a view since some version: its last refresh, and what others did since."""

    refresh: Refreshed | None
    # How its rows were changed by somebody else; "" when they were not.
    foreign: str
    # Whether columns were added, dropped or given other names since.
    is_altered: bool = False
    # What is not known, because it was cleaned up; "" when all is.
    gap: str = ""


def read_history(view: "LanceDataset", since: int) -> History:
    """Look at the commits after a version, which is the watermark's or 0."""
    foreign, is_altered = "", False
    for version in range(view.version, since, -1):
        try:
            transaction = view.read_transaction(version)
        except (OSError, ValueError):
            transaction = None
        if transaction is None:
            # Before the first refresh nothing is lost by not knowing.
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


def find_moved(now: "LanceDataset", then: "LanceDataset", names: Sequence[str]) -> str:
    """The first of these columns that is another one in two versions of a view; "" if none is."""
    here, there = _field_ids(now), _field_ids(then)
    return next((name for name in names if here.get(name) != there.get(name)), "")


def find_changed(source: "LanceDataset", types: str) -> str:
    """How a source's columns are not those that a query was read against; "" if they are."""
    for field in decode_schema(types) if types else ():
        kind = find_type(source.schema, parse_path(field.name))
        if kind is None:
            return f"column {field.name} is gone"
        if kind != field.type:
            return f"column {field.name} was {field.type} and is {kind}"
    return ""


def commit_refresh(
    view: "LanceDataset",
    removal: Removal,
    fragments: Sequence[str],
    properties: Mapping[str, str],
) -> int:
    """Take rows away and add others, in one version; returns its number.

    Lance puts it on top of whatever came meanwhile, also of the same rows in a commit that was
    taken for lost. So it says which version it was made for, and the catalog takes it only there.
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
    """As a commit carries it: the version of the view is the commit's own."""
    return msgspec.json.encode(msgspec.structs.replace(watermark, view_version=0)).decode()


def _read(version: int, properties: dict[str, str]) -> Refreshed:
    found = msgspec.json.decode(properties[WATERMARK_PROPERTY], type=Watermark)
    watermark = msgspec.structs.replace(found, view_version=version)
    return Refreshed(version, properties.get(JOB_PROPERTY, ""), watermark, properties)


def _field_ids(dataset: "LanceDataset") -> dict[str, int]:
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
