"""Plan any other query: recomputed as a whole, unless nothing that it reads has changed."""

from penstock.errors import ColumnNotFound, InvalidRequest
from penstock.jobs.refresh.context import Context, Plan, SourceVersions, Unknown, plan_nothing


def plan(context: Context) -> Plan:
    """Compute everything, or nothing."""
    if context.rebuild:
        return plan_all(context, context.rebuild)
    changed = [each for each in context.sources.values() if has_changed(each)]
    if not changed:
        return plan_nothing("nothing that the query reads has changed")
    names = ", ".join("$".join(each.source.table) for each in changed)
    obstacle = context.definition.obstacle
    return plan_all(context, f"{names} changed" + (f", and {obstacle}" if obstacle else ""))


def plan_all(context: Context, reason: str) -> Plan:
    """Recompute the view."""
    if context.spec.mode == "incremental":
        raise InvalidRequest(
            f"{'$'.join(context.spec.table)} cannot be refreshed incrementally: {reason}",
            detail="leave mode out, or set it to full",
        )
    return Plan(
        mode="full",
        reason=reason,
        rows_to_insert=Unknown("only computing the query tells how many rows it has"),
        rows_to_update=0,
        rows_to_delete=context.view.count_rows(),
        fragments=sum(len(each.dataset_now.get_fragments()) for each in context.sources.values()),
    )


def has_changed(source: SourceVersions) -> bool:
    """Whether any row was added, deleted, or changed in a column that is read."""
    if source.is_same:
        return False
    try:
        found = source.compare(source.source.reads)
    except ColumnNotFound:
        return True
    return not found.is_empty
