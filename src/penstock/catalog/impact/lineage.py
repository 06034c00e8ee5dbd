"""The graph around a table, column, view or function: what it is made from, and what is made of it.

What the caller may not read is not in it, nor what is only reached through that.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.functions import function_uses
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.impact import columns, graph, iceberg_readers
from penstock.catalog.impact.graph import Reader
from penstock.catalog.impact.iceberg_readers import NamedObject
from penstock.catalog.impact.lineage_nodes import (
    Edges,
    Link,
    Node,
    describe_column,
    describe_object,
    key_of,
    lead_through_columns,
)
from penstock.catalog.materialized_views.freshness import Tracer
from penstock.catalog.names import dependents, tables, view_sources
from penstock.catalog.names.search import FUNCTION, MATERIALIZED, TABLE, VIEW
from penstock.lance.columns.fields import get_field
from penstock.model.identifiers import Identifier
from penstock.model.origins import Origin
from penstock.model.rights import READ, Need
from penstock.model.tables import MAIN

MAX_NODES, MAX_DEPTH = 500, 50
# The next things on the way from one, each with how they hang together.
Found = tuple[Node, Link]
Step = Callable[[Node], Awaitable[list[Found]]]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Nodes by their keys, edges from what is read to what reads it; whether there are more."""

    root: str
    nodes: dict[str, Node]
    edges: Edges
    is_cut: bool


@dataclass(frozen=True, slots=True)
class LineageRequest:
    """How far to go, and how many nodes to tell."""

    up: int = MAX_DEPTH
    down: int = MAX_DEPTH
    most: int = 200
    with_columns: bool = True


async def find_lineage(
    catalog: Catalog, root: NamedObject, column: str | None, asked: LineageRequest, origin: Origin
) -> Lineage:
    """The graph around an object, or around one of its columns."""
    walk = _Walk(catalog, asked, origin)
    start = await describe_object(walk.tracer, root.id)
    if start is None:
        raise tables.missing(root.identifier)
    if column is not None:
        start = await describe_column(
            catalog.database, start, await _find_path(catalog, root.id, column)
        )
    walk.told[start.key] = True
    walk.nodes[start.key] = start
    await walk.go(start, asked.up, walk.find_above)
    await walk.go(start, asked.down, walk.find_below)
    edges = lead_through_columns(walk.nodes, walk.edges)
    return Lineage(start.key, walk.nodes, edges, walk.is_cut)


async def _find_path(catalog: Catalog, table_id: str, column: str) -> str:
    """A column's path as the catalog writes it; raises when there is no such column."""
    table = await tables.find_by_id(catalog.database, table_id)
    assert table is not None
    return await datasets.read(
        catalog, table, MAIN, None, lambda dataset: get_field(dataset, column).path
    )


@dataclass(slots=True)
class _Walk:
    """What was found so far, for one caller."""

    catalog: Catalog
    asked: LineageRequest
    origin: Origin
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: Edges = field(default_factory=dict)
    is_cut: bool = False
    # Whether something is told, by its key.
    told: dict[str, bool] = field(default_factory=dict)
    # How many more nodes may be told.
    room: int = field(init=False)
    tracer: Tracer = field(init=False)

    def __post_init__(self) -> None:
        # One of them is where it begins.
        self.room = self.asked.most - 1
        self.tracer = Tracer(self.catalog.database)

    async def go(self, start: Node, depth: int, step: Step) -> None:
        """Follow one direction, nearest first."""
        new, seen = [start], {start.key}
        for _ in range(depth):
            found = list[Node]()
            for node in new:
                # SQLite answers at once: others get their turn here.
                await asyncio.sleep(0)
                for other, link in await step(node):
                    self.nodes.setdefault(other.key, other)
                    self.edges.setdefault((link.source, link.reader), set()).update(link.paths)
                    found += [] if other.key in seen or link.is_aside else [other]
                    seen.add(other.key)
            new = found
            if not new:
                return

    async def find_below(self, node: Node) -> list[Found]:
        """What reads this itself."""
        if node.kind == FUNCTION:
            return await self._find_users(node)
        if node.column:
            return await self._find_column_readers(node)
        readers = await graph.find_direct(self.catalog, NamedObject(node.id, node.object))
        found = await self._describe(await self._keep_nearest(readers))
        linked = [(each, Link(node.key, each.key, each.reads.get(node.id, ()))) for each in found]
        if self.asked.with_columns and node.kind in (TABLE, MATERIALIZED):
            linked += await self._list_columns(node, None)
        return linked

    async def find_above(self, node: Node) -> list[Found]:
        """What this reads itself, and the functions that make it."""
        if node.column:
            table = await self._describe([node.id])
            reads = node.reads.get(node.id, ())
            linked = [(each, Link(each.key, node.key, reads)) for each in table]
            return linked + await self._list_functions(node)
        if node.kind == VIEW:
            view = await iceberg_views.get_by_id(self.catalog.database, node.id)
            named = await iceberg_readers.find_sources(self.catalog, view)
            found = await self._describe([each.id for each in named])
            return [(each, Link(each.key, node.key)) for each in found]
        if node.kind == FUNCTION:
            return []
        linked = list[Found]()
        if node.kind == MATERIALIZED:
            linked += [
                (each, Link(each.key, node.key, node.reads.get(each.id, ())))
                for each in await self._describe(await self._list_own_sources(node.id))
            ]
            linked += await self._list_functions(node)
        if self.asked.with_columns:
            read = {
                path
                for (source, _), paths in self.edges.items()
                for path in paths
                if source == node.key
            }
            linked += await self._list_columns(node, read)
        return linked

    async def _keep_nearest(self, readers: Sequence[Reader]) -> list[str]:
        """Readers without the materialized views that read one of its Iceberg views.

        A materialized view is recorded with the tables below the Iceberg views that it reads.
        """
        further = {
            id
            for each in readers
            if each.iceberg is not None
            for id in await view_sources.list_readers(self.catalog.database, each.id)
        }
        return [each.id for each in readers if each.iceberg is not None or each.id not in further]

    async def _list_own_sources(self, view_id: str) -> list[str]:
        """What a materialized view reads without what it reads through its Iceberg views."""
        database = self.catalog.database
        ids = await view_sources.list_sources(database, view_id)
        through = set[str]()
        for id, _, kind in await dependents.list_named(database, ids):
            if kind == VIEW:
                view = await iceberg_views.get_by_id(database, id)
                named = await iceberg_readers.find_sources(self.catalog, view)
                through |= {each.id for each in named}
        return [id for id in ids if id not in through]

    async def _list_functions(self, user: Node) -> list[Found]:
        found = await self._describe(user.uses)
        return [(each, Link(each.key, user.key, is_aside=True)) for each in found]

    async def _list_columns(self, table: Node, only: Collection[str] | None) -> list[Found]:
        """The computed columns of a table, or some of them, with their functions."""
        rows = await self.catalog.database.fetch(
            "SELECT name FROM columns WHERE table_id = $1 AND branch = $2 ORDER BY name",
            *(table.id, MAIN),
        )
        found = list[Found]()
        for row in rows:
            if only is not None and row[0] not in only:
                continue
            column = await self._describe_column(table, row[0])
            if column is None:
                break
            reads = column.reads.get(table.id, ())
            found.append((column, Link(table.key, column.key, reads, is_aside=True)))
            found += await self._list_functions(column)
        return found

    async def _find_column_readers(self, column: Node) -> list[Found]:
        table = await tables.find_by_id(self.catalog.database, column.id)
        if table is None:
            return []
        read = await columns.find_column_readers(self.catalog, table, MAIN, [column.column])
        found = list[Node]()
        for each in read.computed:
            if each.name != column.column and (
                other := await self._describe_column(column, each.name)
            ):
                found.append(other)
        found += await self._describe([*read.iceberg, *read.views])
        return [(each, Link(column.key, each.key, (column.column,))) for each in found]

    async def _find_users(self, function: Node) -> list[Found]:
        """The columns and views that a function makes."""
        uses = await function_uses.list_uses(self.catalog.database, function.id)
        users = {each.id: each for each in await self._describe([u.object_id for u in uses])}
        found = list[Found]()
        for use in uses:
            user = users.get(use.object_id)
            if user is not None and use.column and self.asked.with_columns:
                user = await self._describe_column(user, use.column)
            if user is not None:
                found.append((user, Link(function.key, user.key)))
        return found

    async def _describe(self, ids: Sequence[str]) -> list[Node]:
        """The nodes of those that are told: which the caller may read, while there is room."""
        new = [id for id in dict.fromkeys(ids) if id not in self.told]
        for id, name, kind in await dependents.list_named(self.catalog.database, new):
            self._admit(id, await self._may_read(kind, name))
        found = []
        for id in dict.fromkeys(ids):
            node = self.nodes.get(id)
            if node is None and self.told.get(id):
                node = await describe_object(self.tracer, id)
            found += [] if node is None else [node]
        return found

    async def _describe_column(self, table: Node, name: str) -> Node | None:
        """The node of a column of a table that is told; None when there is no room for it."""
        key = key_of(table.id, name)
        if not self._admit(key, self.told.get(key, True)):
            return None
        return await describe_column(self.catalog.database, table, name)

    def _admit(self, key: str, may_read: bool) -> bool:
        """Decide whether something is told; only what could be told makes the graph a part."""
        if key not in self.told:
            has_room = self.room > 0
            self.is_cut |= may_read and not has_room
            self.told[key] = may_read and has_room
            self.room -= self.told[key]
        return self.told[key]

    async def _may_read(self, kind: str, name: Identifier) -> bool:
        need = Need(READ, kind, name)
        return await grants.may_in(self.catalog.database, self.origin.grantees, need)
