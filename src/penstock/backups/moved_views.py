"""Iceberg views of a moved lake: their metadata holds absolute locations, so it is written again.

The location is in the record and in a file that other engines read. A view whose lake moved gets a
next metadata file with the same history and SQL; consents to the old file are carried over to it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.catalog.iceberg_views.metadata_files import (
    MetadataDocument,
    plain,
    plan,
    spell,
    write,
)
from penstock.catalog.jobs.jobs import UNFINISHED
from penstock.catalog.names import idempotency
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest
from penstock.iceberg.files import METADATA_PATH
from penstock.lance.storage.lake import Lake
from penstock.model.locations import is_within, join
from penstock.model.properties import decode_properties, encode_properties


@dataclass(frozen=True, slots=True)
class Move:
    """The old and the new root of a lake, both without a trailing slash."""

    was: str
    now: str

    def path(self, location: str) -> str | None:
        """The new path of a file in the lake, as the lake spells it; None for one outside."""
        try:
            found = plain(location)
        except InvalidRequest:
            return None
        if not is_within(found, self.was):
            return None
        return self.now if found == self.was else join(self.now, found[len(join(self.was, "")) :])

    def text(self, location: str) -> str:
        """The new form of a location that clients see; one outside the lake stays."""
        found = self.path(location)
        return location if found is None else spell(found)


@dataclass(frozen=True, slots=True)
class MovedView:
    """A view's previous metadata file, and its next one."""

    id: str
    was: str
    document: MetadataDocument


def move_view(lake: Lake, move: Move, row: dict[str, Any], *, all_in: bool) -> MovedView | None:
    """Write the next metadata file of a view whose files were in the lake; blocks.

    With `all_in`, a view whose files were outside the lake moves in as well; otherwise it stays.
    """
    metadata: dict[str, Any] = msgspec.json.decode(row["metadata"])
    location = move.path(metadata["location"])
    if location is None:
        if not all_in:
            return None
        location = lake.new_folder(None, "view", row["id"][:16])
    properties = dict(metadata.get("properties", {}))
    if chosen := properties.get(METADATA_PATH):
        found = move.path(chosen)
        properties |= {METADATA_PATH: spell(found)} if found else {}
        if found is None and all_in:
            del properties[METADATA_PATH]
    changed = metadata | {"location": spell(location)}
    if "properties" in metadata:
        changed["properties"] = properties
    document = write(plan(lake, changed, row["metadata_location"]))
    return MovedView(row["id"], row["metadata_location"], document)


async def settle_in(tx: Transaction, move: Move, views: Iterable[MovedView]) -> None:
    """Make the catalog name the new places, in the transaction that sets its new root."""
    # On local storage an e_tag depends on the file itself; whoever needs one reads it again.
    await tx.fetch("UPDATE table_versions SET e_tag = NULL WHERE e_tag IS NOT NULL")
    await idempotency.forget_answers(tx)
    await _move_namespaces(tx, move)
    names = {view.was: view.document.location for view in views}
    for view in views:
        await tx.fetch(
            "UPDATE views SET location = relative($2), metadata_location = $3, metadata = $4 "
            "WHERE id = $1",
            *(view.id, view.document.folder, view.document.location, view.document.text),
        )
        await tx.fetch(
            f"UPDATE jobs SET spec = replace(spec, $1, $2) WHERE {UNFINISHED}",
            *(view.was, view.document.location),
        )
    for relation, column in (
        ("views", "edited_in"),
        ("view_sources", "state"),
        ("view_sources", "edition"),
    ):
        rows = await tx.fetch(
            f"SELECT DISTINCT {column} FROM {relation} WHERE coalesce({column}, '') <> ''"
        )
        for (old,) in rows:
            if (new := names.get(old) or move.text(old)) != old:
                await tx.fetch(f"UPDATE {relation} SET {column} = $2 WHERE {column} = $1", old, new)


async def set_sizes_in(tx: Transaction, table_id: str, sizes: dict[str, int]) -> None:
    """Record the new sizes of rewritten manifests, by path."""
    for path, size in sizes.items():
        await tx.fetch(
            "UPDATE table_versions SET manifest_size = $3 "
            "WHERE table_id = $1 AND manifest_path = $2",
            *(table_id, path, size),
        )


async def _move_namespaces(tx: Transaction, move: Move) -> None:
    """Move the locations that namespaces set for their views."""
    for path, text in await tx.fetch("SELECT path, properties FROM namespaces"):
        properties = decode_properties(text)
        location = properties.get("location", "")
        if location and (now := move.text(location)) != location:
            changed = encode_properties(properties | {"location": now})
            await tx.fetch("UPDATE namespaces SET properties = $2 WHERE path = $1", path, changed)
