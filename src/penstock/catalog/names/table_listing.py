"""Listings of tables: those of a namespace, and all of them, page by page."""

from collections.abc import Sequence

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.names import namespaces, tables
from penstock.database.interface import Row, Transaction
from penstock.model.identifiers import Identifier, from_path, to_path
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.tables import Table


async def list_names(
    catalog: Catalog,
    namespace: Identifier,
    page: PageRequest,
    include_declared: bool,
    only: Sequence[str] | None = None,
) -> Page[str]:
    """The names of the tables directly in a namespace that these grantees may see."""
    if include_declared:
        rows = await catalog.database.fetch(
            "SELECT name FROM objects o WHERE namespace = $1 AND kind = 'table' AND name > $2 "
            f"{grants.seen(only, 4)} ORDER BY name LIMIT $3",
            *(to_path(namespace), page.after or "", page.limit + 1),
            *(only or ()),
        )
        names = [row[0] for row in rows]
        found = cut_page(page, names, names)
    else:
        listed = await _list(catalog, page, include_declared, namespace, only)
        found = Page([table.name for table in listed.items], listed.token)
    if not found.items:
        await namespaces.get(catalog.database, namespace)
    return found


async def list_all(
    catalog: Catalog, page: PageRequest, include_declared: bool, only: Sequence[str] | None = None
) -> Page[Identifier]:
    """The identifiers of all tables that these grantees may see."""
    listed = await _list(catalog, page, include_declared, None, only)
    return Page([table.identifier for table in listed.items], listed.token)


async def _list(
    catalog: Catalog,
    page: PageRequest,
    include_declared: bool,
    namespace: Identifier | None,
    only: Sequence[str] | None,
) -> Page[Table]:
    """Read a page; when declared tables are left out, read on until the page is full."""
    found: list[Table] = []
    after = page.after
    while True:
        rows = await _list_rows(catalog.database, namespace, after, page.limit + 1, only)
        read = [tables.to_table(row) for row in rows]
        found += [t for t in read if include_declared or await tables.has_data(catalog, t)]
        if len(rows) <= page.limit or len(found) > page.limit:
            return cut_page(page, found, [_key(table, namespace) for table in found])
        after = _key(read[-1], namespace)


def _key(table: Table, namespace: Identifier | None) -> str:
    return to_path(table.identifier) if namespace is None else table.name


async def _list_rows(
    tx: Transaction,
    namespace: Identifier | None,
    after: str | None,
    limit: int,
    only: Sequence[str] | None,
) -> list[Row]:
    select = f"SELECT {tables.COLUMNS} FROM objects o JOIN tables t ON t.id = o.id WHERE"
    seen = grants.seen(only, 4)
    if namespace is not None:
        return await tx.fetch(
            f"{select} o.namespace = $1 AND o.name > $2 {seen} ORDER BY o.name LIMIT $3",
            *(to_path(namespace), after or "", limit),
            *(only or ()),
        )
    last = from_path(after or "")
    return await tx.fetch(
        f"{select} (o.namespace, o.name) > ($1, $2) {seen} ORDER BY o.namespace, o.name LIMIT $3",
        *(to_path(last[:-1]), last[-1] if last else "", limit),
        *(only or ()),
    )
