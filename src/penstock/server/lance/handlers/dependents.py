"""What depends on a table or a column, before somebody changes it."""

from typing import Annotated

import msgspec

from penstock.catalog.iceberg_tables import iceberg_tables
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.impact import tree
from penstock.catalog.impact.iceberg_readers import NamedObject
from penstock.catalog.impact.tree import Dependents
from penstock.catalog.names import tables
from penstock.errors import InvalidRequest, NotALanceTable, ViewIsNoTable
from penstock.server.lance.call import Body, Call

Column = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]


class FindDependents(Body):
    column: Column | None = None


_find = msgspec.json.Decoder(FindDependents)


async def find(call: Call) -> Dependents:
    body = call.decode(_find)
    database = call.catalog.database
    try:
        table = await tables.get(database, call.id)
    except (ViewIsNoTable, NotALanceTable) as error:
        if body.column is not None:
            raise InvalidRequest(
                f"{error.message}, and what reads a column of it is not known",
                detail="leave column out",
            ) from error
        is_view = isinstance(error, ViewIsNoTable)
        found = await (iceberg_views if is_view else iceberg_tables).get(database, call.id)
        target = NamedObject(found.id, found.identifier)
        return await tree.find_dependents_of_other(call.catalog, target, call.origin)
    return await tree.find_dependents(call.catalog, table, body.column, call.origin)
