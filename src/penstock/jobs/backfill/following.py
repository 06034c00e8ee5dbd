"""What a function fills, found by its binding in any version of a table. All of it blocks."""

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.jobs.backfill.watermarks import Bound
from penstock.lance.columns import computed

if TYPE_CHECKING:
    from lance import LanceDataset


def follow(dataset: "LanceDataset", bound: Bound) -> Bound:
    """The same with the names that the columns have in this version; raises when they are gone."""
    return replace(bound, columns=computed.follow(dataset.schema, bound.binding, bound.columns))
