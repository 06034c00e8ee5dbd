"""The nodes of a lineage: what each is, whether it is up to date, and what it reads."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from penstock.catalog.columns.watermarks import find_covered, is_incomplete
from penstock.catalog.materialized_views import freshness, materialized_views
from penstock.catalog.materialized_views.freshness import Tracer
from penstock.catalog.names import tables
from penstock.catalog.names.search import MATERIALIZED, TABLE
from penstock.database.interface import Transaction
from penstock.model.functions import Function
from penstock.model.identifiers import Identifier, from_path
from penstock.model.tables import MAIN
from penstock.model.views import Definition

COLUMN = "column"
FRESH, STALE, LATE, UNFILLED, DISABLED = "fresh", "stale", "late", "unfilled", "disabled"
# From a node's key to another's, with the columns that are read on the way.
Edges = dict[tuple[str, str], set[str]]


@dataclass(frozen=True, slots=True)
class Link:
    """Something is read by something else."""

    source: str
    reader: str
    paths: Collection[str] = ()
    # Whether the way does not go on from there: a table's own columns, and what makes them.
    is_aside: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A table, view, function, or a column of a table; `object` is what rights are on."""

    kind: str
    id: str
    object: Identifier
    column: str = ""
    # Empty where nothing is computed, or it is not known.
    state: str = ""
    lag_seconds: float | None = None
    # The paths that it reads, by the ids of what they are in.
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # The ids of the functions with a name that make it.
    uses: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return key_of(self.id, self.column)


def key_of(id: str, column: str = "") -> str:
    """What a node is called within its graph."""
    return f"{id}.{column}" if column else id


async def describe_object(tracer: Tracer, id: str) -> Node | None:
    """The node of an object; None when it is gone."""
    row = await tracer.tx.fetch_one(
        "SELECT o.namespace, o.name, o.kind, f.disabled FROM objects o "
        "LEFT JOIN functions f ON f.id = o.id WHERE o.id = $1",
        id,
    )
    if row is None:
        return None
    namespace, name, kind, disabled = row
    node = Node(kind, id, (*from_path(namespace), name), state=DISABLED if disabled else "")
    if kind != TABLE:
        return node
    table = await tables.find_by_id(tracer.tx, id)
    if table is None or not table.is_view:
        return node if table is not None else None
    view = await materialized_views.load(tracer.tx, table)
    standing = await tracer.trace(view)
    state, lag = FRESH, None
    if standing.is_stale:
        lag = await freshness.find_lag_millis(tracer.tx, standing)
        target = view.target_lag_seconds
        is_late = lag is not None and target is not None and lag > target * 1000
        state = LATE if is_late else UNFILLED if view.watermark is None else STALE
    return replace(
        node,
        kind=MATERIALIZED,
        state=state,
        lag_seconds=None if lag is None else lag / 1000,
        reads={each.id: (*each.reads, *each.named) for each in view.definition.sources},
        uses=list_functions(view.definition),
    )


async def describe_column(tx: Transaction, table: Node, name: str) -> Node:
    """The node of a column of a table; what is known of it if it is computed."""
    node = Node(COLUMN, table.id, table.object, name)
    row = await tx.fetch_one(
        "SELECT c.inputs, c.function, c.watermarks, (SELECT max(v.version) FROM table_versions v "
        "WHERE v.table_id = c.table_id AND v.branch = c.branch) FROM columns c "
        "WHERE c.table_id = $1 AND c.branch = $2 AND c.name = $3",
        *(table.id, MAIN, name),
    )
    if row is None:
        return node
    inputs, text, watermarks, head = row
    covered = find_covered(watermarks, MAIN)
    is_behind = (head or 0) > (covered or 0) or is_incomplete(watermarks, MAIN)
    function = None if text is None else msgspec.json.decode(text, type=Function)
    return replace(
        node,
        state=UNFILLED if covered is None else STALE if is_behind else FRESH,
        reads={table.id: msgspec.json.decode(inputs, type=tuple[str, ...])},
        uses=_ids_of([function]),
    )


def list_functions(definition: Definition) -> tuple[str, ...]:
    """The ids of the functions with a name that make a view."""
    return _ids_of([definition.function, *definition.column_functions])


def _ids_of(functions: Collection[Function | None]) -> tuple[str, ...]:
    named = (each.registered for each in functions if each is not None)
    return tuple(dict.fromkeys(each.id for each in named if each is not None))


def lead_through_columns(nodes: Mapping[str, Node], edges: Edges) -> Edges:
    """Edges, and those from a computed column that is a node to whatever reads it of its table."""
    found = {pair: set(paths) for pair, paths in edges.items()}
    for (source, reader), paths in edges.items():
        for path in paths:
            key = key_of(source, path)
            if key in nodes and key != reader:
                found.setdefault((key, reader), set()).add(path)
    return found
