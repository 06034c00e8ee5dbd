"""What a view is made of, down to tables."""

from dataclasses import dataclass, field

from penstock.sdk.pictures.graph import Node, draw_graph
from penstock.sdk.pictures.markup import BUSY


@dataclass(frozen=True)
class Lineage:
    """What a view is made of: its tables, its columns, and the lineage of those that are views."""

    name: str
    kind: str
    query: str
    # Versions by table; None for one that it was never refreshed from.
    sources: dict[str, int | None]
    # The expression of each column, where the query is one of projections.
    columns: dict[str, str]
    upstream: dict[str, "Lineage"] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _repr_html_(self) -> str:
        nodes: dict[str, Node] = {}
        edges: list[tuple[str, str]] = []
        self._collect(nodes, edges)
        return draw_graph(list(nodes.values()), edges, f"what {self.name} is made of")

    def _collect(self, nodes: dict[str, Node], edges: list[tuple[str, str]]) -> None:
        for source, version in self.sources.items():
            edges.append((source, self.name))
            if source in self.upstream:
                self.upstream[source]._collect(nodes, edges)
            else:
                seen = "not read yet" if version is None else f"version {version}"
                nodes.setdefault(source, Node(source, f"table, {seen}"))
        nodes.setdefault(self.name, Node(self.name, f"view ({self.kind})", BUSY))

    def _lines(self, depth: int) -> list[str]:
        indent = "  " * depth
        found = [f"{indent}{self.name} ({self.kind})"]
        for source, version in self.sources.items():
            if source in self.upstream:
                found += self.upstream[source]._lines(depth + 1)
            else:
                at = "" if version is None else f" at version {version}"
                found.append(f"{indent}  {source}{at}")
        return found
