"""Iceberg tables: find, list, rename, drop.

A table's state is one metadata file; its record says which. Commits write the next file, and then
swap the record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.catalog.access import grants
from penstock.catalog.access.grants import Target
from penstock.catalog.catalog import Catalog
from penstock.catalog.names import dependents, namespaces, tables, transactions
from penstock.database.interface import Row, Transaction
from penstock.errors import InvalidRequest, TableAlreadyExists, TableNotFound
from penstock.model.identifiers import Identifier, from_path, show, split_table, to_path
from penstock.model.origins import NOBODY, Origin
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.rights import ICEBERG_TABLE, TABLE

KIND = ICEBERG_TABLE
COLUMNS = (
    "o.id, o.namespace, o.name, i.uuid, absolute(i.location), absolute(i.folder), "
    "i.metadata_location, absolute(i.metadata_folder), i.commit_digest, i.rows_snapshot"
)


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """A table's record.

    `folder` is another one that its files are in, or empty: the one that this server made for it,
    or where it was before it moved. `digest` is that of the commit that made it what it is;
    `rows_snapshot` is the last snapshot that changed its rows, 0 for none.
    """

    id: str
    namespace: Identifier
    name: str
    uuid: str
    location: str
    folder: str
    metadata_location: str
    metadata_folder: str
    digest: str = ""
    rows_snapshot: int = 0

    @property
    def identifier(self) -> Identifier:
        return (*self.namespace, self.name)

    @property
    def state(self) -> tuple[str, str]:
        """What identifies a state of the table, which never changes."""
        return self.id, self.metadata_location

    @property
    def folders(self) -> list[str]:
        """The folders in which nothing but this table is, outermost only."""
        return _outermost((self.location, self.folder))

    def holds(self, folder: str) -> bool:
        """Whether a folder is in one of the table's own."""
        return any(f"{folder}/".startswith(f"{own}/") for own in self.folders)

    def folder_after(self, location: str) -> str:
        """The other folder of the table once it has moved; what is in its files stays its own."""
        if location == self.location:
            return self.folder
        others = [each for each in _outermost((*self.folders, location)) if each != location]
        if len(others) > 1:
            raise InvalidRequest(
                f"table {show(self.identifier)} has files at {others[0]!r} and {others[1]!r}",
                detail="a table's files are in two folders at most; move it back to one of them",
            )
        return others[0] if others else ""


def _outermost(folders: Sequence[str]) -> list[str]:
    return [
        each
        for each in dict.fromkeys(folders)
        if each and not any(other and each.startswith(f"{other}/") for other in folders)
    ]


async def get(tx: Transaction, id: Identifier) -> IcebergTable:
    found = await find(tx, id)
    if found is None:
        raise missing(id)
    return found


async def find(tx: Transaction, id: Identifier) -> IcebergTable | None:
    namespace, name = split_table(id)
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM objects o JOIN iceberg_tables i ON i.id = o.id "
        "WHERE o.namespace = $1 AND o.name = $2",
        *(to_path(namespace), name),
    )
    return None if row is None else _to_table(row)


async def list_names(
    tx: Transaction, namespace: Identifier, page: PageRequest, only: Sequence[str] | None = None
) -> Page[str]:
    """The names of the Iceberg tables directly in a namespace that these grantees may see."""
    seen = grants.seen(only, 5)
    rows = await tx.fetch(
        f"SELECT name FROM objects o WHERE namespace = $1 AND kind = $2 AND name > $3 {seen} "
        "ORDER BY name LIMIT $4",
        *(to_path(namespace), KIND, page.after or "", page.limit + 1),
        *(only or ()),
    )
    if not rows:
        await namespaces.get(tx, namespace)
    names = [row[0] for row in rows]
    return cut_page(page, names, names)


def missing(id: Identifier) -> TableNotFound:
    return TableNotFound(f"Iceberg table {show(id)} does not exist", subject=id)


async def check_new(tx: Transaction, id: Identifier) -> dict[str, str]:
    """Refuse a name that is taken; returns the namespace's properties."""
    properties = await namespaces.get(tx, id[:-1])
    if (kind := await tables.find_kind(tx, id)) is not None:
        raise taken(id, kind)
    return properties


def taken(id: Identifier, kind: str) -> TableAlreadyExists:
    """The error for a name that something has; clients know its words."""
    name = ".".join(id)
    if kind == KIND:
        return TableAlreadyExists(f"Table already exists: {name}")
    detail = "it is a Lance table" if kind == TABLE else ""
    return TableAlreadyExists(
        f"{tables.name_kind(kind)} with same name already exists: {name}", detail=detail
    )


async def insert_in(tx: Transaction, table: IcebergTable, origin: Origin) -> None:
    """Record a new table; its name and place must have been checked in this transaction."""
    await tx.fetch(
        "INSERT INTO objects (id, namespace, name, kind, properties, created_at) "
        "VALUES ($1, $2, $3, $4, '{}', now_millis())",
        *(table.id, to_path(table.namespace), table.name, KIND),
    )
    await tx.fetch(
        "INSERT INTO iceberg_tables (id, uuid, location, folder, metadata_location, "
        "metadata_folder, commit_digest, rows_snapshot) "
        "VALUES ($1, $2, relative($3), relative($4), $5, relative($6), $7, $8)",
        *(table.id, table.uuid, table.location, table.folder),
        *(table.metadata_location, table.metadata_folder, table.digest, table.rows_snapshot),
    )
    await grants.give_owner_in(tx, origin, Target(KIND, table.identifier), table.id)


async def swap_in(tx: Transaction, base: IcebergTable, table: IcebergTable) -> bool:
    """Make a record what a commit to `base` made of it; False when it has changed meanwhile."""
    swapped = await tx.fetch(
        "UPDATE iceberg_tables SET uuid = $3, location = relative($4), folder = relative($5), "
        "metadata_location = $6, metadata_folder = relative($7), commit_digest = $8, "
        "rows_snapshot = $9 "
        "WHERE id = $1 AND metadata_location = $2 RETURNING id",
        *(base.id, base.metadata_location, table.uuid, table.location, table.folder),
        *(table.metadata_location, table.metadata_folder, table.digest, table.rows_snapshot),
    )
    return bool(swapped)


async def rename(catalog: Catalog, id: Identifier, new: Identifier, origin: Origin = NOBODY) -> str:
    """Rename a table, in any namespace; its files stay as they are. Returns the transaction."""
    return await catalog.database.write(_rename, id, new, origin)


async def delete_in(tx: Transaction, table: IcebergTable, origin: Origin) -> bool:
    """Delete a table's records, unless a materialized view reads it.

    False when it has changed since it was read.
    """
    await dependents.check_unread(tx, f"table {show(table.identifier)}", [table.id], None, origin)
    # On PostgreSQL others may have dropped, renamed or changed it since: go by the deleted row.
    if not await tx.fetch(
        "UPDATE objects SET id = id WHERE id = $1 AND namespace = $2 AND name = $3 RETURNING id",
        *(table.id, to_path(table.namespace), table.name),
    ):
        raise missing(table.identifier)
    if not await tx.fetch(
        "DELETE FROM iceberg_tables WHERE id = $1 AND metadata_location = $2 RETURNING id",
        *table.state,
    ):
        return False
    await tx.fetch("DELETE FROM objects WHERE id = $1", table.id)
    await grants.forget_in(tx, table.id)
    return True


async def _rename(tx: Transaction, id: Identifier, new: Identifier, origin: Origin) -> str:
    await namespaces.get(tx, new[:-1])
    table = await get(tx, id)
    kind = await tables.find_kind(tx, new) if new != id else None
    if kind is not None:
        raise TableAlreadyExists(
            f"Cannot rename {'.'.join(id)} to {'.'.join(new)}. {tables.name_kind(kind)} "
            "already exists"
        )
    moved = await tx.fetch(
        "UPDATE objects SET namespace = $2, name = $3 "
        "WHERE id = $1 AND namespace = $4 AND name = $5 RETURNING id",
        *(table.id, to_path(new[:-1]), new[-1], to_path(id[:-1]), id[-1]),
    )
    if not moved:
        raise missing(id)
    await grants.moved_in(tx, table.id)
    return await transactions.record(tx, "RenameIcebergTable", f"{show(id)} -> {show(new)}", origin)


def _to_table(row: Row) -> IcebergTable:
    id, namespace, *rest = row
    return IcebergTable(id, from_path(namespace), *rest)
