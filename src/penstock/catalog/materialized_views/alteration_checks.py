"""What stands in the way of an alteration: what others have built on columns that would go."""

from collections.abc import Sequence

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.impact.columns import find_column_readers
from penstock.catalog.materialized_views.materialized_views import MaterializedView
from penstock.catalog.names import dependents
from penstock.errors import InvalidRequest, TableInUse
from penstock.jobs.refresh.altering.changes import compare_definitions
from penstock.lance.columns.computed import list_computed
from penstock.lance.columns.fields import parse_path, show_path
from penstock.lance.doors import lance
from penstock.lance.indexes import list_indexed
from penstock.lance.write.view_tables import read_schema
from penstock.model.origins import Origin
from penstock.model.tables import MAIN
from penstock.model.views import Definition


async def check(
    catalog: Catalog,
    view: MaterializedView,
    before: Definition,
    after: Definition,
    origin: Origin,
) -> None:
    """Refuse an alteration that breaks an index, a computed column or a view, and name it."""
    changes = compare_definitions(before, after)
    old, new = read_schema(before), read_schema(after)
    retyped = [n for n in new.names if n in old.names and old.field(n).type != new.field(n).type]
    broken = [*changes.dropped, *retyped]

    def work(dataset: "lance.LanceDataset") -> None:
        theirs = [name for name in dataset.schema.names if name not in old.names]
        if clash := next((name for name in new.names if name in theirs), None):
            raise InvalidRequest(
                f"the new query gives a column {clash}, and one of that name was added to the view",
                detail="give the output another name with AS, or drop that column first",
            )
        for index, columns in list_indexed(dataset):
            if lost := next((name for name in columns if name in changes.replaced), None):
                raise TableInUse(
                    f"column {lost} would be replaced, and index {index} is on it",
                    detail=f"drop index {index} first, and create it again afterwards",
                )
        for column in list_computed(dataset.schema):
            if column.name in theirs and (lost := _find_lost(column.inputs, broken)):
                raise TableInUse(
                    f"column {lost} would be dropped or get another type, and computed column "
                    f"{column.name} reads it",
                    detail=f"drop column {column.name} first, or keep {lost} in the query",
                )

    await datasets.read(catalog, view.table, MAIN, None, work)
    if not broken:
        return
    readers = await find_column_readers(
        catalog, view.table, MAIN, [show_path((n,)) for n in broken]
    )
    if views := [*readers.views, *readers.iceberg]:
        told = await dependents.tell(catalog.database, views, origin)
        raise TableInUse(
            f"column {', '.join(broken)} would be dropped or get another type, and it is read by "
            f"{told}",
            detail="alter or drop these first, or keep the column in the query as it is",
        )


def _find_lost(paths: Sequence[str], broken: Sequence[str]) -> str | None:
    return next((name for path in paths if (name := parse_path(path)[0]) in broken), None)
