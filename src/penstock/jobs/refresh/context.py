"""The types that all strategies of a refresh share: what it knows, plans and changes.

A strategy is a folder beside this module (`rows`, `keys`, `whole`, `chunks`, `udtf`) with a pair
of functions: `plan` works without Spark, so that a server can explain a refresh, and `run` on it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lance import LanceDataset

from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.specs import RefreshSpec
from penstock.lance.columns.fields import parse_path, show_path
from penstock.lance.diff.row_diff import Difference, compare
from penstock.lance.diff.row_sets import Ids, RowSet
from penstock.lance.session.remote import Location, RemoteCatalog
from penstock.lance.storage.lake import Place
from penstock.model.moments import define_at
from penstock.model.views import Definition, Source, Watermark

if TYPE_CHECKING:
    from penstock.jobs.refresh.chunks.plan import ChunkWork, UnsettledRows
    from penstock.jobs.refresh.iceberg.plan import AppendedRows
    from penstock.jobs.refresh.iceberg.versions import IcebergVersions
    from penstock.jobs.refresh.keys.plan import TouchedKeys
    from penstock.jobs.refresh.rows.plan import AllRows, SomeRows
    from penstock.jobs.refresh.udtf.plan import SparkPartitions, UdtfWork
    from penstock.jobs.spark.tasks import Engine

    PlannedWork: TypeAlias = (
        AllRows
        | SomeRows
        | AppendedRows
        | TouchedKeys
        | ChunkWork
        | UnsettledRows
        | UdtfWork
        | SparkPartitions
    )

# What happens to the view: nothing, an update, or a rebuild.
PlanMode = Literal["none", "incremental", "full"]


@dataclass(frozen=True, slots=True, eq=False)
class SourceVersions:
    """A source in the version that the view is to follow, and in the one that it follows now."""

    source: Source
    location: Location
    now: int
    dataset_now: LanceDataset
    # Both None when there is nothing to compare with; `Context.rebuild` says why.
    then: int | None = None
    dataset_then: LanceDataset | None = None
    # What columns were called then, by their names now.
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_same(self) -> bool:
        """Whether nothing at all happened to it."""
        return self.then == self.now

    def path_then(self, path: str) -> str:
        """What a field was called in the version that the view follows now."""
        root, *inside = parse_path(path)
        return show_path((self.names.get(root, root), *inside))

    def compare(self, paths: Sequence[str]) -> Difference:
        """Compare both versions; raises ColumnNotFound when one of them lacks a field."""
        assert self.dataset_then is not None
        paths_then = [self.path_then(path) for path in paths]
        return compare(self.dataset_now, self.dataset_then, paths, paths_then)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Context:
    """The input of a plan."""

    spec: RefreshSpec
    location: Location
    # The view as it is now.
    view: LanceDataset
    # The Lance tables by the sources' ids, in the order of the definition.
    sources: Mapping[str, SourceVersions]
    # The same of those that are Iceberg tables.
    iceberg: "Mapping[str, IcebergVersions]" = field(default_factory=dict)
    # The current time of its query; None when that does not read the clock.
    moment: int | None = None
    # Why the view must be rebuilt: a full refresh. "" when it can be followed; then every source
    # has a `dataset_then`, and stable row ids if its version changed.
    rebuild: str = ""

    @property
    def definition(self) -> Definition:
        """The view's definition at the moment of the refresh."""
        return define_at(self.spec.definition, self.moment)

    @property
    def definition_then(self) -> Definition:
        """The definition by which the view's rows were made, at the moment that it follows now.

        It has the names of then; `definition_before` is the same with those of now.
        """
        return define_at(self.spec.made_then, self._moment_then)

    @property
    def definition_before(self) -> Definition:
        """The definition that an alteration replaces, at the moment that the view follows now."""
        return define_at(self.spec.made_by, self._moment_then)

    @property
    def _moment_then(self) -> int | None:
        return self.moment if self.watermark is None else self.watermark.moment

    @property
    def watermark(self) -> Watermark | None:
        """The view's watermark; None when it is of no use."""
        return None if self.rebuild else self.spec.watermark

    @property
    def place(self) -> Place:
        return self.location.place()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Work(Context):
    """The input of a run."""

    catalog: RemoteCatalog
    attempt: Attempt
    # Called only when something has to be computed.
    get_engine: "Callable[[], Engine]"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A number that only a run can tell, and why."""

    because: str


Count = int | Unknown


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Plan:
    """What a refresh would do."""

    mode: PlanMode
    reason: str
    rows_to_insert: Count
    rows_to_update: Count
    rows_to_delete: Count
    function_calls: Count = 0
    # How many fragments of the sources are read.
    fragments: int = 0
    # What the strategy's own `run` needs from planning; None for all of the query.
    work: "PlannedWork | None" = None

    def to_json(self) -> dict[str, Any]:
        counts = {
            "rows_to_insert": self.rows_to_insert,
            "rows_to_update": self.rows_to_update,
            "rows_to_delete": self.rows_to_delete,
            "function_calls": self.function_calls,
        }
        return {
            "mode": self.mode,
            "reason": self.reason,
            **{name: n if isinstance(n, int) else None for name, n in counts.items()},
            "unknown": {name: n.because for name, n in counts.items() if isinstance(n, Unknown)},
            "fragments": self.fragments,
        }


def plan_nothing(reason: str) -> Plan:
    """The plan of a refresh that leaves the view as it is."""
    return Plan(mode="none", reason=reason, rows_to_insert=0, rows_to_update=0, rows_to_delete=0)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ViewChange:
    """What the commit of a refresh changes in the view."""

    # Ids of view rows (`_rowid`), in any order.
    removes: Ids | Literal["all"]
    # JSON of Lance's FragmentMetadata; files named and written by `jobs.refresh.row_files`.
    fragments: tuple[str, ...] = ()
    # A source row with new outputs is one update, however many view rows it has.
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    function_calls: int = 0
    # How many it would take to compute all of the view; None when nobody counted.
    calls_of_all: int | None = None
    # Source rows (or partitions, for a udtf) that the work went through: its progress, in full.
    rows_read: int = 0
    # Ids of source rows (or numbers of partitions) that a function failed on and that the next
    # refresh tries again: all of them, including those of earlier refreshes.
    failed: RowSet | None = None
    # Rows that move to a new fragment and differ in what a function made.
    alike: RowSet | None = None
    # The last row that `output_limit` admitted.
    cut: tuple[int, int] | None = None
    # Digests of partitions by label, for a udtf's query that Spark computes.
    partitions: Mapping[str, str] | None = None
    # Rows per core and second that functions were given.
    rate: float | None = None
