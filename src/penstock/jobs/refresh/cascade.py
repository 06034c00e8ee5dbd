"""A view refreshed together with the views that it reads: one vector of versions, one publication.

The first attempt chooses a version of every table that is no view of the cascade. Views are
computed in order; each new version is held back, and the views after it read it all the same. At
the end the catalog takes all of them, or none. Each carries the job's id and its watermark, so an
attempt that comes after that only reports, also of views for which there was nothing to do.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import convert, structs

from penstock.crash import crash_point
from penstock.errors import LeaseLost, PenstockError
from penstock.jobs.engine.attempt import Attempt, Value
from penstock.jobs.refresh import view_notes
from penstock.jobs.refresh.commit import commit_change
from penstock.jobs.refresh.context import Change, Context, Work
from penstock.jobs.refresh.history import MODE_PROPERTY, REASON_PROPERTY, Refreshed, commit_refresh
from penstock.jobs.refresh.plan import check_pin, choose_versions, look_back
from penstock.jobs.refresh.run import Refreshing, RefreshOutcome, run_refresh, sweep_refresh
from penstock.jobs.refresh.view_notes import FIRST_PINS, Pin
from penstock.jobs.spark.tasks import Engine
from penstock.lance.commit.transaction import transaction_of
from penstock.lance.session.remote import RemoteCatalog
from penstock.lance.session.unpublished import UnpublishedCatalog
from penstock.model.functions import RowError
from penstock.model.views import RefreshResult, RefreshSpec, Source, Watermark

if TYPE_CHECKING:
    from lance import LanceDataset

    from penstock.lance.commit.removal import Removal


class GetEngine(Protocol):
    """The engine as a job needs it, or as the view does whose spec is given."""

    def __call__(self, of: Mapping[str, Any] | None = None) -> Engine: ...


def run_refreshes(
    spec: Mapping[str, Any], catalog: RemoteCatalog, get_engine: GetEngine, attempt: Attempt
) -> RefreshResult:
    """Refresh the view, after those that are to be refreshed with it."""
    if not spec.get("upstream"):
        return run_refresh(spec, catalog, get_engine, attempt)
    return _Cascade(spec, catalog, get_engine, attempt).run()


def sweep_refreshes(spec: Mapping[str, Any], catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """Remove what a finished job wrote and no version refers to; returns how many files."""
    removed = 0
    for each in (*spec.get("upstream", ()), spec):
        place = catalog.locate(each["table"], "").place()
        # Its own folder last, which tells of the others.
        for key in (*view_notes.list_keys(place, job), job):
            removed += sweep_refresh(each, catalog, key, attempt)
    return removed


class _Cascade:
    """One attempt."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        catalog: RemoteCatalog,
        get_engine: GetEngine,
        attempt: Attempt,
    ) -> None:
        self._given = [*spec["upstream"], spec]
        self._specs = [convert(each, RefreshSpec) for each in self._given]
        self._ids = {each.table_id for each in self._specs}
        self._catalog = catalog
        self._held = UnpublishedCatalog(catalog, attempt.job)
        self._get_engine = get_engine
        self._attempt = attempt

    def run(self) -> RefreshResult:
        numbers = range(len(self._specs))
        done: list[tuple[_Step, RefreshOutcome | Refreshed]]
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
        """Whether an earlier attempt published what it made, and could not tell.

        Views for which it had nothing to do must stay as they are then: the others follow them.
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
        """Choose versions of the tables that all begins at, and have them stay for each view."""
        place = self._held.locate(self._specs[-1].table, "").place()
        pins = view_notes.find_pins(place, self._attempt.job, FIRST_PINS) or {}
        tables = {s.id: s for spec in self._specs for s in self._list_tables(spec)}
        newest = {id: self._catalog.open_latest(s.table, "") for id, s in tables.items()}
        for id in newest.keys() - pins.keys():
            pins[id] = Pin(newest[id].version, transaction_of(newest[id]))
        for id, source in tables.items():
            check_pin(newest[id], source, pins[id])
        for spec in self._specs:
            for source in self._list_tables(spec):
                view_notes.keep_version(newest[source.id], spec.table_id, pins[source.id].version)
        if not view_notes.write_pins(place, self._attempt.job, pins, FIRST_PINS):
            raise LeaseLost("another attempt has begun, with other versions")
        for id, source in tables.items():
            self._held.pin(source.table, pins[id].version)

    def _keep(self, spec: RefreshSpec, watermark: Watermark) -> None:
        """Have the versions of other views stay for a view; they are published by now."""
        for source in spec.definition.sources:
            if source.id not in self._ids:
                continue
            try:
                newest = self._catalog.open_latest(source.table, "")
                view_notes.keep_version(newest, spec.table_id, watermark.versions[source.id])
            except PenstockError as error:
                # The next refresh may have to compute everything, but this one is done.
                self._attempt.log(f"{'$'.join(source.table)} is not kept: {error.message}")

    def _list_tables(self, spec: RefreshSpec) -> list[Source]:
        return [each for each in spec.definition.sources if each.id not in self._ids]

    def _make_step(self, number: int) -> "_Step":
        spec, given = self._specs[number], self._given[number]
        is_last = spec is self._specs[-1]
        return _Step(
            spec,
            self._held,
            (lambda: self._get_engine()) if is_last else (lambda: self._get_engine(given)),
            self._attempt if is_last else _StepAttempt(self._attempt, spec),
            self._ids,
        )

    def _work(self, number: int) -> "tuple[_Step, RefreshOutcome | Refreshed]":
        step, table = self._make_step(number), self._specs[number].table
        done = step.work()
        if isinstance(done, Refreshed):
            self._held.pin(table, done.version)
        elif done.version is None:
            self._held.pin(table, done.watermark.view_version)
        return step, done


class _Step(Refreshing):
    """One view of a cascade: what it commits is held back."""

    def __init__(
        self,
        spec: RefreshSpec,
        catalog: UnpublishedCatalog,
        get_engine: Callable[[], Engine],
        attempt: Attempt,
        views: set[str],
    ) -> None:
        super().__init__(spec, catalog, get_engine, attempt)
        self._hold = catalog.hold
        self._views = views
        self._key = ""

    def find(self) -> Refreshed:
        """The view as an earlier attempt made it, or left it because there was nothing to do."""
        self._view = self._catalog.open_latest(self._given.table, "")
        spec, history = look_back(self._given, self._view)
        self._known = [self._given.watermark, spec.watermark]
        if history.refresh is not None and history.refresh.job == self._attempt.job:
            return history.refresh
        known = spec.watermark or Watermark(versions={}, digest="", view_version=self._view.version)
        # Nobody noted the versions at which nothing came of a source that is new to the view.
        versions = {each.id: known.versions.get(each.id, 0) for each in spec.definition.sources}
        watermark = structs.replace(known, versions=versions)
        told = {MODE_PROPERTY: "none", REASON_PROPERTY: "an earlier attempt left it as it was"}
        return Refreshed(known.view_version, "", watermark, told)

    def _pin(self, spec: RefreshSpec) -> dict[str, Pin]:
        """The versions that the cascade has of the sources."""
        return choose_versions(spec, self._newest)

    def _note(self, pins: Mapping[str, Pin]) -> bool:
        """Views of the cascade may have other versions in each attempt, so what is computed from
        them is kept under a name that tells of which.
        """
        if not self._views & pins.keys():
            return super()._note(pins)
        text = msgspec.json.encode([self._attempt.job, dict(pins)], order="sorted").decode()
        self._key = str(uuid.uuid5(uuid.NAMESPACE_OID, text))
        view_notes.write_key(self._place, self._attempt.job, self._key)
        return True

    def _start(self, context: Context) -> Work:
        work = super()._start(context)
        return work if not self._key else replace(work, attempt=_Keyed(self._attempt, self._key))

    def _commit(self, work: Work, change: Change, properties: dict[str, str]) -> int | None:
        def commit(
            view: "LanceDataset",
            removal: "Removal",
            fragments: Sequence[str],
            properties: Mapping[str, str],
        ) -> int:
            return self._hold(
                work.spec.table,
                view,
                lambda held: commit_refresh(held, removal, fragments, properties),
            )

        return commit_change(replace(work, attempt=self._attempt), change, properties, commit)


class _StepAttempt:
    """The job's attempt as a view sees it that the job refreshes on the way."""

    def __init__(self, attempt: Attempt, spec: RefreshSpec) -> None:
        self._attempt = attempt
        self._view = spec.table_id
        self._name = "$".join(spec.table)
        self.job, self.number = attempt.job, attempt.number
        self.check, self.fence, self.publish = attempt.check, attempt.fence, attempt.publish

    def progress(self, **values: Value) -> None:
        """The job's figures are those of the view that was asked for."""

    def log(self, text: str, level: str = "info") -> None:
        self._attempt.log(f"{self._name}: {text}", level)

    def errors(self, rows: Sequence[RowError], view: str = "") -> None:
        self._attempt.errors(rows, view or self._view)

    def error_rows(self) -> frozenset[int]:
        return self._attempt.error_rows()


class _Keyed:
    """An attempt whose work is kept under another name than the job's."""

    def __init__(self, attempt: Attempt, key: str) -> None:
        self.job, self.number = key, attempt.number
        self.check, self.fence, self.publish = attempt.check, attempt.fence, attempt.publish
        self.progress, self.log = attempt.progress, attempt.log
        self.errors, self.error_rows = attempt.errors, attempt.error_rows
