"""What depends on a table or a column, before somebody changes it."""

from typing import Annotated

import msgspec

from penstock.catalog.impact import tree
from penstock.catalog.impact.tree import Dependents
from penstock.catalog.names import tables
from penstock.server.lance.call import Body, Call

Column = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]


class FindDependents(Body):
    column: Column | None = None


_find = msgspec.json.Decoder(FindDependents)


async def find(call: Call) -> Dependents:
    body = call.decode(_find)
    table = await tables.get(call.catalog.database, call.id)
    return await tree.find_dependents(call.catalog, table, body.column, call.origin)
