"""The definitions that a view has had: who made each, when, and for which versions."""

from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.materialized_views.materialized_views import MaterializedView, SentDefinition
from penstock.database.interface import Row
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.udtfs import read_udtf

PARTS = ("source_query", "output_schema", "udtf_spec", "inherited")


@dataclass(frozen=True, slots=True)
class PastDefinition:
    """A definition of a view, as it was sent, without code."""

    edition: int
    # The first version of the view that was made by it.
    version: int
    asked: SentDefinition
    # The name and version of the function that makes the rows.
    function: str | None
    # What was sent differently than for the definition before.
    changed: tuple[str, ...]
    # Empty for the first definition.
    job_id: str
    made_by: str
    made_at: int


async def list_definitions(
    catalog: Catalog, view: MaterializedView, page: PageRequest
) -> Page[PastDefinition]:
    """The definitions of a view, newest first."""
    below = int(page.after) if page.after else 2**62
    # One more than is shown, to tell the last one shown from the one before it.
    rows = await catalog.database.fetch(
        "SELECT edition, request, version, job_id, made_by, made_at FROM view_definitions "
        "WHERE view_id = $1 AND edition < $2 ORDER BY edition DESC LIMIT $3",
        *(view.table.id, below, page.limit + 1),
    )
    asked = [msgspec.json.decode(row[1], type=SentDefinition) for row in rows]
    befores = [*asked[1:], None]
    found = [_to_past(*each) for each in zip(rows, asked, befores, strict=True)]
    return cut_page(page, found, [str(each.edition) for each in found])


def _to_past(row: Row, asked: SentDefinition, before: SentDefinition | None) -> PastDefinition:
    edition, _, version, job_id, made_by, made_at = row
    changed: tuple[str, ...] = ()
    if before is not None:
        changed = tuple(n for n in PARTS if _get(asked, n) != _get(before, n))
    udtf = read_udtf(asked.kind, asked.udtf_spec)
    function = None if udtf is None else f"{udtf.name}@{udtf.version}"
    return PastDefinition(edition, version, asked, function, changed, job_id, made_by, made_at)


def _get(asked: SentDefinition, name: str) -> Any:
    return getattr(asked, name)
