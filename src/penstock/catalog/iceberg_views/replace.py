"""Replacing a view: apply the updates to what is current, write the file, swap the record.

The swap compares the record with what the updates were applied to. When another replace was first,
they are applied again to its result, so both land. In one server they queue up instead.
"""

import asyncio
import dataclasses
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.iceberg_views.dialect_marks import mark_problems
from penstock.catalog.iceberg_views.dialects import read_query
from penstock.catalog.iceberg_views.iceberg_views import Edition, View, encode_names
from penstock.catalog.iceberg_views.metadata_files import Planned, plan, publish, remove_file, write
from penstock.catalog.names import locations, transactions
from penstock.crash import crash_point
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit
from penstock.model.identifiers import Identifier, show
from penstock.model.origins import NOBODY, Origin
from penstock.retries import spread

if TYPE_CHECKING:
    from penstock.iceberg.requests import ReplaceView

ATTEMPTS = 10
PAUSE_SECONDS = 0.01

# Whoever replaces a view in this process; another process meets the swap.
_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


async def replace(
    catalog: Catalog, id: Identifier, request: "ReplaceView", origin: Origin = NOBODY
) -> View:
    """Apply the request's updates; returns the view as it is then."""
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


async def _replace_once(
    catalog: Catalog, id: Identifier, request: "ReplaceView", origin: Origin
) -> View | None:
    """One try; None when the swap was lost to somebody else."""
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
        return None  # its folder is being removed: somebody drops it
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


async def _read(tx: Transaction, id: Identifier) -> tuple[View, int]:
    view = await iceberg_views.get(tx, id)
    row = await tx.fetch_one("SELECT now_millis()")
    return view, int(row[0]) if row else 0


def _plan_next(
    catalog: Catalog, view: View, request: "ReplaceView", now_millis: int
) -> tuple[Planned, bool] | None:
    """The view's next document; None when nothing changes.

    Also whether whoever asked for it has to answer for what the view reads.
    """
    from penstock.iceberg.replace import replace_metadata

    metadata = msgspec.json.decode(view.document.text)
    changed = replace_metadata(metadata, request, now_millis)
    if changed is metadata:
        return None
    planned = plan(catalog.lake, mark_problems(changed, metadata), view.document.location)
    return planned, read_query(changed) != read_query(metadata)


def _is_elsewhere(view: View, folder: str) -> bool:
    """Whether a folder is neither where the view's files are now, nor made for them."""
    return folder != view.document.folder and not view.owns(folder)


async def _swap(tx: Transaction, view: View, replaced: View, origin: Origin) -> bool:
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
