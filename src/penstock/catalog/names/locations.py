"""Locations that clients choose: none may overlap, so a drop never deletes another's files."""

from penstock.database.interface import Row, Transaction
from penstock.errors import InvalidRequest, TableAlreadyExists
from penstock.lance.storage.lake import Lake
from penstock.model.identifiers import Identifier, from_path

# Where things are: a relation, its column, whose it is, and whether a drop may delete all of it.
_PLACES = (
    ("tables", "location", "a table", True),
    ("views", "location", "a view", False),
    ("views", "folder", "a view", True),
    ("iceberg_tables", "location", "an Iceberg table", True),
    ("iceberg_tables", "folder", "an Iceberg table", True),
    ("iceberg_tables", "metadata_folder", "an Iceberg table", False),
    ("removals", "location", "", True),
)


async def check_table(tx: Transaction, location: str, *, early: bool = False) -> None:
    """Refuse a location inside, around or at that of something else.

    Also checked early, before anything is written there; only the check in the transaction that
    takes the location counts.
    """
    if not early:
        await _lock(tx)
    if (owner := await _find_overlap(tx, location, "")) is not None:
        raise TableAlreadyExists(
            f"location {location!r} overlaps one that {owner}",
            detail="choose a location of its own for each table",
        )


async def check_iceberg_table(
    tx: Transaction, location: str, besides: str, *, early: bool = False
) -> None:
    """Refuse a location of an Iceberg table that overlaps that of anything else, as for tables.

    Credentials for a table reach all of its location, and a purge deletes it. `besides` is the
    table's own id.
    """
    if not early:
        await _lock(tx)
    if (owner := await _find_overlap(tx, location, besides)) is not None:
        raise InvalidRequest(
            f"location {location!r} overlaps one that {owner}",
            detail="choose a location of its own for each table",
        )


async def check_view(
    tx: Transaction, location: str, *, besides: str = "", early: bool = False
) -> None:
    """Refuse a location in a folder that a drop would delete; also checked early, as for tables.

    Views may share a location that clients chose: their files have unique names. The same goes for
    metadata of Iceberg tables; `besides` is the id of such a table.
    """
    if not early:
        await _lock(tx)
    for relation, column, owner, is_deleted in _PLACES:
        others = besides if owner else ""
        if is_deleted and await _find_around(tx, relation, location, column, others):
            raise InvalidRequest(
                f"location {location!r} is inside one that {_tell(owner)}",
                detail="choose a location outside the folders of tables and other views",
            )


async def list_owners(tx: Transaction, lake: Lake, location: str) -> list[tuple[str, Identifier]]:
    """The tables and views whose folders contain a file, with their kinds."""
    found = []
    path = lake.accept(location)
    for relation, column, owner, _ in _PLACES:
        for row in await _find_around(tx, relation, path, column) if owner else ():
            if row[0]:
                found += await tx.fetch(
                    f"SELECT o.kind, o.namespace, o.name FROM {relation} t "
                    f"JOIN objects o ON o.id = t.id WHERE t.{column} = relative($1)",
                    row[0],
                )
    return sorted({(kind, (*from_path(namespace), name)) for kind, namespace, name in found})


async def _find_overlap(tx: Transaction, location: str, besides: str) -> str | None:
    """What has a place inside, around or at this one, in words."""
    for relation, column, owner, _ in _PLACES:
        unless, own = ("AND id <> $3", [besides]) if owner else ("", [])
        below = await tx.fetch(
            f"SELECT {column} FROM {relation} "
            f"WHERE {column} > relative($1) AND {column} < relative($2) {unless} LIMIT 1",
            *(f"{location}/", f"{location}0", *own),
        )
        others = besides if owner else ""
        if below or await _find_around(tx, relation, location, column, others):
            return _tell(owner)
    return None


def _tell(owner: str) -> str:
    return f"belongs to {owner}" if owner else "is being removed"


async def _lock(tx: Transaction) -> None:
    # One at a time: no constraint would catch two nested locations.
    await tx.fetch("UPDATE locks SET taken = taken + 1 WHERE name = 'locations'")


async def _find_around(
    tx: Transaction, relation: str, location: str, column: str, besides: str = ""
) -> list[Row]:
    """What is at the location, or at a folder above it, but for one table or view."""
    parts = location.split("/")
    folders = ["/".join(parts[:count]) for count in range(2, len(parts) + 1)]
    places = ", ".join(f"relative(${number})" for number in range(1, len(folders) + 1))
    unless = f"AND id <> ${len(folders) + 1}" if besides else ""
    return await tx.fetch(
        f"SELECT absolute({column}) FROM {relation} WHERE {column} IN ({places}) {unless}",
        *(*folders, *([besides] if besides else ())),
    )
