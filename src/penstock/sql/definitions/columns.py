"""The columns that a query gives, for a view that keeps none of its rows."""

from collections.abc import Mapping

from penstock.errors import InvalidRequest
from penstock.model.identifiers import Identifier
from penstock.sql.definitions.iceberg_types import Json, to_iceberg
from penstock.sql.definitions.lance import read_lance
from penstock.sql.definitions.outputs import make_schema
from penstock.sql.definitions.queries import read_sql
from penstock.sql.definitions.refusals import refuse
from penstock.sql.definitions.requests import Query, SourceTable, ViewRequest
from penstock.sql.definitions.schemas import read_schema
from penstock.sql.definitions.spark import read_spark
from penstock.sql.definitions.tables import get_known
from penstock.sql.definitions.untyped import UntypedQuery, read_untyped, take_types
from penstock.sql.lance import over_rows
from penstock.sql.results import Refusal


def find_columns(
    query: Query, tables: Mapping[Identifier, SourceTable], typed: str | None = None
) -> Json:
    """The query's columns as Iceberg knows them; `typed` has those that only Spark can type.

    Raises TypesUnknown when there are such, and InvalidRequest when a view can't have them.
    """
    schema = None if typed is None else read_schema(typed)
    found = take_types(read_spark(query, get_known(query, tables), None), schema)
    seen: set[str] = set()
    for place, output in enumerate(found.outputs, 1):
        if not output.name:
            raise InvalidRequest(
                f"column {place} of the query has no name", detail="give it one with AS"
            )
        # To Spark, names that differ only in case are one.
        if output.name.lower() in seen:
            raise InvalidRequest(
                f"the query has two columns called {output.name}", detail="rename one with AS"
            )
        seen.add(output.name.lower())
    columns = [(each.name, each.type) for each in found.outputs]
    return to_iceberg(make_schema([], columns, None, None))


def ask_for_types(query: Query, tables: Mapping[Identifier, SourceTable]) -> UntypedQuery | None:
    """What to ask Spark about columns whose types are not known otherwise."""
    return read_untyped(ViewRequest(kind="query", query=query), tables)


def write_spark(query: Query, tables: Mapping[Identifier, SourceTable]) -> str:
    """A query in Lance's SQL as one in Spark's, with full names; refused unless they are alike."""
    found = read_lance(query, get_known(query, tables), None)
    table = found.tables[0][0]
    outputs = tuple((each.name, each.texts["lance"]) for each in found.outputs)
    where = None if found.filters is None else found.filters["lance"]
    text = over_rows.to_spark(over_rows.Selection(outputs, where), table.identifier)
    if isinstance(text, Refusal):
        raise refuse(text)
    text += "" if found.limit is None else f" LIMIT {found.limit}"
    again = read_sql(text, "spark", ())
    spark = read_spark(again, get_known(again, tables), None)
    pairs = [
        (each.texts, other.texts) for each, other in zip(found.outputs, spark.outputs, strict=True)
    ]
    pairs += [] if found.filters is None else [(found.filters, spark.filters or {})]
    for lance, other in pairs:
        if not over_rows.are_alike(lance["lance"], other.get("lance")):
            raise InvalidRequest(
                f"{lance['lance'][:100]} may be something else to Spark than to Lance",
                detail="write the query in Spark's SQL, or make a materialized view of it",
            )
    return text
