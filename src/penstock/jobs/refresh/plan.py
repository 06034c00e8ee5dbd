"""Plan a refresh: open the sources in two versions, and say what changed or why to rebuild."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance import LanceDataset
from msgspec import structs

from penstock.errors import (
    InvalidRequest,
    InvalidTableState,
    NotFound,
    VersionNotFound,
)
from penstock.jobs.refresh.altering.changes import find_changes
from penstock.jobs.refresh.altering.explain import explain_alteration
from penstock.jobs.refresh.context import Context, Plan, SourceVersions, plan_nothing
from penstock.jobs.refresh.history import History, find_changed, find_moved, read_history
from penstock.jobs.refresh.iceberg.versions import find_replaced, open_tables
from penstock.jobs.refresh.rows import plan as rows
from penstock.jobs.refresh.strategies import STRATEGIES, find_strategy
from penstock.jobs.refresh.view_notes import Pin, Pins, read_failed, read_partitions
from penstock.jobs.specs import RefreshSpec
from penstock.lance.columns.fields import show_path
from penstock.lance.columns.schemas import decode_schema
from penstock.lance.commit.transaction import transaction_of
from penstock.lance.diff.row_diff import compare
from penstock.lance.errors import translated
from penstock.lance.session.remote import Location
from penstock.model.moments import define_at
from penstock.model.views import Source, Watermark

# Where a table is, and its newest version.
Opener = Callable[[Sequence[str]], "tuple[Location, LanceDataset]"]


def look_back(spec: RefreshSpec, view: LanceDataset) -> tuple[RefreshSpec, History]:
    """The spec with the view's own watermark: a refresh may have committed without reporting."""
    since = 0 if spec.watermark is None else spec.watermark.view_version
    history = read_history(view, since)
    if history.refresh is not None:
        spec = structs.replace(spec, watermark=history.refresh.watermark)
    elif since > view.version:
        history = History(None, f"version {since}, which the last refresh made, is not there")
    if (history.is_altered or history.gap) and not history.foreign and spec.watermark is not None:
        history = history._replace(foreign=_why_unlike(spec, spec.watermark, view, history.gap))
    return spec, history


def _why_unlike(spec: RefreshSpec, watermark: Watermark, view: LanceDataset, gap: str) -> str:
    """How the view differs from its last refresh; compares rows when some are unknown."""
    version = watermark.view_version
    try:
        with translated():
            then = view.checkout_version(version)
    except (InvalidRequest, InvalidTableState, NotFound):
        return f"version {version} of the view is gone"
    names = decode_schema(spec.made_by.schema).names
    if moved := find_moved(view, then, names):
        return f"column {moved} of the view is not the one that was filled"
    is_used = spec.mode != "full" and watermark.digest == spec.made_then.digest
    if not gap or not is_used or not view.has_stable_row_ids:
        return gap
    is_same = compare(view, then, [show_path((name,)) for name in names]).is_empty
    return "" if is_same else f"somebody else changed rows of the view, and {gap}"


def choose_versions(
    spec: RefreshSpec, newest: Mapping[str, tuple[Location, LanceDataset]]
) -> dict[str, Pin]:
    """The versions of the sources that the view is to follow."""
    if spec.src_version is not None and len(spec.definition.sources) != 1:
        raise InvalidRequest(
            f"src_version is for views of one source, and this one has "
            f"{len(spec.definition.sources)}",
            detail="leave src_version out",
        )
    pins = {id: Pin(state.snapshot, state.uuid, state.file) for id, state in spec.iceberg.items()}
    for source in spec.definition.tables:
        _, dataset = newest[source.id]
        if spec.src_version is not None:
            dataset = _open(dataset, source, spec.src_version)
        pins[source.id] = Pin(dataset.version, transaction_of(dataset))
    return pins


def choose_moment(specs: Sequence[RefreshSpec]) -> int | None:
    """The current time, if a query of these reads the clock."""
    if all(spec.definition.clock is None for spec in specs):
        return None
    return time.time_ns() // 1000


def make_context(
    spec: RefreshSpec,
    location: Location,
    view: LanceDataset,
    newest: Mapping[str, tuple[Location, LanceDataset]],
    pins: Pins,
    foreign: str,
) -> Context:
    """Open the versions to compare; raises InvalidRequest when "incremental" is impossible."""
    rebuild = _why_rebuild(spec, view, foreign) or _why_unknown(location, spec.watermark)
    rebuild = rebuild or _why_timed(spec, pins.moment)
    sources: dict[str, SourceVersions] = {}
    for source in define_at(spec.definition, pins.moment).tables:
        where, dataset = newest[source.id]
        now = check_pin(dataset, source, pins.versions[source.id])
        if changed := find_changed(now, source):
            # The definition was made for other columns; retrying changes nothing.
            raise InvalidRequest(
                f"{_show(source)} is not what it was when the refresh was requested: {changed}",
                detail="request the refresh again",
            )
        then: LanceDataset | None = None
        if not rebuild:
            found = _find_then(dataset, source, spec.watermark)
            rebuild, then = (found, None) if isinstance(found, str) else ("", found)
        version = None if then is None else then.version
        if not now.has_stable_row_ids and version != now.version:
            rebuild = rebuild or (
                f"{_show(source)} has no stable row ids, so it is not known which rows changed"
            )
        names = spec.followed.names.get(source.id, {}) if spec.followed is not None else {}
        sources[source.id] = SourceVersions(source, where, now.version, now, version, then, names)
    iceberg = open_tables(spec, pins, location)
    if not rebuild:
        rebuild = find_replaced(iceberg, spec.watermark)
    if rebuild:
        sources = {id: _without_then(each) for id, each in sources.items()}
        iceberg = {id: replace(each, then=None) for id, each in iceberg.items()}
        if spec.mode == "incremental":
            raise InvalidRequest(
                f"{'$'.join(spec.table)} cannot be refreshed incrementally: {rebuild}",
                detail="leave mode out, or set it to full",
            )
    return Context(
        spec=spec,
        location=location,
        view=view,
        sources=sources,
        iceberg=iceberg,
        moment=pins.moment,
        rebuild=rebuild,
    )


def check_pin(dataset: LanceDataset, source: Source, pin: Pin) -> LanceDataset:
    """The chosen version of a source; raises when another one took its place."""
    now = _open(dataset, source, pin.version)
    if pin.transaction not in ("", transaction_of(now)):
        raise InvalidTableState(
            f"version {now.version} of {_show(source)} is another one than when the job began",
            detail="request the refresh again",
        )
    return now


def plan_refresh(context: Context) -> Plan:
    """The plan of the refresh: nothing when no source changed, else that of its strategy."""
    strategy = find_strategy(context.definition)
    if context.spec.alteration is not None:
        altered = None if context.rebuild else strategy.plan_altered
        return (altered or strategy.plan)(context)
    watermark = context.watermark
    is_same = all(each.is_same for each in context.sources.values())
    is_same = is_same and all(each.is_same for each in context.iceberg.values())
    is_same = is_same and (watermark is None or watermark.moment == context.moment)
    if (
        watermark is not None
        and is_same
        and not watermark.failed_rows
        and watermark.output_limit == context.spec.output_limit
    ):
        return plan_nothing("no source has changed since the last refresh")
    return strategy.plan(context)


def explain_refresh(spec: RefreshSpec, open_table: Opener) -> dict[str, Any]:
    """What a refresh with this spec would do now, as data."""
    location, view = open_table(spec.table)
    wanted, history = look_back(spec, view)
    newest = {source.id: open_table(source.table) for source in wanted.definition.tables}
    pins = Pins(choose_versions(wanted, newest), choose_moment([wanted]))
    context = make_context(wanted, location, view, newest, pins, history.foreign)
    definition, plan = wanted.definition, plan_refresh(context)
    if find_strategy(definition) is STRATEGIES["rows"]:
        # Not part of the plan: a refresh finds these numbers as it goes.
        plan = rows.count(context, plan)
    more: dict[str, Any] = {}
    if wanted.alteration is not None:
        plan, more = explain_alteration(context, plan)
    return {
        **plan.to_json(),
        **more,
        "kind": definition.kind,
        "shape": definition.shape,
        "obstacle": definition.obstacle,
        "source_versions": {
            "$".join(each.source.table): {"from": each.then, "to": each.now}
            for each in context.sources.values()
        }
        | {
            "$".join(each.source.table): {"from": each.then, "to": each.now}
            for each in context.iceberg.values()
        },
    }


def _why_rebuild(spec: RefreshSpec, view: LanceDataset, foreign: str) -> str:
    if spec.mode == "full":
        return "a full refresh was asked for"
    if spec.watermark is None:
        return "the view was never filled"
    if spec.watermark.digest != spec.made_then.digest:
        return "the view's query means something else than at its last refresh"
    if spec.watermark.versions.keys() != {source.id for source in spec.made_by.sources}:
        return "the view had other sources at its last refresh"
    if spec.alteration is not None and (reason := find_changes(spec).rebuild):
        return reason
    if spec.alteration is not None and spec.watermark.cut is not None:
        return "the query changed, and an output limit cut the view's rows"
    if not view.has_stable_row_ids:
        return "the view itself has no stable row ids"
    return foreign


def _why_timed(spec: RefreshSpec, moment: int | None) -> str:
    """Why a query that reads the clock cannot be followed from one moment to another."""
    watermark, strategy = spec.watermark, find_strategy(spec.definition)
    if watermark is None or watermark.moment == moment or strategy.follows_clock:
        return ""
    return "it reads the clock, and time has passed" + (
        f"; {spec.definition.obstacle}" if spec.definition.obstacle else ""
    )


def _why_unknown(location: Location, watermark: Watermark | None) -> str:
    """Why it is unknown what functions failed on, or were given; "" when it is known."""
    assert watermark is not None
    try:
        read_failed(location.place(), watermark.failed, watermark.failed_rows)
        read_partitions(location.place(), watermark.partitions)
    except InvalidTableState as error:
        return error.message
    return ""


def _without_then(each: SourceVersions) -> SourceVersions:
    return SourceVersions(each.source, each.location, each.now, each.dataset_now)


def _find_then(
    dataset: LanceDataset, source: Source, watermark: Watermark | None
) -> LanceDataset | str:
    """The version that the view follows now, or why there is none."""
    assert watermark is not None
    version = watermark.versions[source.id]
    gone = f"version {version} of {_show(source)}, which the view follows, is gone"
    try:
        with translated():
            then = dataset.checkout_version(version)
    except (InvalidRequest, InvalidTableState, NotFound):
        return gone
    known = watermark.transactions.get(source.id, "")
    return then if known in ("", transaction_of(then)) else gone


def _open(dataset: LanceDataset, source: Source, version: int) -> LanceDataset:
    if dataset.version == version:
        return dataset
    try:
        with translated():
            return dataset.checkout_version(version)
    except (InvalidRequest, InvalidTableState, NotFound) as error:
        raise VersionNotFound(
            f"version {version} of {_show(source)} cannot be opened: {error.message}",
            detail="choose a version that the source still has",
        ) from error


def _show(source: Source) -> str:
    return "$".join(source.table)
