"""The plan of a backfill, for those who only ask: made by the planner of its runs. It blocks."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import convert

from penstock.jobs.backfill.planning import Table, make_planner
from penstock.jobs.specs import BackfillSpec
from penstock.lance.errors import translated
from penstock.lance.session.remote import Location

if TYPE_CHECKING:
    from lance import LanceDataset


def explain_backfill(
    dataset: "LanceDataset",
    spec: Mapping[str, Any],
    location: Location,
    error_rows: Collection[int] | None = None,
) -> dict[str, Any]:
    """The plan that a backfill with this spec would carry out, as data.

    The dataset is open in the version that was asked for.
    """
    wanted = convert(spec, BackfillSpec)

    def open_latest() -> "LanceDataset":
        with translated():
            return dataset.checkout_version((location.branch or None, None))

    def open_asked() -> "LanceDataset":
        return dataset

    newest = open_asked if wanted.read_version is None else open_latest
    planner = make_planner(wanted, Table(location, newest, lambda: error_rows or ()))
    opened = dataset if wanted.function is None else planner.open()
    return planner.plan(opened, wanted.to_options()).to_json()
