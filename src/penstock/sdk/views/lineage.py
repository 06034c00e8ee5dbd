"""What a view is made of, down to tables."""

from dataclasses import dataclass, field


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
