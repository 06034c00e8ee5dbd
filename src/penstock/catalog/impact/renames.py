"""Rename a table or an Iceberg view, after a look at the Iceberg views that know it by its name.

Materialized views know it by its id, unless they read it by way of these. Iceberg's own RenameView
does not ask.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.iceberg_views import replace as view_replacing
from penstock.catalog.impact import following, graph, iceberg_readers
from penstock.catalog.impact.following import Followers
from penstock.catalog.impact.iceberg_readers import NamedObject
from penstock.catalog.names import dependents, namespaces, table_changes, tables
from penstock.database.interface import Transaction
from penstock.errors import PenstockError, TableInUse
from penstock.model.allowances import NOTHING_BREAKS, Allowance
from penstock.model.identifiers import Identifier, show
from penstock.model.origins import NOBODY, Origin


@dataclass(frozen=True, slots=True)
class _Rename:
    """What is renamed: in words, by its id, and how its record is changed."""

    word: str
    target: NamedObject
    change_in: Callable[[Transaction, Identifier, Identifier, Origin], Awaitable[str]]

    @property
    def what(self) -> str:
        return f"{self.word} {show(self.target.identifier)}"


async def rename(
    catalog: Catalog,
    id: Identifier,
    new: Identifier,
    origin: Origin = NOBODY,
    allowed: Allowance = NOTHING_BREAKS,
) -> str:
    """Rename a table, in any namespace; Iceberg views that name it refuse, follow or break."""
    table = await tables.get(catalog.database, id)
    target = NamedObject(table.id, table.identifier)
    return await _carry_out(
        catalog, _Rename("table", target, table_changes.rename_in), new, origin, allowed
    )


async def rename_view(
    catalog: Catalog,
    id: Identifier,
    new: Identifier,
    origin: Origin = NOBODY,
    allowed: Allowance = NOTHING_BREAKS,
) -> str:
    """Rename an Iceberg view, in any namespace; those that name it refuse, follow or break."""
    view = await iceberg_views.get(catalog.database, id)
    target = NamedObject(view.id, view.identifier)
    return await _carry_out(
        catalog, _Rename("view", target, iceberg_views.rename_in), new, origin, allowed
    )


async def _carry_out(
    catalog: Catalog, wanted: _Rename, new: Identifier, origin: Origin, allowed: Allowance
) -> str:
    target, database = wanted.target, catalog.database
    if allowed.force or new == target.identifier:
        return await database.write(wanted.change_in, target.identifier, new, origin)
    if not allowed.cascade:
        found = await graph.find_graph(catalog, [target], through_tables=False)
        named_by = [view.id for view in found.list_iceberg() if view.id != target.id]
        return await database.write(_rename, wanted, new, origin, named_by)
    await namespaces.get(database, new[:-1])
    await tables.check_free(database, new)
    direct = await iceberg_readers.find_readers(catalog, target)
    prepared = await following.follow_name(catalog, wanted.what, target, new, direct, origin)
    followers = Followers(iceberg=prepared)
    try:
        return await database.write(_rename_with, wanted, new, origin, followers)
    except PenstockError:
        await view_replacing.abandon(catalog, followers.iceberg)
        raise


async def _rename(
    tx: Transaction,
    wanted: _Rename,
    new: Identifier,
    origin: Origin,
    named_by: Sequence[str],
) -> str:
    done = await wanted.change_in(tx, wanted.target.identifier, new, origin)
    if named_by:
        raise TableInUse(
            f"{wanted.what} is read under this name by "
            f"{await dependents.tell(tx, named_by, origin)}",
            detail="use ?cascade=true to let them follow, or ?force=true to let them break",
        )
    return done


async def _rename_with(
    tx: Transaction, wanted: _Rename, new: Identifier, origin: Origin, followers: Followers
) -> str:
    await following.record_in(tx, wanted.what, followers, origin)
    return await wanted.change_in(tx, wanted.target.identifier, new, origin)
