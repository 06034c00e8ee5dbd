"""The kinds of jobs, a row each, and what each is asked for: its spec, for server and runner alike.

A server makes a spec when a job is requested, and completes it when the job is leased; a runner
decodes it once. In between it is stored as JSON, so a new field needs a default: jobs that the
release before has queued must still decode.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import msgspec
from msgspec import Struct

from penstock.errors import InvalidRequest, Unsupported
from penstock.jobs.backfill.plan import BackfillOptions, Watermark
from penstock.model.functions import Function, Needs
from penstock.model.jobs import Value
from penstock.model.views import CheckedSql, Definition, FollowedRename, IcebergState, Mode
from penstock.model.views import Watermark as ViewWatermark
from penstock.sql.statements import Statement


class JobSpec(Struct, frozen=True, kw_only=True):
    """What the specs of all kinds have: the table, and what each task needs."""

    table: tuple[str, ...]
    table_id: str = ""
    resources: Needs | None = None


class ColumnSpec(JobSpec, frozen=True, kw_only=True):
    """A bound column of a table, and by what it is filled: an expression or a function."""

    column: str
    branch: str = ""
    expression: str | None = None
    # The expression as it was declared, if its inputs got other names since.
    declared: str | None = None
    inputs: tuple[str, ...] = ()
    # As descriptions show it.
    data_type: dict[str, Any] = {}
    where: str | None = None
    read_version: int | None = None
    watermark: Watermark | None = None
    # For functions: all columns that it fills, and their watermarks, newest first.
    function: Function | None = None
    columns: tuple[str, ...] = ()
    binding: str = ""
    watermarks: tuple[Watermark, ...] = ()
    errors_only: bool = False

    @property
    def function_identity(self) -> str | None:
        return None if self.function is None else self.function.identity

    @property
    def declared_expression(self) -> str | None:
        return self.declared or self.expression

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns' names when the job was leased."""
        return self.columns or (self.column,)

    @property
    def known_watermarks(self) -> tuple[Watermark, ...]:
        return self.watermarks or (() if self.watermark is None else (self.watermark,))


class BackfillSpec(ColumnSpec, frozen=True, kw_only=True):
    """Fill a column."""

    # How much to do, in which pieces, and whether to compute fresh rows as well.
    num_frags: int | None = None
    task_size: int | None = None
    concurrency: int | None = None
    commit_granularity: int | None = None
    force: bool = False
    # For functions: how many rows are given at once, and how long values may be in memory only.
    intra_applier_concurrency: int | None = None
    checkpoint_size: int | None = None
    min_checkpoint_size: int | None = None
    max_checkpoint_size: int | None = None
    batch_checkpoint_flush_interval_seconds: float | None = None

    @property
    def is_partial(self) -> bool:
        """Whether only some rows are asked for."""
        limits = self.where, self.num_frags, self.read_version
        return self.errors_only or any(limit is not None for limit in limits)

    def to_options(self, job: str = "") -> BackfillOptions:
        """The options that decide a job's plan; without a job it is only explained."""
        return BackfillOptions(
            expression=self.declared_expression,
            function=self.function_identity,
            binding=self.binding,
            where=self.where,
            num_frags=self.num_frags,
            task_size=self.task_size,
            concurrency=self.concurrency,
            commit_granularity=self.commit_granularity,
            force=self.force,
            job=job,
        )


class AnalysisSpec(JobSpec, frozen=True, kw_only=True):
    """Type a query over tables of which only the columns are known."""

    table: tuple[str, ...] = ()
    sql: CheckedSql
    # Base64 of an Arrow schema of the columns that are read, by the table's name in `sql`.
    schemas: dict[str, str]


class StatementSpec(JobSpec, frozen=True, kw_only=True):
    """Run a statement, and send its rows to the server."""

    table: tuple[str, ...] = ()
    statement: Statement
    # Keeps so many rows; more than the others is an error.
    limit: int | None = None
    max_rows: int
    max_bytes: int
    # All tables that the runner may read for the job.
    source_ids: tuple[str, ...] = ()


class Alteration(Struct, frozen=True, kw_only=True):
    """What a view was until it was altered: by this definition its rows were made."""

    before: Definition
    # The new query as it was sent, for the table's metadata.
    source_query: str = ""


class RefreshSpec(JobSpec, frozen=True, kw_only=True):
    """Bring a view up to date, after the views that are refreshed with it."""

    definition: Definition
    # How often the view had been altered when the definition was made.
    edition: int = 0
    # Set when the refresh also makes the view one of another definition.
    alteration: Alteration | None = None
    src_version: int | None = None
    max_rows_per_fragment: int | None = None
    concurrency: int | None = None
    intra_applier_concurrency: int | None = None
    source_task_size: int | None = None
    # How many rows a function gets at once, and how long values may stay in memory only.
    checkpoint_size: int | None = None
    min_checkpoint_size: int | None = None
    max_checkpoint_size: int | None = None
    batch_checkpoint_flush_interval_seconds: float | None = None
    output_limit: int | None = None
    mode: Mode = "auto"
    # Recompute and compare after the refresh: everything, or so many rows.
    verify: bool = False
    verify_rows: int | None = None
    watermark: ViewWatermark | None = None
    # The Iceberg tables that it reads, when the job was leased, by id.
    iceberg: dict[str, IcebergState] = {}
    # Where the metadata of each Iceberg view lies that the definition is made from, by its id.
    states: dict[str, str] = {}
    # What the names in the SQL of each of these stand for: ids, by the names as paths.
    inner: dict[str, dict[str, str]] = {}
    # All tables and views that the runner may read for the job.
    source_ids: tuple[str, ...] = ()
    # Views that are refreshed with this one because it reads them, in the order of their refreshes.
    upstream: tuple["UpstreamSpec", ...] = ()

    @property
    def made_by(self) -> Definition:
        """The definition by which the view's rows were made until now."""
        if self.alteration is not None:
            return self.alteration.before
        return self.definition if self.followed is None else self.followed.before

    @property
    def made_then(self) -> Definition:
        """The same, with the names that columns of the sources had when the rows were made."""
        return self.made_by if self.followed is None else self.followed.before

    @property
    def followed(self) -> FollowedRename | None:
        """The renames since the view's rows were made."""
        if self.watermark is None:
            return None
        known = self.definition if self.alteration is None else self.alteration.before
        return known.find_followed(self.watermark.digest)


class UpstreamSpec(RefreshSpec, frozen=True, kw_only=True):
    """A view that is refreshed on the way to another, in an environment of its own."""

    manifest: str | None = None


class PreviewSpec(ColumnSpec, frozen=True, kw_only=True):
    """Compute a column for the first rows that match, and write nothing.

    Or the columns of an altered view's new functions, for some rows of its new query.
    """

    rows: int
    altered: RefreshSpec | None = None
    # All tables that the runner may read for it.
    source_ids: tuple[str, ...] = ()


class Reach(Struct, frozen=True):
    """What a job of any kind works on and reads, by ids: all that rights need of its spec."""

    table_id: str = ""
    source_ids: tuple[str, ...] = ()
    upstream: tuple["Reach", ...] = ()

    @property
    def target_ids(self) -> list[str]:
        """The tables that the job changes, its own first."""
        own = [self.table_id] if self.table_id else []
        return [*own, *(each.table_id for each in self.upstream)]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a runner carries out jobs of a kind; each is given the spec and the catalog."""

    run: Callable[..., Struct]
    # Removes the leftovers of a successful job; returns how many files.
    sweep: Callable[..., int]
    # The same for a job that did not succeed, whose finished work the next one can use.
    leave: Callable[..., int] | None = None


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job; `catalog/jobs/kinds.py` has what the server does when it is leased and ends.

    The module that runs it loads Lance and Spark, which a server must not: a runner loads it.
    """

    word: str
    spec: type[JobSpec]
    # The module that has the kind's `RECIPE`.
    runs_in: str
    # What is told of the result of a job that has ended, beside its version.
    tells: tuple[str, ...] = ()
    # Whether a request waits for the answer, so that the job is not one to pause.
    is_awaited: bool = False

    def load_recipe(self) -> Recipe:
        return cast("Recipe", import_module(self.runs_in).RECIPE)


BACKFILL, PREVIEW, REFRESH = "backfill", "preview", "refresh"
ANALYSIS, STATEMENT = "analysis", "statement"

KINDS = {
    kind.word: kind
    for kind in (
        JobKind(
            BACKFILL,
            BackfillSpec,
            "penstock.jobs.backfill.run",
            tells=("rows_by_state", "stale_by_reason"),
        ),
        JobKind(PREVIEW, PreviewSpec, "penstock.jobs.preview.run", is_awaited=True),
        JobKind(ANALYSIS, AnalysisSpec, "penstock.jobs.analysis.run", is_awaited=True),
        JobKind(STATEMENT, StatementSpec, "penstock.jobs.statement.run", is_awaited=True),
        JobKind(
            REFRESH,
            RefreshSpec,
            "penstock.jobs.refresh.cascade",
            tells=(
                *("mode", "reason", "rows_inserted", "rows_updated", "rows_deleted"),
                *("function_calls", "rows_failed", "source_versions", "moment", "certificate"),
                "upstream",
            ),
        ),
    )
}


def get_kind(word: str) -> JobKind:
    if word not in KINDS:
        raise Unsupported(f"this release of Penstock does not know jobs of kind {word!r}")
    return KINDS[word]


def decode_spec(kind: str, text: bytes | str | msgspec.Raw) -> JobSpec:
    """The spec of a job of a kind, as it is stored or sent."""
    wanted = get_kind(kind).spec
    try:
        return msgspec.json.decode(text, type=wanted)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"the job's spec cannot be read: {error}", detail="request the job again"
        ) from error


def decode_reach(text: bytes | str | msgspec.Raw) -> Reach:
    return _reach.decode(text)


_reach = msgspec.json.Decoder(Reach)


def tell_result(kind: str, result: Mapping[str, Any]) -> dict[str, Value]:
    """What a job's result says, as far as it is what it should be; its parts as JSON."""
    keys = KINDS[kind].tells if kind in KINDS else ()
    found = {key: result.get(key) for key in keys}
    if "upstream" in found:
        found["upstream"] = _shorten(found["upstream"]) or None
    return {
        key: msgspec.json.encode(value).decode() if isinstance(value, dict) else value
        for key, value in found.items()
        if isinstance(value, str | int | dict)
    }


def _shorten(upstream: Any) -> dict[str, Any]:
    """The results of views that were refreshed on the way, by name."""
    results: Iterable[Any] = upstream.values() if isinstance(upstream, dict) else ()
    return {
        str(each.get("view")): {"version": each.get("version"), "mode": each.get("mode")}
        for each in results
        if isinstance(each, dict)
    }
