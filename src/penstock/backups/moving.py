"""What in a catalog names places although locations are relative: told of the lake's new place.

Metadata of Iceberg views holds an absolute location, in the record and in a file that others read.
A view whose lake is elsewhere gets its next metadata file there, with the same history and SQL;
what had consented to the old file has consented to this one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.catalog.iceberg_views.metadata_files import Document, plain, plan, spell, write
from penstock.catalog.names import idempotency
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest
from penstock.lance.storage.lake import Lake
from penstock.model.locations import is_within, join
from penstock.model.properties import decode_properties, encode_properties


@dataclass(frozen=True, slots=True)
class Move:
    """Where a lake was and where it is now; both without a slash at their end."""

    was: str
    now: str

    def path(self, location: str) -> str | None:
        """Where something of the lake is now, as the lake spells it; None for what is outside."""
        try:
            found = plain(location)
        except InvalidRequest:
            return None
        if not is_within(found, self.was):
            return None
        return self.now if found == self.was else join(self.now, found[len(join(self.was, "")) :])

    def text(self, location: str) -> str:
        """A location as others are told it, of now; one outside the lake stays what it is."""
        found = self.path(location)
        return location if found is None else spell(found)


@dataclass(frozen=True, slots=True)
class MovedView:
    """A view's metadata file of before, and its next one."""

    id: str
    was: str
    document: Document


def move_view(lake: Lake, move: Move, row: dict[str, Any], *, all_in: bool) -> MovedView | None:
    """Write the next metadata file of a view whose files were in the lake; blocks.

    With `all_in`, one whose files were outside comes in as well; else it stays as it is.
    """
    from penstock.iceberg.files import METADATA_PATH

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
    """Have the catalog name the new places, in the transaction that gives it its new root."""
    # They depend on the file itself on local storage; whoever needs one reads it again.
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
            "UPDATE jobs SET spec = replace(spec, $1, $2) WHERE state IN ('QUEUED', 'RUNNING')",
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
    """Note the sizes of manifests that were written anew, by path."""
    for path, size in sizes.items():
        await tx.fetch(
            "UPDATE table_versions SET manifest_size = $3 "
            "WHERE table_id = $1 AND manifest_path = $2",
            *(table_id, path, size),
        )


async def _move_namespaces(tx: Transaction, move: Move) -> None:
    """Views of a namespace with a location go there."""
    for path, text in await tx.fetch("SELECT path, properties FROM namespaces"):
        properties = decode_properties(text)
        location = properties.get("location", "")
        if location and (now := move.text(location)) != location:
            changed = encode_properties(properties | {"location": now})
            await tx.fetch("UPDATE namespaces SET properties = $2 WHERE path = $1", path, changed)
