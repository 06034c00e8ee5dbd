"""The recipe of a refresh: pin the sources, plan, write files on Spark, commit once, report.

The first attempt chooses the sources' versions, and later ones use the same. What was committed
carries the job's id and the watermark, so an attempt that comes after it only reports.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from msgspec import convert, structs

from penstock.crash import crash_point
from penstock.datasets import checkpoints, view_notes
from penstock.datasets.refreshes import (
    CALLS_PROPERTY,
    DELETED_PROPERTY,
    INSERTED_PROPERTY,
    MODE_PROPERTY,
    REASON_PROPERTY,
    UPDATED_PROPERTY,
    WATERMARK_PROPERTY,
    Refreshed,
    encode_watermark,
)
from penstock.datasets.remote import Location, RemoteCatalog
from penstock.datasets.replacement import ATTEMPT_PROPERTY, JOB_PROPERTY
from penstock.datasets.view_notes import Pin
from penstock.errors import LeaseLost, Unsupported
from penstock.model.views import RefreshResult, RefreshSpec, Watermark
from penstock.pipeline.attempt import Attempt
from penstock.pipeline.refreshing.committing import commit_change
from penstock.pipeline.refreshing.context import Change, Context, Plan, Work
from penstock.pipeline.refreshing.keeping import Kept
from penstock.pipeline.refreshing.planning import (
    choose_versions,
    look_back,
    make_context,
    plan_refresh,
    strategy_of,
)
from penstock.pipeline.spark.engine import Engine
from penstock.pipeline.spark.refreshing import chunks, rows, udtf

if TYPE_CHECKING:
    from lance import LanceDataset

# How a plan is carried out, by the strategy that made it.
RUNS: dict[str, Callable[[Work, Plan], Change]] = {
    "rows": rows.run,
    "chunks": chunks.run,
    "udtf": udtf.run,
}


def run_refresh(
    spec: Mapping[str, Any],
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> RefreshResult:
    """Refresh the view; raises JobCanceled, LeaseLost or what made it fail.

    The engine is asked for only when something has to be computed.
    """
    return _Refresh(convert(spec, RefreshSpec), catalog, get_engine, attempt).run()


def sweep_refresh(spec: Mapping[str, Any], catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """Remove what a finished job wrote and no version refers to; returns how many files."""
    wanted = convert(spec, RefreshSpec)
    return checkpoints.sweep(catalog.locate(wanted.table, ""), job, attempt)


class _Refresh:
    """One attempt."""

    def __init__(
        self,
        spec: RefreshSpec,
        catalog: RemoteCatalog,
        get_engine: Callable[[], Engine],
        attempt: Attempt,
    ) -> None:
        self._given = spec
        self._catalog = catalog
        self._get_engine = get_engine
        self._attempt = attempt
        self._location = catalog.locate(spec.table, "")
        self._place = self._location.place()
        self._newest: dict[str, tuple[Location, LanceDataset]] = {}
        self._sources = {s.id: catalog.locate(s.table, "") for s in spec.definition.sources}
        places = {id: location.place() for id, location in self._sources.items()}
        self._kept = Kept(spec.table_id, self._place, places)
        # What the catalog says of the view, and what the view itself does.
        self._known = [spec.watermark]
        # As it was when the work began.
        self._view: LanceDataset

    def run(self) -> RefreshResult:
        self._view = view = self._catalog.open_latest(self._given.table, "")
        spec, history = look_back(self._given, view)
        self._known = [self._given.watermark, spec.watermark]
        if history.refresh is not None and history.refresh.job == self._attempt.job:
            return self._report(history.refresh)
        for source in spec.definition.sources:
            newest = self._catalog.open_latest(source.table, "")
            self._newest[source.id] = self._sources[source.id], newest
        pins = self._pin(spec)
        self._attempt.check()
        context = make_context(spec, self._location, view, self._newest, pins, history.foreign)
        plan = plan_refresh(context)
        self._tell_plan(plan)
        if plan.mode == "none":
            return self._finish(plan, Change(removes=_no_ids()), _next(context, pins), None)
        # Also for versions that the view has already: what is kept for other attempts is theirs.
        if not view_notes.write_pins(self._place, self._attempt.job, pins):
            raise LeaseLost("another attempt has begun to compute, for other versions")
        crash_point("versions pinned")
        work = self._start(context)
        strategy = strategy_of(spec.definition)
        if strategy not in RUNS:
            raise Unsupported(f"views of shape {strategy} cannot be refreshed yet")
        change = RUNS[strategy](work, plan)
        self._attempt.check()
        crash_point("files written")
        name = f"failed-{self._attempt.job}-{self._attempt.number}.rows"
        self._attempt.fence()
        failed = view_notes.write_failed(self._place, name, change.failed)
        watermark = structs.replace(
            _next(context, pins),
            failed=failed,
            failed_rows=0 if change.failed is None else len(change.failed),
            cut=change.cut,
        )
        version = commit_change(work, change, self._properties(plan, change, watermark))
        return self._finish(plan, change, watermark, version)

    def _pin(self, spec: RefreshSpec) -> dict[str, Pin]:
        """The sources' versions of this job, which stay there from now on."""
        found = view_notes.find_pins(self._place, self._attempt.job)
        pins = choose_versions(spec, self._newest) if found is None else found
        for id, pin in pins.items():
            view_notes.keep_version(self._newest[id][1], spec.table_id, pin.version)
        return pins

    def _start(self, context: Context) -> Work:
        known = {each.name: getattr(context, each.name) for each in fields(Context)}
        return Work(
            **known, catalog=self._catalog, attempt=self._attempt, get_engine=self._get_engine
        )

    def _properties(self, plan: Plan, change: Change, watermark: Watermark) -> dict[str, str]:
        return {
            JOB_PROPERTY: self._attempt.job,
            ATTEMPT_PROPERTY: str(self._attempt.number),
            WATERMARK_PROPERTY: encode_watermark(watermark),
            INSERTED_PROPERTY: str(change.rows_inserted),
            UPDATED_PROPERTY: str(change.rows_updated),
            DELETED_PROPERTY: str(change.rows_deleted),
            CALLS_PROPERTY: str(change.function_calls),
            MODE_PROPERTY: plan.mode,
            REASON_PROPERTY: plan.reason,
        }

    # Telling ---------------------------------------------------------------------------------

    def _tell_plan(self, plan: Plan) -> None:
        self._attempt.log(f"{plan.mode}: {plan.reason}")
        self._attempt.progress(mode=plan.mode, reason=plan.reason)

    def _finish(
        self, plan: Plan, change: Change, watermark: Watermark, version: int | None
    ) -> RefreshResult:
        """What was done; `version` is the one that was committed."""
        if version is None:
            version = watermark.view_version
        else:
            self._attempt.log(
                f"version {version}: {change.rows_inserted} rows inserted, "
                f"{change.rows_updated} updated, {change.rows_deleted} deleted"
            )
        result = RefreshResult(
            version=version,
            mode=plan.mode,
            reason=plan.reason,
            rows_inserted=change.rows_inserted,
            rows_updated=change.rows_updated,
            rows_deleted=change.rows_deleted,
            function_calls=change.function_calls,
            rows_failed=watermark.failed_rows,
            source_versions=self._name_versions(watermark),
            watermark=structs.replace(watermark, view_version=version),
            rate=change.rate,
        )
        self._tell_result(result)
        return result

    def _report(self, done: Refreshed) -> RefreshResult:
        """What an earlier attempt committed and could not tell."""
        found = done.properties
        result = RefreshResult(
            version=done.version,
            mode=found.get(MODE_PROPERTY, "incremental"),
            reason=found.get(REASON_PROPERTY, ""),
            rows_inserted=int(found.get(INSERTED_PROPERTY, 0)),
            rows_updated=int(found.get(UPDATED_PROPERTY, 0)),
            rows_deleted=int(found.get(DELETED_PROPERTY, 0)),
            function_calls=int(found.get(CALLS_PROPERTY, 0)),
            rows_failed=done.watermark.failed_rows,
            source_versions=self._name_versions(done.watermark),
            watermark=done.watermark,
        )
        self._attempt.log(f"version {done.version} was committed by an earlier attempt")
        self._tell_result(result)
        return result

    def _tell_result(self, result: RefreshResult) -> None:
        self._kept.keep(self._view, result.version, self._attempt.log)
        needed = [each for each in (result.watermark, *self._known) if each is not None]
        self._kept.let_go(needed, self._attempt.log)
        self._attempt.progress(
            mode=result.mode,
            reason=result.reason,
            rows_inserted=result.rows_inserted,
            rows_updated=result.rows_updated,
            rows_deleted=result.rows_deleted,
            function_calls=result.function_calls,
            rows_failed=result.rows_failed,
        )

    def _name_versions(self, watermark: Watermark) -> dict[str, int]:
        sources = self._given.definition.sources
        return {"$".join(s.table): watermark.versions[s.id] for s in sources}


def _next(context: Context, pins: Mapping[str, Pin]) -> Watermark:
    """What the view is to be."""
    old = context.watermark
    return Watermark(
        versions={id: pin.version for id, pin in pins.items()},
        transactions={id: pin.transaction for id, pin in pins.items()},
        digest=context.definition.digest,
        view_version=context.view.version,
        failed=None if old is None else old.failed,
        failed_rows=0 if old is None else old.failed_rows,
        output_limit=context.spec.output_limit,
        cut=None if old is None else old.cut,
    )


def _no_ids() -> Any:
    import numpy as np

    return np.empty(0, np.int64)
