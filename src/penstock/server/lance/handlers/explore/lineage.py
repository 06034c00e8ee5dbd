"""The graph around a table, column, view or function."""

from typing import Annotated

import msgspec

from penstock.catalog.functions import functions
from penstock.catalog.iceberg_tables import iceberg_tables
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.impact.iceberg_readers import NamedObject
from penstock.catalog.impact.lineage import (
    MAX_DEPTH,
    MAX_NODES,
    Lineage,
    LineageRequest,
    find_lineage,
)
from penstock.catalog.impact.lineage_nodes import Node
from penstock.catalog.names import tables
from penstock.catalog.names.search import name_kind
from penstock.errors import InvalidRequest, NotALanceTable, ViewIsNoTable
from penstock.server.lance.call import Body, Call

Column = Annotated[str, msgspec.Meta(min_length=1, max_length=2000, pattern="^[^\\x00]*$")]
DEFAULT_NODES = 200
Depth = Annotated[int, msgspec.Meta(ge=0, le=MAX_DEPTH)]


class FindLineage(Body):
    column: Column | None = None
    up: Depth | None = None
    down: Depth | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_NODES)] | None = None
    columns: bool | None = None


class ShownNode(msgspec.Struct, omit_defaults=True):
    key: str
    kind: str
    id: list[str]
    column: str = ""
    state: str = ""
    lag_seconds: float | None = None


class ShownEdge(msgspec.Struct, omit_defaults=True):
    source: str = msgspec.field(name="from")
    reader: str = msgspec.field(name="to")
    columns: list[str] = []


class ShownLineage(msgspec.Struct):
    root: str
    nodes: list[ShownNode]
    edges: list[ShownEdge]
    # Whether there are more nodes than were asked for.
    cut: bool


_find = msgspec.json.Decoder(FindLineage)


async def find(call: Call) -> ShownLineage:
    """What a table or view of either kind is made from, and what is made of it."""
    body, database = call.decode(_find), call.catalog.database
    try:
        table = await tables.get(database, call.id)
        root = NamedObject(table.id, table.identifier)
    except (ViewIsNoTable, NotALanceTable) as error:
        if body.column is not None:
            raise InvalidRequest(
                f"{error.message}, and what reads a column of it is not known",
                detail="leave column out",
            ) from error
        is_view = isinstance(error, ViewIsNoTable)
        found = await (iceberg_views if is_view else iceberg_tables).get(database, call.id)
        root = NamedObject(found.id, found.identifier)
    return _show(await _ask(call, root, body))


async def find_of_function(call: Call) -> ShownLineage:
    """What a function with a name makes."""
    body = call.decode(_find)
    if body.column is not None:
        raise InvalidRequest("a function has no columns", detail="leave column out")
    found = await functions.get(call.catalog.database, call.id)
    return _show(await _ask(call, NamedObject(found.function_id, call.id), body))


async def _ask(call: Call, root: NamedObject, body: FindLineage) -> Lineage:
    asked = LineageRequest(
        MAX_DEPTH if body.up is None else body.up,
        MAX_DEPTH if body.down is None else body.down,
        body.limit or DEFAULT_NODES,
        body.columns is not False,
    )
    return await find_lineage(call.catalog, root, body.column, asked, call.origin)


def _show(found: Lineage) -> ShownLineage:
    """By short keys: the ids of objects are nobody's business."""
    keys = {key: f"n{number}" for number, key in enumerate(found.nodes)}
    nodes = [_show_node(keys[key], node) for key, node in found.nodes.items()]
    edges = [
        ShownEdge(keys[source], keys[reader], sorted(paths))
        for (source, reader), paths in found.edges.items()
    ]
    return ShownLineage(keys[found.root], nodes, edges, found.is_cut)


def _show_node(key: str, node: Node) -> ShownNode:
    kind, id = name_kind(node.kind), list(node.object)
    return ShownNode(key, kind, id, node.column, node.state, node.lag_seconds)
