"""How views follow Iceberg tables, whose rows have no ids: by appends, or as a whole."""

from dataclasses import replace

from penstock.errors import InvalidRequest
from penstock.model.identifiers import show
from penstock.model.views import Appends
from penstock.sql.definitions.parsed_query import ParsedQuery
from penstock.sql.definitions.requests import ViewRequest

SEVERAL = "the query joins, groups or compares rows"


def check_readable(request: ViewRequest, found: ParsedQuery) -> None:
    """Refuse what only works with rows that have ids."""
    names = [show(table.identifier) for table, _, _ in found.tables if table.is_iceberg]
    if not names:
        return
    if request.kind != "query":
        raise InvalidRequest(
            f"a {request.kind} view needs rows with ids, and {names[0]} is an Iceberg table",
            detail="make a view of kind 'query' of it, and read that view",
        )
    if found.language == "lance":
        raise InvalidRequest(
            f"Lance's SQL reads Lance tables, and {names[0]} is an Iceberg table",
            detail='send {"sql": …, "dialect": "spark"}; for functions, make a view of kind '
            "'query' of the table, and read that view",
        )


def follow_iceberg(found: ParsedQuery) -> tuple[ParsedQuery, Appends | None]:
    """The query as one that Spark computes as a whole, and how appended rows are new rows of it."""
    names = [show(table.identifier) for table, _, _ in found.tables if table.is_iceberg]
    if not names:
        return found, None
    as_whole = replace(found, shape="whole", keys=None)
    if found.shape == "rows" and found.limit is None and found.clock is None:
        return replace(as_whole, obstacle=""), Appends(found.filters is not None)
    reason = found.obstacle or SEVERAL
    if found.shape == "rows":
        reason = "the query has a LIMIT" if found.limit is not None else "it reads the clock"
    return replace(as_whole, obstacle=f"{names[0]} is an Iceberg table, and {reason}"), None
