"""Explain a backfill, with the planner of its runs. Blocks."""

from collections.abc import Collection
from typing import Any

from lance import LanceDataset

from penstock.jobs.backfill.planning import BackfillTable, make_planner
from penstock.jobs.specs import BackfillSpec
from penstock.lance.errors import translated
from penstock.lance.session.remote import Location


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
    return planner.plan(opened, spec.to_options()).to_json()
