"""All families of attacks, by name: to add one, write its file and put its `make` here."""

from collections.abc import Callable, Iterator, Mapping

from tests.attack.attack import Attack
from tests.attack.families import (
    arrow,
    batches,
    bodies,
    console,
    expressions,
    http,
    iceberg_tables,
    locations,
    names,
    pickles,
    routes,
    sql,
    tokens,
)
from tests.attack.place import Place, imagined

FAMILIES: Mapping[str, Callable[[Place], Iterator[Attack]]] = {
    "routes": routes.make,
    "names": names.make,
    "bodies": bodies.make,
    "batches": batches.make,
    "locations": locations.make,
    "tokens": tokens.make,
    "http": http.make,
    "console": console.make,
    "arrow": arrow.make,
    "sql": sql.make,
    "pickles": pickles.make,
    "expressions": expressions.make,
    "iceberg tables": iceberg_tables.make,
}


def gather(family: str, place: Place) -> list[Attack]:
    """The attacks of a family, each once."""
    found: dict[str, Attack] = {}
    for attack in FAMILIES[family](place):
        found.setdefault(attack.digest, attack)
    return list(found.values())


def count() -> dict[str, int]:
    """How many different attacks there are, by family; none is counted twice."""
    seen: set[str] = set()
    found = {}
    for family in FAMILIES:
        new = {attack.digest for attack in gather(family, imagined())} - seen
        seen |= new
        found[family] = len(new)
    return found
