"""Rename a table, after a look at the Iceberg views that know it by its name.

Materialized views know it by its id, and need no look.
"""

from collections.abc import Sequence

from penstock.catalog.catalog import Catalog
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


async def rename(
    catalog: Catalog,
    id: Identifier,
    new: Identifier,
    origin: Origin = NOBODY,
    allowed: Allowance = NOTHING_BREAKS,
) -> str:
    """Rename a table, in any namespace; Iceberg views that name it refuse, follow or break."""
    if allowed.force:
        return await catalog.database.write(table_changes.rename_in, id, new, origin)
    table = await tables.get(catalog.database, id)
    target = NamedObject(table.id, table.identifier)
    if not allowed.cascade:
        found = await graph.find_graph(catalog, [target], through_tables=False)
        named_by = [view.id for view in found.list_iceberg()]
        return await catalog.database.write(_rename, id, new, origin, named_by)
    await namespaces.get(catalog.database, new[:-1])
    await tables.check_free(catalog.database, new)
    direct = await iceberg_readers.find_readers(catalog, target)
    followers = Followers(iceberg=await following.follow_table(catalog, table, new, direct, origin))
    try:
        return await catalog.database.write(_rename_with, id, new, origin, followers)
    except PenstockError:
        await view_replacing.abandon(catalog, followers.iceberg)
        raise


async def _rename(
    tx: Transaction, id: Identifier, new: Identifier, origin: Origin, named_by: Sequence[str]
) -> str:
    done = await table_changes.rename_in(tx, id, new, origin)
    if named_by:
        raise TableInUse(
            f"table {show(id)} is read under this name by "
            f"{await dependents.tell(tx, named_by, origin)}",
            detail="use ?cascade=true to let them follow, or ?force=true to let them break",
        )
    return done


async def _rename_with(
    tx: Transaction, id: Identifier, new: Identifier, origin: Origin, followers: Followers
) -> str:
    await following.record_in(tx, f"table {show(id)}", followers, origin)
    return await table_changes.rename_in(tx, id, new, origin)
