"""pyiceberg, as the tests have it, against the Iceberg protocol."""

from collections.abc import Iterator
from importlib.metadata import version

from tests.engines.checks import carry_out
from tests.engines.place import Place
from tests.engines.pyiceberg import tables, views
from tests.engines.pyiceberg.catalog import connect
from tests.engines.results import Result


def run(place: Place) -> Iterator[Result]:
    catalog = connect(place)
    try:
        made = tables.list_operations(catalog, place.outside)
        yield from carry_out([*made, *views.list_operations(catalog)])
    finally:
        catalog.close()


def versions(place: Place) -> dict[str, str]:
    return {name: version(name) for name in ("pyiceberg", "pyarrow")}
