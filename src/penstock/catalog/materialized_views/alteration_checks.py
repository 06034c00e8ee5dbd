"""What stands in the way of an alteration: what others have built on columns that would go.

This checks the request. What comes while its job waits is looked at in `overtaken_alterations`, and
by the job.
"""

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.impact import overtaken_alterations as overtaken
from penstock.catalog.impact.columns import find_column_readers
from penstock.catalog.materialized_views.materialized_views import MaterializedView
from penstock.errors import InvalidRequest
from penstock.jobs.doors import uses
from penstock.jobs.refresh.altering.changes import find_broken
from penstock.lance.columns.fields import show_path
from penstock.lance.doors import lance
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
    old, new = read_schema(before), read_schema(after)
    broken = find_broken(before, after)

    def work(dataset: "lance.LanceDataset") -> None:
        theirs = [name for name in dataset.schema.names if name not in old.names]
        if clash := next((name for name in new.names if name in theirs), None):
            raise InvalidRequest(
                f"the new query gives a column {clash}, and one of that name was added to the view",
                detail="give the output another name with AS, or drop that column first",
            )
        uses.check_uses(dataset, before, after)

    await datasets.read(catalog, view.table, MAIN, None, work)
    if not broken:
        return
    readers = await find_column_readers(
        catalog, view.table, MAIN, [show_path((n,)) for n in broken]
    )
    if views := [*readers.views, *readers.iceberg]:
        raise await overtaken.refuse(catalog.database, broken, views, origin)
