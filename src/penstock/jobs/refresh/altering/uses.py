"""Indexes and computed columns of a view that an alteration would take the columns from."""

from collections.abc import Sequence

from lance import LanceDataset

from penstock.errors import TableInUse
from penstock.jobs.refresh.altering.changes import compare_definitions, find_broken
from penstock.lance.columns.computed import list_computed
from penstock.lance.columns.fields import parse_path
from penstock.lance.columns.schemas import decode_schema
from penstock.lance.indexes import list_indexed
from penstock.model.views import Definition


def check_uses(view: LanceDataset, before: Definition, after: Definition) -> None:
    """Refuse an alteration that breaks an index or a computed column, and name it."""
    replaced, broken = compare_definitions(before, after).replaced, find_broken(before, after)
    own = decode_schema(before.schema).names
    for index, columns in list_indexed(view):
        if lost := next((name for name in columns if name in replaced), None):
            raise TableInUse(
                f"column {lost} would be replaced, and index {index} is on it",
                detail=f"drop index {index} first, and create it again afterwards",
            )
    for column in list_computed(view.schema):
        if column.name not in own and (lost := _find_lost(column.inputs, broken)):
            raise TableInUse(
                f"column {lost} would be dropped or get another type, and computed column "
                f"{column.name} reads it",
                detail=f"drop column {column.name} first, or keep {lost} in the query",
            )


def _find_lost(paths: Sequence[str], broken: Sequence[str]) -> str | None:
    return next((name for path in paths if (name := parse_path(path)[0]) in broken), None)
