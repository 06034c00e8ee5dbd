"""The tree of what depends on a table or on one of its columns, for people who plan a change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.impact import columns, graph
from penstock.catalog.impact.graph import Reader, ReaderGraph
from penstock.catalog.impact.iceberg_readers import NamedObject
from penstock.catalog.jobs import jobs
from penstock.catalog.materialized_views import materialized_views
from penstock.catalog.names import tables
from penstock.lance.columns.fields import get_field, parse_path
from penstock.model.origins import Origin
from penstock.model.rights import READ, Need
from penstock.model.tables import MAIN, Table

Kind = Literal["materialized_view", "iceberg_view", "computed_column"]


class Dependent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that depends on a table or column, and what depends on it in turn."""

    kind: Kind
    # Of a computed column, the table's.
    id: list[str]
    column: str | None = None
    # What it reads of what it depends on; empty when that is not known.
    columns: list[str] = []
    # Which changes of what it is listed under it would not survive: drop, rename, retype.
    breaks_on: list[str] = []
    # Jobs that work on it, or wait to.
    jobs: list[str] = []
    dependents: list["Dependent"] = []


class Dependents(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What depends on a table or column; `hidden` counts what the caller may not read."""

    dependents: list[Dependent]
    hidden: int = 0
    # Jobs that work on the table itself, or wait to.
    jobs: list[str] = []


@dataclass(slots=True)
class _Telling:
    """What a tree is made from, for one caller."""

    catalog: Catalog
    origin: Origin
    graph: ReaderGraph
    hidden: set[str]


async def find_dependents(
    catalog: Catalog, table: Table, column: str | None, origin: Origin
) -> Dependents:
    """What depends on a table, or on a column of its main branch."""
    target = NamedObject(table.id, table.identifier)
    telling = _Telling(catalog, origin, await graph.find_graph(catalog, [target]), set())
    paths = None if column is None else [await _find_path(catalog, table, column)]
    found = await _tell_table(telling, table, paths, frozenset([table.id]))
    working = await jobs.list_active(catalog.database, table.id)
    return Dependents(dependents=found, hidden=len(telling.hidden), jobs=working)


async def find_dependents_of_other(
    catalog: Catalog, target: NamedObject, origin: Origin
) -> Dependents:
    """What depends on an Iceberg view or table, whose columns nobody asks about."""
    telling = _Telling(catalog, origin, await graph.find_graph(catalog, [target]), set())
    found = await _tell_readers(telling, target.id, frozenset([target.id]))
    return Dependents(dependents=found, hidden=len(telling.hidden))


async def _find_path(catalog: Catalog, table: Table, column: str) -> str:
    return await datasets.read(
        catalog, table, MAIN, None, lambda dataset: get_field(dataset, column).path
    )


async def _tell_table(
    telling: _Telling, table: Table, paths: Sequence[str] | None, above: frozenset[str]
) -> list[Dependent]:
    """What reads a table, or these columns of it; nothing twice on the way down."""
    catalog = telling.catalog
    direct = [telling.graph.readers[id] for id in telling.graph.edges.get(table.id, ())]
    if paths is None:
        wanted = None
        computed = await columns.find_computed(catalog.database, table, MAIN, [()])
        reads: dict[str, tuple[str, ...]] = {}
    else:
        wanted = [parse_path(path) for path in paths]
        found = await columns.find_column_readers(catalog, table, MAIN, paths)
        computed = found.computed
        reads = found.views | {id: tuple(paths) for id in found.iceberg}
        direct = [reader for reader in direct if reader.id in reads]
    told = []
    for each in computed:
        mark = f"{table.id}.{each.name}"
        if mark not in above:
            below = await _tell_table(telling, table, [each.name], above | {mark})
            told.append(
                Dependent(
                    kind="computed_column",
                    id=list(table.identifier),
                    column=each.name,
                    columns=list(each.inputs),
                    # With its table it goes, and nothing is left to break.
                    breaks_on=[] if wanted is None else ["drop", "rename", "retype"],
                    dependents=[] if wanted is None else below,
                )
            )
    for reader in _list_nearest(telling.graph, direct):
        told += await _tell_reader(telling, reader, table.id, reads.get(reader.id), above)
    return told


def _list_nearest(found: ReaderGraph, readers: Sequence[Reader]) -> list[Reader]:
    """Readers without the materialized views that are told below one of their Iceberg views."""
    further = {id for reader in readers if reader.iceberg for id in found.edges.get(reader.id, ())}
    return [each for each in readers if each.iceberg is not None or each.id not in further]


async def _tell_readers(telling: _Telling, id: str, above: frozenset[str]) -> list[Dependent]:
    """What reads an Iceberg view or table."""
    direct = [telling.graph.readers[each] for each in telling.graph.edges.get(id, ())]
    return [
        told
        for each in _list_nearest(telling.graph, direct)
        for told in await _tell_reader(telling, each, id, None, above)
    ]


async def _tell_reader(
    telling: _Telling,
    reader: Reader,
    source: str,
    reads: Sequence[str] | None,
    above: frozenset[str],
) -> list[Dependent]:
    if reader.id in above:
        return []
    database, below_this = telling.catalog.database, above | {reader.id}
    may_read = await grants.may_in(
        database, telling.origin.grantees, Need(READ, reader.kind, reader.identifier)
    )
    if not may_read:
        telling.hidden.add(reader.id)
        telling.hidden |= {each.id for each in telling.graph.find_below([reader.id])}
        return []
    on_column = reads is not None
    if reader.iceberg is not None:
        told = Dependent(
            kind="iceberg_view",
            id=list(reader.identifier),
            columns=list(reads or ()),
            breaks_on=["drop", "rename", *(["retype"] if on_column else [])],
        )
        found = await _tell_readers(telling, reader.id, below_this)
        return [msgspec.structs.replace(told, dependents=found)]
    view = await tables.find_by_id(database, reader.id)
    if view is None:
        return []
    definition = (await materialized_views.load(database, view)).definition
    sources = [each for each in definition.sources if each.id == source]
    read = [path for each in sources for path in (*each.reads, *each.named)]
    told = Dependent(
        kind="materialized_view",
        id=list(reader.identifier),
        columns=list(read if reads is None else reads),
        # A table is known by its id, so that a new name breaks nothing.
        breaks_on=["drop", "rename", "retype"] if on_column else ["drop"],
        jobs=await jobs.list_active(database, reader.id),
        # It keeps its rows; what is below it only gets no new ones.
        dependents=await _tell_table(telling, view, None, below_this),
    )
    return [told]
