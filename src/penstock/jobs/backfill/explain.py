"""Explain a backfill, with the planner of its runs. Blocks."""

from collections.abc import Collection
from typing import Any

from lance import LanceDataset

from penstock.jobs.backfill.plan import Fill, UpToDate
from penstock.jobs.backfill.planning import BackfillTable, make_planner
from penstock.jobs.engine.null_rows import count_null_rows
from penstock.jobs.specs import BackfillSpec
from penstock.lance.diff.masks import unpack
from penstock.lance.errors import translated
from penstock.lance.session.remote import Location
from penstock.model.functions import Function


def explain_backfill(
    dataset: LanceDataset,
    spec: BackfillSpec,
    location: Location,
    error_rows: Collection[int] | None = None,
) -> dict[str, Any]:
    """The plan that a backfill with this spec would carry out, as data.

    The dataset is open in the version that was asked for.
    """

    def open_latest() -> LanceDataset:
        with translated():
            return dataset.checkout_version((location.branch or None, None))

    def open_asked() -> LanceDataset:
        return dataset

    newest = open_asked if spec.read_version is None else open_latest
    planner = make_planner(spec, BackfillTable(location, newest, lambda: error_rows or ()))
    opened = dataset if spec.function is None else planner.open()
    plan = planner.plan(opened, spec.to_options())
    shown = plan.to_json()
    if (function := planner.function) is None or not function.required:
        return shown
    nulls = _count_nulls(opened, plan, function)
    return shown | {"function_calls": plan.function_calls - (nulls or 0), "rows_null": nulls}


def _count_nulls(dataset: LanceDataset, plan: UpToDate | Fill, function: Function) -> int | None:
    """How many of the rows get null because an input is null; None where that is not known."""
    work = () if isinstance(plan, UpToDate) else plan.work
    parts = (
        (each.id, None if each.need is None else unpack(each.need, each.physical_rows))
        for each in work
    )
    return count_null_rows(dataset, parts, [function.inputs[n] for n in function.required])
