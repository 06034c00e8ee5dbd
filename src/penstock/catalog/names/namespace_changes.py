"""Drop a namespace, after a look at the Iceberg views elsewhere that read what is in it."""

from penstock.catalog.catalog import Catalog
from penstock.catalog.impact import iceberg_readers
from penstock.catalog.names import namespaces
from penstock.model.allowances import NOTHING_BREAKS, Allowance
from penstock.model.identifiers import Identifier
from penstock.model.origins import NOBODY, Origin


async def drop(
    catalog: Catalog,
    id: Identifier,
    mode: str,
    behavior: str,
    origin: Origin = NOBODY,
    allowed: Allowance = NOTHING_BREAKS,
) -> dict[str, str]:
    """Drop a namespace; mode is fail or skip, behavior restrict or cascade."""
    named_by: list[str] = []
    # Without Cascade it is dropped only when it is empty, and then nothing reads it.
    if behavior == "cascade" and id and not allowed.force:
        found = await iceberg_readers.find_readers_of_namespace(catalog, id)
        named_by = [view.id for view in found]
    return await namespaces.drop(catalog, id, mode, behavior, origin, allowed, named_by)
