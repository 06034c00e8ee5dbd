"""What has come to stand in the way of an alteration since it was requested.

Asked when its job begins, and in the transaction of its commit. Indexes and computed columns of the
view are the job's: its commit fits no view that got others meanwhile.
"""

from collections.abc import Collection, Sequence

from penstock.catalog.impact.view_reads import find_views
from penstock.catalog.names import dependents
from penstock.database.interface import Transaction
from penstock.errors import TableInUse
from penstock.jobs.refresh.altering.changes import find_broken
from penstock.model.origins import Origin
from penstock.model.tables import Table
from penstock.model.views import Definition


async def lock_in(tx: Transaction, table: Table, sources: Collection[str]) -> None:
    """Hold off, on PostgreSQL, what else may break a view or close a circle until the end."""
    await tx.fetch("UPDATE objects SET id = id WHERE id = $1", table.id)
    below = await dependents.find_sources(tx, sources)
    # In one order, so that alterations that close a circle together wait for each other.
    for id in sorted({table.id, *sources, *below}):
        await tx.fetch("UPDATE materialized_views SET edition = edition WHERE id = $1", id)


async def check_in(
    tx: Transaction,
    table: Table,
    sources: Collection[str],
    before: Definition,
    after: Definition,
    origin: Origin,
) -> None:
    """Refuse what has come to be since the request: a circle, or a view that would break."""
    if table.id in {*sources, *await dependents.find_sources(tx, sources)}:
        raise TableInUse(
            f"{table} would read itself: a view that its new query reads was altered meanwhile",
            detail="alter one of the two so that it does not read the other",
        )
    broken = find_broken(before, after)
    if broken and (views := await find_views(tx, table.id, [(name,) for name in broken])):
        raise await refuse(tx, broken, [*views], origin)


async def refuse(
    tx: Transaction, broken: Sequence[str], views: Sequence[str], origin: Origin
) -> TableInUse:
    """The refusal of an alteration that breaks some views."""
    told = await dependents.tell(tx, views, origin)
    return TableInUse(
        f"column {', '.join(broken)} would be dropped or get another type, and it is read by "
        f"{told}",
        detail="alter or drop these first, or keep the column in the query as it is",
    )
