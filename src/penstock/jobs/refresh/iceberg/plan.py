"""Plan views of Iceberg tables: append what was appended, or recompute the whole view."""

from dataclasses import dataclass

from penstock.iceberg.tables.changes import count_added, count_rows, find_appended
from penstock.jobs.refresh.context import Context, Count, Plan, Unknown, plan_nothing
from penstock.jobs.refresh.iceberg.versions import IcebergVersions
from penstock.jobs.refresh.whole import plan as whole


@dataclass(frozen=True, slots=True)
class AppendedRows:
    """The rows of the view's only table that these snapshots added; `rows` is None if unknown."""

    snapshots: tuple[int, ...]
    rows: int | None


def plan(context: Context) -> Plan:
    """Find what happened to the tables since the view followed them."""
    if context.rebuild:
        return _plan_all(context, context.rebuild)
    changed = [each for each in context.iceberg.values() if not each.is_same]
    others = [each for each in context.sources.values() if whole.has_changed(each)]
    if not changed and not others:
        return plan_nothing("nothing that the query reads has changed")
    if context.definition.appends is None:
        sources = [*(each.source for each in changed), *(each.source for each in others)]
        names = ", ".join("$".join(each.table) for each in sources)
        return _plan_all(context, f"{names} changed, and {context.definition.obstacle}")
    return _plan_appended(context, changed[0])


def _plan_appended(context: Context, table: IcebergVersions) -> Plan:
    assert table.then is not None
    found = find_appended(table.document, table.then)
    if isinstance(found, str):
        return _plan_all(context, f"{'$'.join(table.source.table)} changed, and {found}")
    added = count_added(found)
    return Plan(
        mode="incremental",
        reason=f"{'the' if added is None else added} rows of the table are new",
        rows_to_insert=_count(context, added),
        rows_to_update=0,
        rows_to_delete=0,
        work=AppendedRows(tuple(each["snapshot-id"] for each in found), added),
    )


def _plan_all(context: Context, reason: str) -> Plan:
    made = whole.plan_all(context, reason)
    if context.definition.appends is None:
        return made
    (table,) = context.iceberg.values()
    return Plan(
        mode=made.mode,
        reason=made.reason,
        rows_to_insert=_count(context, count_rows(table.document)),
        rows_to_update=0,
        rows_to_delete=made.rows_to_delete,
    )


def _count(context: Context, rows: int | None) -> Count:
    assert context.definition.appends is not None
    if context.definition.appends.is_filtered:
        return Unknown("only Spark evaluates the query's filter")
    return Unknown("the table's snapshots do not tell how many rows") if rows is None else rows
