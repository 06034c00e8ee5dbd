"""What a function fills, found by its binding in any version of a table. All of it blocks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.jobs.backfill.watermarks import Bound
from penstock.lance.columns import computed

if TYPE_CHECKING:
    from lance import LanceDataset


def bind(spec: Mapping[str, Any], function: str) -> Bound:
    """What a job's spec says about the columns of its function."""
    columns = spec.get("columns") or (spec["column"],)
    return Bound(tuple(columns), tuple(spec["inputs"]), function, spec.get("binding") or "")


def follow(dataset: "LanceDataset", bound: Bound) -> Bound:
    """The same with the names that the columns have in this version; raises when they are gone."""
    return replace(bound, columns=computed.follow(dataset.schema, bound.binding, bound.columns))
