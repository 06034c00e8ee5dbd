"""The recipe of a refresh: pin the sources, plan, write files on Spark, commit once, report.

The first attempt chooses the sources' versions, and later ones use the same, unless another job
took the view further while this one was paused. A commit carries the job's id and the watermark, so
a later attempt that finds it only reports.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from lance import LanceDataset
from msgspec import structs

from penstock.crash import crash_point
from penstock.errors import LeaseLost
from penstock.jobs.engine.attempt import (
    COMMITTING,
    COMPUTING,
    FINISHING,
    PLANNING,
    VERIFYING,
    Attempt,
    JobPaused,
    KeyedAttempt,
)
from penstock.jobs.engine.checkpoints import note_pause
from penstock.jobs.kept.store import remove_view_stores
from penstock.jobs.kept.sweep import sweep
from penstock.jobs.refresh import view_notes
from penstock.jobs.refresh.commit import commit_change
from penstock.jobs.refresh.context import Context, Plan, ViewChange, Work
from penstock.jobs.refresh.history import (
    CALLS_PROPERTY,
    DELETED_PROPERTY,
    INSERTED_PROPERTY,
    MODE_PROPERTY,
    READ_PROPERTY,
    REASON_PROPERTY,
    UPDATED_PROPERTY,
    RefreshCommit,
    encode_watermark,
)
from penstock.jobs.refresh.plan import (
    choose_moment,
    choose_versions,
    look_back,
    make_context,
    plan_refresh,
)
from penstock.jobs.refresh.strategies import find_strategy
from penstock.jobs.refresh.udtf.verify import verify_udtf
from penstock.jobs.refresh.verify import verify
from penstock.jobs.refresh.view_notes import Pin, Pins, Retention
from penstock.jobs.refresh.work_names import is_overtaken, name_work
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import RefreshSpec
from penstock.lance.commit.replacement import (
    ATTEMPT_PROPERTY,
    JOB_PROPERTY,
    WATERMARK_PROPERTY,
)
from penstock.lance.session.remote import Location, RemoteCatalog
from penstock.model.moments import show_moment
from penstock.model.views import RefreshResult, Watermark


def run_refresh(
    spec: RefreshSpec,
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> RefreshResult:
    """Refresh the view; raises JobCanceled, JobPaused, LeaseLost or what made it fail.

    `get_engine` is called only when something has to be computed.
    """
    refresh = RefreshRun(spec, catalog, get_engine, attempt)
    return refresh.finish(refresh.work())


def sweep_refresh(spec: RefreshSpec, catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """Remove a finished job's files that no version refers to; returns how many."""
    return sweep(catalog.locate(spec.table, ""), job, attempt)


@dataclass(frozen=True, slots=True, eq=False)
class RefreshOutcome:
    """What an attempt did to the view; `version` is the one that it committed."""

    work: Work
    plan: Plan
    change: ViewChange
    watermark: Watermark
    version: int | None


class RefreshRun:
    """One attempt at one view."""

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
        self._sources = {s.id: catalog.locate(s.table, "") for s in spec.definition.tables}
        places = {id: location.place() for id, location in self._sources.items()}
        self._kept = Retention(spec.table_id, self._place, places)
        # The view's state according to the catalog, and to the view itself.
        self._known = [spec.watermark]
        # As of the start of the work.
        self._view: LanceDataset
        # Whether what earlier attempts chose is behind the view, and the name of the work if it is
        # not the job's.
        self.is_overtaken = False
        self._name = ""

    def work(self) -> RefreshOutcome | RefreshCommit:
        """Refresh the view, or find the commit in which an earlier attempt did."""
        try:
            return self._work()
        except JobPaused:
            note_pause(self._place, self._name or self._attempt.job, self._attempt.number)
            raise

    def _work(self) -> RefreshOutcome | RefreshCommit:
        self._attempt.phase(PLANNING)
        self._view = view = self._catalog.open_latest(self._given.table, "")
        spec, history = look_back(self._given, view)
        self._known = [self._given.watermark, spec.watermark]
        if history.refresh is not None and history.refresh.job == self._attempt.job:
            return history.refresh
        self._open_sources(spec)
        pins = self._pin(spec)
        self._attempt.check()
        context = make_context(spec, self._location, view, self._newest, pins, history.foreign)
        plan = self._plan(context)
        self._tell_plan(plan)
        if plan.mode == "none":
            nothing = ViewChange(removes=_no_ids())
            return RefreshOutcome(self._start(context), plan, nothing, _next(context, pins), None)
        # Also for versions that the view already has: tags of other attempts are theirs.
        if not self._note(pins):
            raise LeaseLost("another attempt has begun to compute, for other versions")
        crash_point("versions pinned")
        work = self._start(context)
        self._attempt.phase(COMPUTING)
        change = self._compute(work, plan)
        self._attempt.check()
        self._attempt.phase(COMMITTING)
        crash_point("files written")
        name = f"failed-{self._attempt.job}-{self._attempt.number}.rows"
        self._attempt.fence()
        failed = view_notes.write_failed(self._place, name, change.failed)
        watermark = structs.replace(
            _next(context, pins),
            failed=failed,
            partitions=self._note_partitions(change),
            failed_rows=0 if change.failed is None else len(change.failed),
            cut=change.cut,
        )
        # Whatever its work is called, a commit is the job's.
        committing = replace(work, attempt=self._attempt)
        version = self._commit(committing, change, self._properties(plan, change, watermark))
        return RefreshOutcome(work, plan, change, watermark, version)

    def _note_partitions(self, change: ViewChange) -> str | None:
        if change.partitions is None:
            return None
        name = f"partitions-{self._attempt.job}-{self._attempt.number}.json"
        return view_notes.write_partitions(self._place, name, change.partitions)

    def finish(self, done: RefreshOutcome | RefreshCommit) -> RefreshResult:
        """Release what is no longer needed, and report what was done."""
        result = self._report(done) if isinstance(done, RefreshCommit) else self._describe(done)
        if isinstance(done, RefreshCommit):
            rows_read = int(done.properties.get(READ_PROPERTY, 0))
        else:
            rows_read = done.change.rows_read
        self._tell_result(result, rows_read)
        return result

    def _open_sources(self, spec: RefreshSpec) -> None:
        for source in spec.definition.tables:
            newest = self._catalog.open_latest(source.table, "")
            self._newest[source.id] = self._sources[source.id], newest

    def _plan(self, context: Context) -> Plan:
        return plan_refresh(context)

    def _compute(self, work: Work, plan: Plan) -> ViewChange:
        return find_strategy(work.definition).run(work, plan)

    def _commit(self, work: Work, change: ViewChange, properties: dict[str, str]) -> int | None:
        return commit_change(work, change, properties)

    def _pin(self, spec: RefreshSpec) -> Pins:
        """Choose the sources' versions and the moment, and protect the versions from clean-up."""
        pins = view_notes.find_pins(self._place, self._attempt.job)
        if pins is not None and is_overtaken(spec, pins):
            self._attempt.log("another job took the view further while this one was paused")
            self.is_overtaken, pins = True, None
        if pins is None:
            pins = Pins(choose_versions(spec, self._newest), choose_moment([spec]))
        for id, pin in pins.versions.items():
            if not pin.file:
                view_notes.keep_version(self._newest[id][1], spec.table_id, pin.version)
        return pins

    def _note(self, pins: Pins) -> bool:
        """Note the choice for later attempts; False when another attempt chose otherwise."""
        if self.is_overtaken:
            return self._use_own_name(pins)
        return view_notes.write_pins(self._place, self._attempt.job, pins)

    def _use_own_name(self, pins: Pins) -> bool:
        """Keep values under a name with the sources' versions, which may differ in each attempt."""
        self._name = name_work(self._attempt.job, pins)
        view_notes.write_key(self._place, self._attempt.job, self._name)
        return True

    def _start(self, context: Context) -> Work:
        known = {each.name: getattr(context, each.name) for each in fields(Context)}
        attempt = KeyedAttempt(self._attempt, self._name) if self._name else self._attempt
        return Work(**known, catalog=self._catalog, attempt=attempt, get_engine=self._get_engine)

    def _properties(self, plan: Plan, change: ViewChange, watermark: Watermark) -> dict[str, str]:
        return {
            JOB_PROPERTY: self._attempt.job,
            ATTEMPT_PROPERTY: str(self._attempt.number),
            WATERMARK_PROPERTY: encode_watermark(watermark),
            INSERTED_PROPERTY: str(change.rows_inserted),
            UPDATED_PROPERTY: str(change.rows_updated),
            DELETED_PROPERTY: str(change.rows_deleted),
            CALLS_PROPERTY: str(change.function_calls),
            READ_PROPERTY: str(change.rows_read),
            MODE_PROPERTY: plan.mode,
            REASON_PROPERTY: plan.reason,
        }

    # Telling ---------------------------------------------------------------------------------

    def _tell_plan(self, plan: Plan) -> None:
        self._attempt.log(f"{plan.mode}: {plan.reason}")
        self._attempt.progress(mode=plan.mode, reason=plan.reason)

    def _describe(self, made: RefreshOutcome) -> RefreshResult:
        plan, change, watermark, version = made.plan, made.change, made.watermark, made.version
        if version is None:
            version = watermark.view_version
        else:
            self._attempt.log(
                f"version {version}: {change.rows_inserted} rows inserted, "
                f"{change.rows_updated} updated, {change.rows_deleted} deleted"
            )
        return RefreshResult(
            view="$".join(self._given.table),
            version=version,
            mode=plan.mode,
            reason=plan.reason,
            rows_inserted=change.rows_inserted,
            rows_updated=change.rows_updated,
            rows_deleted=change.rows_deleted,
            function_calls=change.function_calls,
            calls_saved=_count_saved(change),
            rows_failed=watermark.failed_rows,
            source_versions=self._name_versions(watermark),
            moment=_show_moment(watermark),
            watermark=structs.replace(watermark, view_version=version),
            rate=change.rate,
            certificate=self._verify(made.work, version, watermark),
        )

    def _verify(self, work: Work, version: int, watermark: Watermark) -> dict[str, Any] | None:
        """Compare the view with its query, if requested."""
        if not self._is_verified():
            return None
        self._attempt.phase(VERIFYING)
        view = work.view.checkout_version(version)
        if work.definition.kind == "udtf":
            found = verify_udtf(work, view, watermark)
        else:
            found = verify(work, view)
        if not found["is_equal"]:
            self._attempt.log(
                f"the view is not its query: {found['rows_missing']} rows are missing, and "
                f"{found['rows_extra']} should not be there; refresh it with mode full",
                "error",
            )
        return found

    def _is_verified(self) -> bool:
        return self._given.verify or self._given.verify_rows is not None

    def _report(self, done: RefreshCommit) -> RefreshResult:
        """The result of an earlier attempt that committed but did not report."""
        found, mark, certificate = done.properties, done.watermark, None
        if done.job == self._attempt.job:
            self._attempt.log(f"version {done.version} was committed by an earlier attempt")
        if self._is_verified():
            spec = self._given
            self._open_sources(spec)
            at = {id: Pin(n, mark.transactions.get(id, "")) for id, n in mark.versions.items()}
            # Of an Iceberg table, the job's own note knows the file that was read.
            noted = view_notes.find_pins(self._place, self._attempt.job)
            files = {} if noted is None else {i: p for i, p in noted.versions.items() if p.file}
            pins = Pins(at | files, mark.moment)
            context = make_context(spec, self._location, self._view, self._newest, pins, "")
            certificate = self._verify(self._start(context), done.version, mark)
        return RefreshResult(
            view="$".join(self._given.table),
            version=done.version,
            mode=found.get(MODE_PROPERTY, "incremental"),
            reason=found.get(REASON_PROPERTY, ""),
            rows_inserted=int(found.get(INSERTED_PROPERTY, 0)),
            rows_updated=int(found.get(UPDATED_PROPERTY, 0)),
            rows_deleted=int(found.get(DELETED_PROPERTY, 0)),
            function_calls=int(found.get(CALLS_PROPERTY, 0)),
            rows_failed=mark.failed_rows,
            source_versions=self._name_versions(mark),
            moment=_show_moment(mark),
            watermark=mark,
            certificate=certificate,
        )

    def _tell_result(self, result: RefreshResult, rows_read: int) -> None:
        self._attempt.phase(FINISHING)
        self._kept.keep(self._view, result.version, self._attempt.log)
        needed = [each for each in (result.watermark, *self._known) if each is not None]
        self._kept.let_go(needed, self._attempt.log)
        if self._has_functions():
            # The values that were kept for it are in the view by now.
            remove_view_stores(self._place)
        if result.calls_saved is not None:
            self._attempt.progress(calls_saved=result.calls_saved)
        self._attempt.progress(
            mode=result.mode,
            reason=result.reason,
            rows_inserted=result.rows_inserted,
            rows_updated=result.rows_updated,
            rows_deleted=result.rows_deleted,
            function_calls=result.function_calls,
            rows_failed=result.rows_failed,
            # All of it is done, in the unit in which it was told on the way.
            rows_total=rows_read,
            rows_done=rows_read,
        )

    def _has_functions(self) -> bool:
        definition = self._given.definition
        return definition.function is not None or bool(definition.column_functions)

    def _name_versions(self, watermark: Watermark) -> dict[str, int]:
        sources = self._given.definition.sources
        return {"$".join(s.table): watermark.versions[s.id] for s in sources}


def _count_saved(change: ViewChange) -> int | None:
    if change.calls_of_all is None:
        return None
    return max(0, change.calls_of_all - change.function_calls)


def _show_moment(watermark: Watermark) -> str | None:
    return None if watermark.moment is None else show_moment(watermark.moment)


def _next(context: Context, pins: Pins) -> Watermark:
    """The watermark that the refresh leads to."""
    old = context.watermark
    return Watermark(
        versions={id: pin.version for id, pin in pins.versions.items()},
        transactions={id: pin.transaction for id, pin in pins.versions.items()},
        moment=None if context.definition.clock is None else pins.moment,
        digest=context.definition.digest,
        view_version=context.view.version,
        failed=None if old is None else old.failed,
        failed_rows=0 if old is None else old.failed_rows,
        partitions=None if old is None else old.partitions,
        output_limit=context.spec.output_limit,
        cut=None if old is None else old.cut,
    )


def _no_ids() -> Any:
    return np.empty(0, np.int64)
