"""What a refresh knows, plans and changes: the types that all strategies share.

A strategy is a folder beside this module (`rows`, `groups`, `whole`, `chunks`, `udtf`) with a pair
of functions. Its `plan` touches no Spark, so that a server can explain a refresh; its `run` does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.jobs.engine.attempt import Attempt
from penstock.lance.session.remote import Location, RemoteCatalog
from penstock.lance.storage.lake import Place
from penstock.model.views import Definition, RefreshSpec, Source, Watermark

if TYPE_CHECKING:
    from lance import LanceDataset

    from penstock.jobs.refresh.chunks.plan import ChunkWork, Unsettled
    from penstock.jobs.refresh.groups.plan import Touched
    from penstock.jobs.refresh.rows.plan import Everything, Some
    from penstock.jobs.refresh.udtf.plan import UdtfWork
    from penstock.jobs.spark.tasks import Engine
    from penstock.lance.diff.row_sets import Ids, RowSet

# What is done to the view: nothing, what changed, or everything.
PlanMode = Literal["none", "incremental", "full"]


@dataclass(frozen=True, slots=True, eq=False)
class SourceAt:
    """A source in the version that the view is to follow, and in the one that it follows."""

    source: Source
    location: Location
    now: int
    dataset_now: "LanceDataset"
    # Both None when there is nothing to compare with; `Context.rebuild` says why.
    then: int | None = None
    dataset_then: "LanceDataset | None" = None

    @property
    def is_same(self) -> bool:
        """Whether nothing at all happened to it."""
        return self.then == self.now


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Context:
    """What a plan is made from."""

    spec: RefreshSpec
    location: Location
    # The view as it is now.
    view: "LanceDataset"
    # By the sources' ids, in the order of the definition.
    sources: Mapping[str, SourceAt]
    # Why nothing that the view holds can be used: a full refresh. "" when it can be followed, and
    # then every source has a `dataset_then`, and stable row ids if it is another version.
    rebuild: str = ""

    @property
    def definition(self) -> Definition:
        return self.spec.definition

    @property
    def watermark(self) -> Watermark | None:
        """What the view is now; None when that is of no use."""
        return None if self.rebuild else self.spec.watermark

    @property
    def place(self) -> Place:
        return self.location.place()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Work(Context):
    """What a plan is run with."""

    catalog: RemoteCatalog
    attempt: Attempt
    # Asked for only when something has to be computed.
    get_engine: "Callable[[], Engine]"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Plan:
    """What a refresh would do; None stands for a number that only running tells."""

    mode: PlanMode
    reason: str
    rows_to_insert: int | None = None
    rows_to_update: int | None = None
    rows_to_delete: int | None = None
    function_calls: int | None = 0
    # Of the sources: those whose rows are read.
    fragments: int = 0
    # What the strategy's own `run` needs, found out while planning; None for all of the query.
    work: "Everything | Some | Touched | ChunkWork | Unsettled | UdtfWork | None" = None

    def to_json(self) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "reason": self.reason,
            "rows_to_insert": self.rows_to_insert,
            "rows_to_update": self.rows_to_update,
            "rows_to_delete": self.rows_to_delete,
            "function_calls": self.function_calls,
            "fragments": self.fragments,
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Change:
    """What the commit of a refresh does to the view."""

    # Ids of the view's own rows (its `_rowid`), in any order.
    removes: "Ids | Literal['all']"
    # JSON of Lance's FragmentMetadata; files as `jobs.refresh.row_files` names and writes them.
    fragments: tuple[str, ...] = ()
    # A row of a source that has other outputs now is one update, however many view rows it has.
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    function_calls: int = 0
    # Ids of source rows (or numbers of partitions) that a function failed on, and that it is tried
    # on again by the next refresh: all of them, also those of earlier refreshes.
    failed: "RowSet | None" = None
    # The last row that `output_limit` let in.
    cut: tuple[int, int] | None = None
    # Rows that a core gave to functions in a second.
    rate: float | None = None
