"""Locations that clients choose: none may overlap, so a drop never deletes another's files."""

from penstock.database.interface import Row, Transaction
from penstock.errors import InvalidRequest, TableAlreadyExists
from penstock.lance.storage.lake import Lake
from penstock.model.identifiers import Identifier, from_path


async def check_table(tx: Transaction, location: str, *, early: bool = False) -> None:
    """Refuse a location inside, around or at that of something else.

    Also checked early, before anything is written there; only the check in the transaction that
    takes the location counts.
    """
    if not early:
        await _lock(tx)
    for relation, owner in (
        ("tables", "belongs to another table"),
        ("views", "belongs to a view"),
        ("removals", "is being removed"),
    ):
        below = await tx.fetch(
            f"SELECT location FROM {relation} "
            "WHERE location > relative($1) AND location < relative($2) LIMIT 1",
            f"{location}/",
            f"{location}0",
        )
        around = await _find_around(tx, relation, location)
        if relation == "views":
            around += await _find_around(tx, relation, location, "folder")
        if below or around:
            raise TableAlreadyExists(
                f"location {location!r} overlaps one that {owner}",
                detail="choose a location of its own for each table",
            )


async def check_view(tx: Transaction, location: str, *, early: bool = False) -> None:
    """Refuse a location in a folder that a drop would delete; also checked early, as for tables.

    Views may share a location that clients chose: their files have unique names.
    """
    if not early:
        await _lock(tx)
    for relation, column, owner in (
        ("tables", "location", "belongs to a table"),
        ("views", "folder", "belongs to another view"),
        ("removals", "location", "is being removed"),
    ):
        if await _find_around(tx, relation, location, column):
            raise InvalidRequest(
                f"location {location!r} is inside one that {owner}",
                detail="choose a location outside the folders of tables and other views",
            )


async def list_owners(tx: Transaction, lake: Lake, location: str) -> list[tuple[str, Identifier]]:
    """The tables and views whose folders contain a file, with their kinds."""
    found = []
    path = lake.accept(location)
    for relation, column in (("tables", "location"), ("views", "folder"), ("views", "location")):
        for row in await _find_around(tx, relation, path, column):
            if row[0]:
                found += await tx.fetch(
                    f"SELECT o.kind, o.namespace, o.name FROM {relation} t "
                    f"JOIN objects o ON o.id = t.id WHERE t.{column} = relative($1)",
                    row[0],
                )
    return sorted({(kind, (*from_path(namespace), name)) for kind, namespace, name in found})


async def _lock(tx: Transaction) -> None:
    # One at a time: no constraint would catch two nested locations.
    await tx.fetch("UPDATE locks SET taken = taken + 1 WHERE name = 'locations'")


async def _find_around(
    tx: Transaction, relation: str, location: str, column: str = "location"
) -> list[Row]:
    """What is at the location, or at a folder above it."""
    parts, found = location.split("/"), list[Row]()
    for count in range(2, len(parts) + 1):
        found += await tx.fetch(
            f"SELECT absolute({column}) FROM {relation} WHERE {column} = relative($1)",
            "/".join(parts[:count]),
        )
    return found
