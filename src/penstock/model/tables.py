"""Tables and their versions as the catalog knows them."""

from dataclasses import dataclass, field

from penstock.model.identifiers import Identifier, show

MAIN = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One Lance table: its identity, its location, and who arbitrates its commits."""

    id: str
    namespace: Identifier
    name: str
    location: str
    managed: bool
    properties: dict[str, str]
    # Whether any column of any branch is known to be computed.
    has_bound_columns: bool = False
    # Whether it belongs to a materialized view, whose rows only a refresh writes.
    is_view: bool = False

    @property
    def identifier(self) -> Identifier:
        return (*self.namespace, self.name)

    def __str__(self) -> str:
        return show(self.identifier)


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One committed version; paths are relative to the table's location."""

    version: int
    manifest_path: str
    manifest_size: int
    timestamp_millis: int
    e_tag: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    staged_path: str = ""
    settled: bool = True
    transaction_id: str = ""
    # Its record was deleted, and is only kept because it is the newest.
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions from `start` up to, not including, `end`; None is no bound."""

    start: int
    end: int | None
