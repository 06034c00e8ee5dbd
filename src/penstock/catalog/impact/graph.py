"""Who reads what, also by way of others: materialized views as recorded, Iceberg views by name."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.catalog.impact import iceberg_readers
from penstock.catalog.impact.iceberg_readers import NamedObject
from penstock.catalog.names import dependents, view_sources
from penstock.model.identifiers import Identifier
from penstock.model.rights import TABLE, VIEW


@dataclass(frozen=True, slots=True)
class Reader:
    """A view that reads something; `iceberg` is its record if it is an Iceberg view."""

    id: str
    identifier: Identifier
    iceberg: IcebergView | None = None

    @property
    def kind(self) -> str:
        """The kind of object that grants are on."""
        return TABLE if self.iceberg is None else VIEW


@dataclass(slots=True)
class ReaderGraph:
    """The readers that were found, and the ids of those that read each thing themselves."""

    readers: dict[str, Reader] = field(default_factory=dict)
    edges: dict[str, list[str]] = field(default_factory=dict)

    def list_iceberg(self) -> list[IcebergView]:
        return [each.iceberg for each in self.readers.values() if each.iceberg is not None]

    def find_below(self, ids: Iterable[str]) -> Iterator[Reader]:
        """All that read one of these, nearest first."""
        seen, new = set(ids), list(ids)
        while new:
            direct = [reader for id in new for reader in self.edges.get(id, ())]
            new = [each for each in dict.fromkeys(direct) if each not in seen]
            seen |= set(new)
            yield from (self.readers[each] for each in new)


async def find_graph(
    catalog: Catalog, targets: Collection[NamedObject], *, through_tables: bool = True
) -> ReaderGraph:
    """Everything that reads one of the targets, directly or by way of others.

    Without `through_tables`, what materialized views feed is left out: they keep their rows
    whatever happens to their sources.
    """
    graph, new = ReaderGraph(), list(targets)
    known = {each.id for each in targets}
    while new:
        target = new.pop(0)
        readers = await find_direct(catalog, target)
        graph.edges[target.id] = [each.id for each in readers]
        for reader in readers:
            graph.readers.setdefault(reader.id, reader)
            if reader.id not in known and (through_tables or reader.iceberg is not None):
                new.append(NamedObject(reader.id, reader.identifier))
            known.add(reader.id)
    return graph


async def find_direct(catalog: Catalog, target: NamedObject) -> list[Reader]:
    iceberg = await iceberg_readers.find_readers(catalog, target)
    named = [Reader(view.id, view.identifier, view) for view in iceberg]
    ids = await view_sources.list_readers(catalog.database, target.id)
    listed = await dependents.list_named(catalog.database, ids)
    return named + [Reader(id, name) for id, name, _ in listed]
