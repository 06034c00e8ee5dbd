"""Whether the catalog's parts answer, and how much work waits."""

from penstock.catalog.catalog import Catalog
from penstock.datasets import files


async def check_database(catalog: Catalog) -> None:
    """Raise when the database does not answer."""
    await catalog.database.fetch_one("SELECT count(*) FROM locks")


async def check_storage(catalog: Catalog) -> None:
    """Raise when the lake's root cannot be listed."""
    await catalog.lake.run(files.check_root, catalog.lake.place(catalog.lake.root))


async def count_work(catalog: Catalog) -> dict[str, int]:
    """What maintenance has to do, by kind."""
    found = {}
    for name, sql in (
        ("unsettled_versions", "SELECT count(*) FROM table_versions WHERE settled = 0"),
        ("removals", "SELECT count(*) FROM removals"),
    ):
        row = await catalog.database.fetch_one(sql)
        found[name] = row[0] if row else 0
    return found
