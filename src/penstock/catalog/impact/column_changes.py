"""Drop and alter columns, after a look at the views that read them.

Computed columns of the table itself are looked at where the columns are changed, in
`lance/columns/bindings.py`. Views are looked at before, which takes time, and materialized views
once more in the transaction that commits.
"""

from collections.abc import Sequence
from functools import partial

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import computed_columns
from penstock.catalog.data import datasets
from penstock.catalog.iceberg_views import replace as view_replacing
from penstock.catalog.impact import columns, following, view_reads
from penstock.catalog.impact.columns import ColumnReaders
from penstock.catalog.impact.following import Followers, Renamed
from penstock.catalog.names import dependents, table_changes
from penstock.catalog.versions.commits import Guard, Undo
from penstock.database.interface import Transaction
from penstock.errors import (
    ConcurrentCommit,
    InvalidRequest,
    PenstockError,
    TableInUse,
)
from penstock.lance.columns import bindings
from penstock.lance.columns.fields import (
    Alteration,
    get_field,
    parse_path,
)
from penstock.lance.doors import lance
from penstock.model.allowances import Allowance
from penstock.model.origins import Origin
from penstock.model.tables import MAIN, Table

# What a request may say about what reads the columns.
DROPPED = dependents.OPTIONS
CHANGED = "use ?cascade=true to let them follow a new name, or ?force=true to let them break"


async def drop(
    catalog: Catalog,
    table: Table,
    branch: str,
    paths: Sequence[str],
    origin: Origin,
    allowed: Allowance,
) -> int:
    """Drop columns; refused when something reads them, unless that is allowed."""

    def plan(dataset: "lance.LanceDataset") -> list[str]:
        return bindings.list_dropped(dataset, paths, allowed)

    def check(dataset: "lance.LanceDataset") -> None:
        bindings.plan_drop(dataset, paths, allowed)

    found = await datasets.read(catalog, table, branch, None, plan)
    if not allowed.force:
        readers = await columns.find_column_readers(catalog, table, branch, found)
        if not allowed.cascade:
            await _refuse(catalog.database, table, found, readers, DROPPED, origin)
        elif readers.views or readers.iceberg:
            # Everything is checked before anything is dropped.
            await datasets.read(catalog, table, branch, None, check)
            await _drop_readers(catalog, table, found, readers, origin)
    version, names = await datasets.change(
        catalog,
        table,
        branch,
        lambda dataset: bindings.drop_columns(dataset, paths, allowed),
        origin,
        guard=_guard(table, branch, found, DROPPED, origin, allowed),
    )
    await computed_columns.forget(catalog, table, branch, names)
    return version


async def alter(
    catalog: Catalog,
    table: Table,
    branch: str,
    alterations: Sequence[Alteration],
    origin: Origin,
    allowed: Allowance,
) -> int:
    """Alter columns; new names and types are refused when something reads the old ones."""
    touched = [a.path for a in alterations if a.name is not None or a.data_type is not None]

    def find(dataset: "lance.LanceDataset") -> tuple[list[str], bool]:
        paths = [get_field(dataset, path).path for path in touched]
        return paths, bindings.is_read(dataset, paths)

    guard: Guard | None = None
    followers, follow = Followers(), False
    if touched and not allowed.force:
        found, is_read = await datasets.read(catalog, table, branch, None, find)
        readers = await columns.find_column_readers(catalog, table, branch, found)
        if allowed.cascade and (is_read or readers.views or readers.iceberg):
            renamed, follow = _read_rename(table, alterations), True
            # Everything that the table itself says against it is told before anything follows.
            await datasets.read(catalog, table, branch, None, partial(_check_rename, alterations))
            followers = await following.follow_column(catalog, renamed, readers, origin)
            if branch == MAIN:
                guard = partial(_follow_in, renamed=renamed, followers=followers, origin=origin)
        else:
            await _refuse(catalog.database, table, found, readers, CHANGED, origin)
            guard = _guard(table, branch, found, CHANGED, origin, allowed)
    try:
        return await computed_columns.alter(
            *(catalog, table, branch, alterations, origin),
            guard=guard,
            force=allowed.force,
            follow=follow,
        )
    except PenstockError:
        await view_replacing.abandon(catalog, followers.iceberg)
        raise


def _read_rename(table: Table, alterations: Sequence[Alteration]) -> Renamed:
    """The one rename that dependents can follow."""
    if len(alterations) == 1 and alterations[0].name is not None:
        path = parse_path(alterations[0].path)
        if len(path) == 1 and alterations[0].data_type is None:
            return Renamed(table, path[0], alterations[0].name)
    raise InvalidRequest(
        "views and computed columns follow the new name of one column, and nothing else, in one "
        "request",
        detail="rename columns one by one, or use ?force=true to let what reads them break",
    )


def _check_rename(alterations: Sequence[Alteration], dataset: "lance.LanceDataset") -> None:
    bindings.plan_alterations(dataset, alterations, follow=True)


async def _follow_in(
    tx: Transaction, renamed: Renamed, followers: Followers, origin: Origin
) -> Undo | None:
    """Let views follow a rename, in its transaction; refused when others came meanwhile."""
    table = renamed.table
    # Locked first, so that on PostgreSQL a view that is being created is seen.
    await tx.fetch("UPDATE objects SET id = id WHERE id = $1", table.id)
    views = await view_reads.find_views(tx, table.id, [(renamed.old,)])
    if set(views) - {each.view.table.id for each in followers.views}:
        raise ConcurrentCommit(f"views of {table} were made meanwhile", detail="retry")
    return await following.record_in(tx, str(renamed), followers, origin)


def _guard(
    table: Table,
    branch: str,
    paths: Sequence[str],
    options: str,
    origin: Origin,
    allowed: Allowance,
) -> Guard | None:
    """Refuses the commit when a view has come to read the columns meanwhile."""
    if branch != MAIN or allowed.force:
        return None
    return partial(_check_in, table=table, paths=paths, options=options, origin=origin)


async def _check_in(
    tx: Transaction, table: Table, paths: Sequence[str], options: str, origin: Origin
) -> Undo | None:
    # Locked first, so that on PostgreSQL a view that is being created is seen.
    await tx.fetch("UPDATE objects SET id = id WHERE id = $1", table.id)
    views = await view_reads.find_views(tx, table.id, [parse_path(path) for path in paths])
    await _refuse(tx, table, paths, ColumnReaders(views=views), options, origin)
    return None


async def _refuse(
    tx: Transaction,
    table: Table,
    paths: Sequence[str],
    readers: ColumnReaders,
    options: str,
    origin: Origin,
) -> None:
    views = [*readers.views, *readers.iceberg]
    if not views:
        return
    told = await dependents.tell(tx, views, origin)
    which = f"column {paths[0]}" if len(paths) == 1 else f"one of the columns {', '.join(paths)}"
    if readers.computed:
        told += f", and by the computed columns {', '.join(each.name for each in readers.computed)}"
    raise TableInUse(
        f"{which} of {table} is read by {told}", detail=f"drop these first, or {options}"
    )


async def _drop_readers(
    catalog: Catalog, table: Table, paths: Sequence[str], readers: ColumnReaders, origin: Origin
) -> None:
    what = f"column {', '.join(paths)} of {table}"
    await table_changes.drop_readers(
        catalog, what, list(readers.views), list(readers.iceberg.values()), origin
    )
