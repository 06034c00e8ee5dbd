"""The plan of a backfill by a function, for those who only ask. All of it blocks."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import convert

from penstock.jobs.backfill.following import bind
from penstock.jobs.backfill.freshness import Freshness
from penstock.jobs.backfill.plan import Watermark, to_options
from penstock.jobs.backfill.plan_rows import plan_rows
from penstock.jobs.backfill.selection import Scope
from penstock.lance.errors import translated
from penstock.lance.session.remote import Location
from penstock.model.functions import identify

if TYPE_CHECKING:
    from lance import LanceDataset


def explain(
    dataset: "LanceDataset",
    spec: Mapping[str, Any],
    uri: str,
    options: Mapping[str, str],
    error_rows: Collection[int] | None = None,
) -> dict[str, Any]:
    """The plan that a backfill by a function with this spec would carry out, as data."""
    function = identify(spec["function"]["name"], spec["function"]["version"])
    wanted = to_options(spec, function=function)
    watermarks = convert(spec.get("watermarks") or (), tuple[Watermark, ...])
    location = Location(uri, spec.get("branch") or "", options)
    freshness = Freshness(bind(spec, function), watermarks, location)
    if spec.get("read_version") is not None:
        # That version only tells which rows are meant; what they need is read from the newest.
        with translated():
            dataset = dataset.checkout_version((location.branch or None, None))
    chosen = error_rows if spec.get("errors_only") else None
    scope = Scope(
        spec.get("where"), spec.get("read_version"), chosen, wanted.force, wanted.num_frags
    )
    return plan_rows(freshness.snapshot(dataset, scope), wanted).to_json()
