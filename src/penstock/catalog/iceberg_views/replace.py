"""Replace a view: apply the updates to the current metadata, write the file, swap the record.

The swap compares the record with the metadata that the updates were applied to. If another replace
was first, the updates are applied again to its result, so both succeed. Within one server, replaces
of a view take turns.
"""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.iceberg_views.dialect_marks import mark_problems
from penstock.catalog.iceberg_views.dialects import read_query
from penstock.catalog.iceberg_views.iceberg_views import Edition, IcebergView, encode_names
from penstock.catalog.iceberg_views.metadata_files import (
    DocumentPlan,
    plan,
    publish,
    remove_file,
    write,
)
from penstock.catalog.names import locations, transactions
from penstock.crash import crash_point
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit
from penstock.iceberg.doors import replace as replace_door
from penstock.iceberg.doors import requests
from penstock.iceberg.metadata import current_version
from penstock.model.identifiers import Identifier, show
from penstock.model.origins import NOBODY, Origin
from penstock.retries import spread

ATTEMPTS = 10
PAUSE_SECONDS = 0.01

# One lock for each view that is being replaced in this process; other processes meet at the swap.
_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


async def replace(
    catalog: Catalog, id: Identifier, request: "requests.ReplaceView", origin: Origin = NOBODY
) -> IcebergView:
    """Apply the request's updates; returns the updated view."""
    view = await iceberg_views.get(catalog.database, id)
    turn = _turns.setdefault(view.id, asyncio.Lock())
    async with turn:
        for pause in spread(PAUSE_SECONDS, ATTEMPTS):
            replaced = await _replace_once(catalog, id, request, origin)
            if replaced is not None:
                return replaced
            await asyncio.sleep(pause)
    raise ConcurrentCommit(
        f"Cannot commit to view {'.'.join(id)}: it changes too fast", detail="retry"
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Replacement:
    """A view with other texts that mean the same; its file is written, its record is not."""

    before: IcebergView
    after: IcebergView


async def prepare(catalog: Catalog, view: IcebergView, texts: Mapping[str, str]) -> Replacement:
    """Write the view's next file, with other SQL for these dialects."""
    _, now = await catalog.database.read(_read, view.identifier)
    planned = await catalog.lake.run(_plan_texts, catalog, view, texts, now)
    document = await catalog.lake.run(write, planned)
    crash_point("view file written")
    # Its author still answers for what it reads, which is the same.
    return Replacement(view, dataclasses.replace(view, document=document))


async def swap_in(tx: Transaction, replacement: Replacement, origin: Origin) -> None:
    """Record a replacement; raises when the view has changed meanwhile."""
    if not await _swap(tx, replacement.before, replacement.after, origin):
        raise ConcurrentCommit(
            f"view {show(replacement.before.identifier)} was changed meanwhile", detail="retry"
        )


async def abandon(catalog: Catalog, replacements: Sequence[Replacement]) -> None:
    """Remove the files of replacements that were not recorded."""
    for each in replacements:
        await catalog.lake.run(remove_file, catalog.lake, each.after.document.location)


def _plan_texts(
    catalog: Catalog, view: IcebergView, texts: Mapping[str, str], now_millis: int
) -> DocumentPlan:
    metadata = msgspec.json.decode(view.document.text)
    version = current_version(metadata)
    shown = [
        {**each, "sql": texts.get(each["dialect"], each["sql"])}
        for each in version["representations"]
    ]
    updates = [
        {
            "action": "add-view-version",
            "view-version": {**version, "representations": shown, "timestamp-ms": now_millis},
        },
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    request = requests.read_replace({"updates": updates})
    changed = replace_door.replace_metadata(metadata, request, now_millis)
    return plan(catalog.lake, mark_problems(changed, metadata), view.document.location)


async def _replace_once(
    catalog: Catalog, id: Identifier, request: "requests.ReplaceView", origin: Origin
) -> IcebergView | None:
    """Try once; None when another process won the swap."""
    view, now = await catalog.database.read(_read, id)
    found = await catalog.lake.run(_plan_next, catalog, view, request, now)
    if found is None:
        return view
    planned, is_edited = found
    if _is_elsewhere(view, planned.target.location):
        await catalog.database.read(locations.check_view, planned.target.location, early=True)
    try:
        document = await catalog.lake.run(write, planned)
    except ConcurrentCommit:
        return None  # its folder is being removed by a drop
    crash_point("view file written")
    edition = Edition(document.location, origin.grantees) if is_edited else view.edition
    replaced = dataclasses.replace(view, document=document, edition=edition)
    base = view.document.location
    swapped = await publish(catalog, replaced, base, _swap, view, replaced, origin)
    if swapped is False:
        await catalog.lake.run(remove_file, catalog.lake, document.location)
        return None
    crash_point("view recorded")
    return replaced


async def _read(tx: Transaction, id: Identifier) -> tuple[IcebergView, int]:
    view = await iceberg_views.get(tx, id)
    row = await tx.fetch_one("SELECT now_millis()")
    return view, int(row[0]) if row else 0


def _plan_next(
    catalog: Catalog, view: IcebergView, request: "requests.ReplaceView", now_millis: int
) -> tuple[DocumentPlan, bool] | None:
    """The view's next document; None when nothing changes.

    Also whether the requester has to answer for what the view reads.
    """
    metadata = msgspec.json.decode(view.document.text)
    changed = replace_door.replace_metadata(metadata, request, now_millis)
    if changed is metadata:
        return None
    planned = plan(catalog.lake, mark_problems(changed, metadata), view.document.location)
    return planned, read_query(changed) != read_query(metadata)


def _is_elsewhere(view: IcebergView, folder: str) -> bool:
    """Whether a folder is neither the one that the view's files are in, nor made for them."""
    return folder != view.document.folder and not view.owns(folder)


async def _swap(tx: Transaction, view: IcebergView, replaced: IcebergView, origin: Origin) -> bool:
    new, edition = replaced.document, replaced.edition
    if _is_elsewhere(view, new.folder):
        await locations.check_view(tx, new.folder)
    swapped = await tx.fetch(
        "UPDATE views SET location = relative($3), metadata_location = $4, metadata = $5, "
        "edited_in = $6, edited_by = $7 WHERE id = $1 AND metadata_location = $2 RETURNING id",
        *(view.id, view.document.location, new.folder, new.location, new.text),
        *(edition.id, encode_names(edition.by)),
    )
    if swapped:
        await transactions.record(tx, "ReplaceView", show(view.identifier), origin)
    return bool(swapped)
