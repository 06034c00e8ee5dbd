"""Refresh a view together with the views that it reads, and publish all of them at once.

The first attempt chooses a version of every table below the views. Views are computed in order;
each new version is held back, but visible to the views after it. At the end the catalog takes all
new versions or none. Each carries the job's id and its watermark, so a later attempt finds them and
only reports, also for views for which there was nothing to do.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from lance import LanceDataset
from msgspec import structs

from penstock.crash import crash_point
from penstock.errors import LeaseLost, PenstockError
from penstock.jobs.engine.attempt import Attempt, Value
from penstock.jobs.refresh import view_notes
from penstock.jobs.refresh.altering.run import run_alteration
from penstock.jobs.refresh.commit import commit_change
from penstock.jobs.refresh.context import ViewChange, Work
from penstock.jobs.refresh.history import (
    MODE_PROPERTY,
    REASON_PROPERTY,
    RefreshCommit,
    commit_refresh,
)
from penstock.jobs.refresh.iceberg.versions import at_pins
from penstock.jobs.refresh.plan import check_pin, choose_moment, choose_versions, look_back
from penstock.jobs.refresh.run import RefreshOutcome, RefreshRun, run_refresh, sweep_refresh
from penstock.jobs.refresh.view_notes import FIRST_PINS, Pin, Pins
from penstock.jobs.refresh.work_names import is_overtaken
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import Recipe, RefreshSpec, UpstreamSpec
from penstock.lance.commit.removal import Removal
from penstock.lance.commit.transaction import transaction_of
from penstock.lance.session.remote import RemoteCatalog
from penstock.lance.session.unpublished import UnpublishedCatalog
from penstock.model.functions import RowError
from penstock.model.views import RefreshResult, Source, Watermark


class GetEngine(Protocol):
    """Gets the engine for a job, or for the view whose spec is given."""

    def __call__(self, of: UpstreamSpec | None = None) -> Engine: ...


def run_refreshes(
    spec: RefreshSpec, catalog: RemoteCatalog, get_engine: GetEngine, attempt: Attempt
) -> RefreshResult:
    """Refresh the view, after those that are refreshed with it, or alter it."""
    if spec.alteration is not None:
        return run_alteration(spec, catalog, get_engine, attempt)
    if not spec.upstream:
        return run_refresh(spec, catalog, get_engine, attempt)
    return _Cascade(spec, catalog, get_engine, attempt).run()


def sweep_refreshes(spec: RefreshSpec, catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """Remove a finished job's files that no version refers to; returns how many."""
    removed = 0
    for each in (*spec.upstream, spec):
        place = catalog.locate(each.table, "").place()
        # Its own folder last, because it names the others.
        for key in (*view_notes.list_keys(place, job), job):
            removed += sweep_refresh(each, catalog, key, attempt)
    return removed


class _Cascade:
    """One attempt."""

    def __init__(
        self,
        spec: RefreshSpec,
        catalog: RemoteCatalog,
        get_engine: GetEngine,
        attempt: Attempt,
    ) -> None:
        self._specs: list[RefreshSpec] = [*spec.upstream, spec]
        self._ids = {each.table_id for each in self._specs}
        self._catalog = catalog
        self._held = UnpublishedCatalog(catalog, attempt.job)
        self._get_engine = get_engine
        self._attempt = attempt
        # The current time of all queries that read the clock.
        self._moment: int | None = None
        self._is_overtaken = False

    def run(self) -> RefreshResult:
        numbers = range(len(self._specs))
        done: list[tuple[_Step, RefreshOutcome | RefreshCommit]]
        if self._is_published():
            steps = [self._make_step(number) for number in numbers]
            done = [(step, step.find()) for step in steps]
        else:
            self._pin()
            done = [self._work(number) for number in numbers]
            self._publish()
        for spec, (_, made) in zip(self._specs, done, strict=True):
            self._keep(spec, made.watermark)
        *others, result = [step.finish(made) for step, made in done]
        ids = [each.table_id for each in self._specs]
        return structs.replace(result, upstream=dict(zip(ids, others, strict=False)))

    def _is_published(self) -> bool:
        """Whether an earlier attempt published its versions, but could not report.

        Views with nothing to do must not have changed since: the others follow them.
        """
        for spec in self._specs:
            _, history = look_back(spec, self._catalog.open_latest(spec.table, ""))
            if history.refresh is not None and history.refresh.job == self._attempt.job:
                return True
        return False

    def _publish(self) -> None:
        crash_point("views held back")
        if requests := self._held.requests:
            self._attempt.fence()
            self._attempt.publish(requests)
            self._attempt.log(f"{len(requests)} views were published together")
        crash_point("views published")

    def _pin(self) -> None:
        """Choose a moment and versions of the base tables, which are protected for each view."""
        place = self._held.locate(self._specs[-1].table, "").place()
        first = view_notes.find_pins(place, self._attempt.job, FIRST_PINS)
        if first is not None and any(is_overtaken(spec, first) for spec in self._specs):
            self._attempt.log("another job took a view further while this one was paused")
            self._is_overtaken, first = True, None
        first = first or Pins({}, choose_moment(self._specs))
        pins = first.versions
        for spec in self._specs:
            for id, state in spec.iceberg.items():
                pins.setdefault(id, Pin(state.snapshot, state.uuid, state.file))
        # Every attempt reads the same files, whatever it was leased with.
        self._specs = [at_pins(spec, first) for spec in self._specs]
        tables = {s.id: s for spec in self._specs for s in self._list_tables(spec)}
        newest = {id: self._catalog.open_latest(s.table, "") for id, s in tables.items()}
        for id in newest.keys() - pins.keys():
            pins[id] = Pin(newest[id].version, transaction_of(newest[id]))
        for id, source in tables.items():
            check_pin(newest[id], source, pins[id])
        for spec in self._specs:
            for source in self._list_tables(spec):
                view_notes.keep_version(newest[source.id], spec.table_id, pins[source.id].version)
        self._moment = first.moment
        is_first = view_notes.write_pins(place, self._attempt.job, first, FIRST_PINS)
        if not (is_first or self._is_overtaken):
            raise LeaseLost("another attempt has begun, with other versions")
        for id, source in tables.items():
            self._held.pin(source.table, pins[id].version)

    def _keep(self, spec: RefreshSpec, watermark: Watermark) -> None:
        """Protect other views' versions for a view; they are published by now."""
        for source in spec.definition.sources:
            if source.id not in self._ids:
                continue
            try:
                newest = self._catalog.open_latest(source.table, "")
                view_notes.keep_version(newest, spec.table_id, watermark.versions[source.id])
            except PenstockError as error:
                # The next refresh may have to compute everything, but this one succeeded.
                self._attempt.log(f"{'$'.join(source.table)} is not kept: {error.message}")

    def _list_tables(self, spec: RefreshSpec) -> list[Source]:
        return [each for each in spec.definition.tables if each.id not in self._ids]

    def _make_step(self, number: int) -> "_Step":
        spec, attempt = self._specs[number], self._attempt
        get_engine: Callable[[], Engine]
        if isinstance(spec, UpstreamSpec):
            get_engine = partial(self._get_engine, spec)
            attempt = _StepAttempt(attempt, spec)
        else:
            get_engine = self._get_engine
        step = _Step(spec, self._held, get_engine, attempt, self._ids, self._moment)
        step.is_overtaken = self._is_overtaken
        return step

    def _work(self, number: int) -> "tuple[_Step, RefreshOutcome | RefreshCommit]":
        step, table = self._make_step(number), self._specs[number].table
        done = step.work()
        if isinstance(done, RefreshCommit):
            self._held.pin(table, done.version)
        elif done.version is None:
            self._held.pin(table, done.watermark.view_version)
        return step, done


class _Step(RefreshRun):
    """One view of a cascade, whose commit is held back."""

    def __init__(
        self,
        spec: RefreshSpec,
        catalog: UnpublishedCatalog,
        get_engine: Callable[[], Engine],
        attempt: Attempt,
        views: set[str],
        moment: int | None,
    ) -> None:
        super().__init__(spec, catalog, get_engine, attempt)
        self._moment = None if spec.definition.clock is None else moment
        self._hold = catalog.hold
        self._views = views

    def find(self) -> RefreshCommit:
        """The view as an earlier attempt made it, or left it because there was nothing to do."""
        self._view = self._catalog.open_latest(self._given.table, "")
        spec, history = look_back(self._given, self._view)
        self._known = [self._given.watermark, spec.watermark]
        if history.refresh is not None and history.refresh.job == self._attempt.job:
            return history.refresh
        known = spec.watermark or Watermark(versions={}, digest="", view_version=self._view.version)
        # Versions of a source that is new to the view, and that gave nothing, were not recorded.
        versions = {each.id: known.versions.get(each.id, 0) for each in spec.definition.sources}
        watermark = structs.replace(known, versions=versions)
        told = {MODE_PROPERTY: "none", REASON_PROPERTY: "an earlier attempt left it as it was"}
        return RefreshCommit(known.view_version, "", watermark, told)

    def _pin(self, spec: RefreshSpec) -> Pins:
        """The versions that the cascade has of the sources, at its moment."""
        return Pins(choose_versions(spec, self._newest), self._moment)

    def _note(self, pins: Pins) -> bool:
        """Each attempt makes its own versions of the cascade's views."""
        return (
            self._use_own_name(pins) if self._views & pins.versions.keys() else super()._note(pins)
        )

    def _commit(self, work: Work, change: ViewChange, properties: dict[str, str]) -> int | None:
        def commit(
            view: LanceDataset,
            removal: Removal,
            fragments: Sequence[str],
            properties: Mapping[str, str],
        ) -> int:
            return self._hold(
                work.spec.table,
                view,
                lambda held: commit_refresh(held, removal, fragments, properties),
            )

        return commit_change(work, change, properties, commit)


class _StepAttempt:
    """The job's attempt, for a view that the job refreshes on the way."""

    def __init__(self, attempt: Attempt, spec: RefreshSpec) -> None:
        self._attempt = attempt
        self._view = spec.table_id
        self._name = "$".join(spec.table)
        self.job, self.number = attempt.job, attempt.number
        self.check, self.fence, self.publish = attempt.check, attempt.fence, attempt.publish
        self.find_obstacle = attempt.find_obstacle

    def progress(self, **values: Value) -> None:
        """Only the requested view's progress is the job's."""

    def phase(self, name: str) -> None:
        self._attempt.phase(f"{name} {self._name}")

    def log(self, text: str, level: str = "info") -> None:
        self._attempt.log(f"{self._name}: {text}", level)

    def errors(self, rows: Sequence[RowError], view: str = "") -> None:
        self._attempt.errors(rows, view or self._view)

    def error_rows(self) -> frozenset[int]:
        return self._attempt.error_rows()


RECIPE = Recipe(run_refreshes, sweep_refreshes)
