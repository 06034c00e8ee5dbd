"""Iceberg views: create, register, find, list, rename, drop.

A view's state is one metadata document, kept in its record and in a file that other engines may
read. A change writes the file first and then swaps the record.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.access.grants import Target
from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views.dialect_marks import mark_problems
from penstock.catalog.iceberg_views.metadata_files import (
    DocumentPlan,
    MetadataDocument,
    keeps_files,
    plain,
    plan,
    publish,
    read_document,
    remove_file,
    spell,
    write,
)
from penstock.catalog.names import (
    dependents,
    locations,
    namespaces,
    removals,
    tables,
    transactions,
)
from penstock.crash import crash_point
from penstock.database.interface import Row, Transaction
from penstock.errors import InvalidRequest, TableAlreadyExists, ViewAlreadyExists, ViewNotFound
from penstock.iceberg.doors import create as create_door
from penstock.iceberg.doors import requests
from penstock.model.identifiers import Identifier, from_path, show, split_table, to_path
from penstock.model.origins import NOBODY, Origin
from penstock.model.paging import Page, PageRequest, cut_page

KIND = "view"
COLUMNS = (
    "o.id, o.namespace, o.name, absolute(v.folder), v.metadata_location, v.metadata, "
    "absolute(v.location), "
    "v.edited_in, v.edited_by"
)


@dataclass(frozen=True, slots=True)
class Edition:
    """The SQL of a view, identified by its metadata file, and who wrote it.

    Authors are known by the names of their grants: none where authentication was off, None when
    they were not recorded.
    """

    id: str
    by: tuple[str, ...] | None

    @property
    def author(self) -> str:
        return self.by[0] if self.by else ""


@dataclass(frozen=True, slots=True)
class IcebergView:
    """A view's record; `folder` is the folder that this server made for it, or empty."""

    id: str
    namespace: Identifier
    name: str
    folder: str
    document: MetadataDocument
    edition: Edition

    @property
    def identifier(self) -> Identifier:
        return (*self.namespace, self.name)

    def owns(self, folder: str) -> bool:
        """Whether a folder is below the one that this server made for the view."""
        return bool(self.folder) and folder.startswith(f"{self.folder}/")

    @property
    def state(self) -> tuple[str, str]:
        return self.id, self.document.location


async def create(
    catalog: Catalog, id: Identifier, request: "requests.CreateView", origin: Origin = NOBODY
) -> IcebergView:
    """Make a view, with its first metadata file."""
    properties = await catalog.database.read(check_new, id)
    view_id = uuid.uuid4()
    above, folder = None, ""
    if request.location is None:
        if given := properties.get("location"):
            above = plain(given, "the namespace's location")
        folder = catalog.lake.new_folder(above, ".".join(id), view_id.hex[:16])
    location = request.location or spell(folder)
    planned = await catalog.lake.run(
        _plan_first, catalog, request, str(view_id), location, await _now(catalog.database)
    )
    view = IcebergView(
        view_id.hex,
        id[:-1],
        id[-1],
        folder,
        MetadataDocument("", "", planned.target.location),
        Edition("", origin.grantees),
    )
    # A new folder directly below the root has nothing around it.
    chosen = [] if above is None or not folder else [folder]
    if not view.owns(view.document.folder):
        chosen.append(view.document.folder)
    for each in chosen:
        await catalog.database.read(locations.check_view, each, early=True)
    document = await catalog.lake.run(write, planned)
    view = replace(view, document=document, edition=Edition(document.location, origin.grantees))
    crash_point("view file written")
    await publish(catalog, view, None, _insert, view, chosen, "CreateView", origin)
    crash_point("view recorded")
    return view


async def register(
    catalog: Catalog, id: Identifier, metadata_location: str, origin: Origin = NOBODY
) -> IcebergView:
    """Register a view by its existing metadata file, with its history."""
    await catalog.database.read(check_new, id)
    document = await catalog.lake.run(read_document, catalog.lake, metadata_location)
    edition = Edition(document.location, origin.grantees)
    view = IcebergView(uuid.uuid4().hex, id[:-1], id[-1], "", document, edition)
    await catalog.database.write(_register, view, origin)
    return view


async def drop(catalog: Catalog, id: Identifier, origin: Origin = NOBODY) -> None:
    """Remove a view from the catalog, and its files unless its metadata forbids that.

    As Iceberg's clients do: those that name it break. `impact/view_drops.py` looks at them first.
    """
    await remove_files(catalog, [await catalog.database.write(_drop, id, origin)])


async def remove_files(catalog: Catalog, gone: Sequence[IcebergView]) -> None:
    """Remove the files of dropped views, unless their metadata forbids that."""
    for view in gone:
        if not keeps_files(view.document.text):
            await catalog.lake.run(remove_file, catalog.lake, view.document.location)
            await removals.carry_out(catalog, [view.folder] if view.folder else [])


async def rename(catalog: Catalog, id: Identifier, new: Identifier, origin: Origin = NOBODY) -> str:
    """Rename a view, in any namespace; its metadata stays as it is. Returns the transaction.

    As Iceberg's clients do: those that name it break. `impact/renames.py` looks at them first.
    """
    return await catalog.database.write(rename_in, id, new, origin)


async def get(tx: Transaction, id: Identifier) -> IcebergView:
    row = await _fetch(tx, COLUMNS, id)
    if row is None:
        raise missing(id)
    return to_view(row)


async def get_by_id(tx: Transaction, id: str) -> IcebergView:
    """The view with this id, whatever its name is now."""
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM objects o JOIN views v ON v.id = o.id WHERE o.id = $1", id
    )
    if row is None:
        raise ViewNotFound("the view was dropped meanwhile", detail="retry")
    return to_view(row)


async def get_state(tx: Transaction, id: Identifier) -> tuple[str, str]:
    """The view's id and current metadata location; together they identify an immutable state."""
    row = await _fetch(tx, "o.id, v.metadata_location", id)
    if row is None:
        raise missing(id)
    return row[0], row[1]


async def list_names(
    tx: Transaction, namespace: Identifier, page: PageRequest, only: Sequence[str] | None = None
) -> Page[str]:
    """The names of the views directly in a namespace that these grantees may see."""
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


def encode_names(by: tuple[str, ...] | None) -> str:
    return "" if by is None else msgspec.json.encode(by).decode()


def missing(id: Identifier) -> ViewNotFound:
    return ViewNotFound(f"view {show(id)} does not exist", subject=id)


async def _fetch(tx: Transaction, columns: str, id: Identifier) -> Row | None:
    namespace, name = split_table(id)
    return await tx.fetch_one(
        f"SELECT {columns} FROM objects o JOIN views v ON v.id = o.id "
        "WHERE o.namespace = $1 AND o.name = $2",
        to_path(namespace),
        name,
    )


async def check_new(tx: Transaction, id: Identifier) -> dict[str, str]:
    """Refuse a name that is taken; returns the namespace's properties."""
    properties = await namespaces.get(tx, id[:-1])
    kind = await tables.find_kind(tx, id)
    if kind == KIND:
        raise ViewAlreadyExists(f"view {show(id)} already exists", subject=id)
    if kind is not None:
        raise TableAlreadyExists(f"{kind} {show(id)} already exists", subject=id)
    return properties


async def _now(tx: Transaction) -> int:
    row = await tx.fetch_one("SELECT now_millis()")
    return int(row[0]) if row else 0


def _plan_first(
    catalog: Catalog, request: "requests.CreateView", view_uuid: str, location: str, now_millis: int
) -> DocumentPlan:
    metadata = create_door.create_metadata(
        request, uuid=view_uuid, location=location, now_millis=now_millis
    )
    return plan(catalog.lake, mark_problems(metadata), None)


async def _register(tx: Transaction, view: IcebergView, origin: Origin) -> None:
    # By folder and file name, because the whole location may be spelt in several ways.
    rows = await tx.fetch(
        "SELECT o.namespace, o.name, v.metadata_location FROM views v "
        "JOIN objects o ON o.id = v.id WHERE v.location = relative($1)",
        view.document.folder,
    )
    file = view.document.location.rpartition("/")[2]
    for namespace, name, location in rows:
        if location.rpartition("/")[2] != file:
            continue
        owner = show((*from_path(namespace), name))
        raise InvalidRequest(
            f"{view.document.location} is the metadata of view {owner}",
            detail="dropping one of the two would take the other's file; drop that one first",
        )
    await _insert(tx, view, [view.document.folder], "RegisterView", origin)


async def _insert(
    tx: Transaction, view: IcebergView, chosen: Sequence[str], operation: str, origin: Origin
) -> None:
    await check_new(tx, view.identifier)
    for folder in chosen:
        await locations.check_view(tx, folder)
    await tx.fetch(
        "INSERT INTO objects (id, namespace, name, kind, properties, created_at) "
        "VALUES ($1, $2, $3, $4, '{}', now_millis())",
        *(view.id, to_path(view.namespace), view.name, KIND),
    )
    document = view.document
    await tx.fetch(
        "INSERT INTO views (id, location, folder, metadata_location, metadata, edited_in, "
        "edited_by) VALUES ($1, relative($2), relative($3), $4, $5, $6, $7)",
        *(view.id, document.folder, view.folder, document.location, document.text),
        *(view.edition.id, encode_names(view.edition.by)),
    )
    await grants.give_owner_in(tx, origin, Target(KIND, view.identifier), view.id)
    await transactions.record(tx, operation, show(view.identifier), origin)


async def _drop(tx: Transaction, id: Identifier, origin: Origin) -> IcebergView:
    view = await get(tx, id)
    await dependents.check_unread(tx, f"view {show(id)}", [view.id], None, origin)
    gone = await delete_in(tx, view)
    await transactions.record(tx, "DropView", show(id), origin)
    return gone


async def delete_in(tx: Transaction, view: IcebergView) -> IcebergView:
    """Delete a view's records; returns it as it was in the end."""
    # On PostgreSQL others may have dropped, renamed or replaced it since: go by the deleted row.
    if not await tx.fetch(
        "UPDATE objects SET id = id WHERE id = $1 AND namespace = $2 AND name = $3 RETURNING id",
        *(view.id, to_path(view.namespace), view.name),
    ):
        raise missing(view.identifier)
    row = await dependents.delete_iceberg_view(tx, view.id)
    if row is None:
        raise missing(view.identifier)
    view = replace(view, folder=row[0], document=MetadataDocument(*row[1:]))
    if view.folder and not keeps_files(view.document.text):
        await removals.enqueue(tx, [view.folder])
    return view


async def rename_in(tx: Transaction, id: Identifier, new: Identifier, origin: Origin) -> str:
    """Give a view another name, in the transaction of the change."""
    await namespaces.get(tx, new[:-1])
    view = await get(tx, id)
    kind = await tables.find_kind(tx, new) if new != id else None
    if kind is not None:
        raised = ViewAlreadyExists if kind == KIND else TableAlreadyExists
        raise raised(
            f"Cannot rename {'.'.join(id)} to {'.'.join(new)}. {tables.name_kind(kind)} "
            "already exists"
        )
    moved = await tx.fetch(
        "UPDATE objects SET namespace = $2, name = $3 "
        "WHERE id = $1 AND namespace = $4 AND name = $5 RETURNING id",
        *(view.id, to_path(new[:-1]), new[-1], to_path(id[:-1]), id[-1]),
    )
    if not moved:
        raise missing(id)
    await grants.moved_in(tx, view.id)
    return await transactions.record(tx, "RenameView", f"{show(id)} -> {show(new)}", origin)


def to_view(row: Row) -> IcebergView:
    id, namespace, name, folder, location, text, files_folder, edited_in, edited_by = row
    document = MetadataDocument(location, text, files_folder)
    by = msgspec.json.decode(edited_by, type=tuple[str, ...]) if edited_by else None
    return IcebergView(id, from_path(namespace), name, folder, document, Edition(edited_in, by))
