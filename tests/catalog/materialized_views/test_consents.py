"""What counts as consented to, at the level of records: editions, unknown authors, strange ways."""

import pytest

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views.iceberg_views import Edition
from penstock.catalog.materialized_views import consents
from penstock.catalog.names.view_sources import InnerName
from penstock.catalog.statements.lookup import QuerySources
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit
from penstock.model.identifiers import Identifier

pytestmark = pytest.mark.anyio

# A materialized view `m` that reads the table `t`, and `u`, by way of the Iceberg view `i`.
RECORDS = (
    *(
        f"INSERT INTO objects VALUES ('{id}', '', '{id}', '{kind}', '{{}}', 0)"
        for id, kind in (("t", "table"), ("u", "table"), ("m", "table"), ("i", "view"))
    ),
    "INSERT INTO tables VALUES ('t', 'a', 1), ('u', 'b', 1), ('m', 'c', 1)",
    "INSERT INTO views VALUES ('i', 'd', 'd', 'file', '{}', 'first', '[\"eve\"]')",
    "INSERT INTO materialized_views VALUES "
    "('m', 'query', '{}', '{}', '[\"ann\"]', 0, NULL, NULL, NULL, 0, 0)",
)


def read(
    edition: Edition, *below: str, direct: tuple[str, ...] = (), **renamed: str
) -> QuerySources:
    """What `m` reads: `i`, whose SQL names what is below it, or gives it another name."""
    names: dict[Identifier, str] = {(id,): id for id in ("i", *direct)}
    meant = {each: each for each in below} | renamed
    inner = tuple(InnerName(name, (), id) for name, id in meant.items())
    return QuerySources(names, {"i": inner}, {"i": edition}, {"i": frozenset(meant.values())}, {})


async def prepare(tx: Transaction, reading: QuerySources) -> None:
    for statement in RECORDS:
        await tx.fetch(statement)
    await consents.record(tx, "m", reading, {"t": "ann"})


async def test_an_edition_that_is_not_the_newest_is_not_consented_to(catalog: Catalog) -> None:
    await catalog.database.write(prepare, read(Edition("first", ("eve",)), "t"))
    late = read(Edition("second", ("eve",)), "t", "u")
    with pytest.raises(ConcurrentCommit, match="changed meanwhile"):
        await catalog.database.write(consents.record, "m", late, {})
    rows = await catalog.database.fetch(
        "SELECT source_id, edition, consented_by FROM view_sources WHERE view_id = 'm' ORDER BY 1"
    )
    assert [tuple(row) for row in rows] == [("i", "first", ""), ("t", "", "ann")]


@pytest.mark.parametrize(
    ("reading", "gaps"),
    [
        (read(Edition("first", None), "t"), []),
        # Trusted, because it was written without authentication.
        (read(Edition("second", ()), "t", "u"), []),
        (read(Edition("second", ("eve",)), "t", "u"), ["t", "u"]),
        # Nobody knows who wrote it.
        (read(Edition("second", None), "t"), ["t"]),
        # It came by no Iceberg view that was edited.
        (read(Edition("first", ("eve",)), "t", direct=("u",)), ["u"]),
        # A name in one that was not edited stands for something else, or for it under a new name.
        (read(Edition("first", ("eve",)), t="u"), ["u"]),
        (read(Edition("first", ()), t="u"), []),
        (read(Edition("first", ("eve",)), new="t"), []),
        (read(Edition("first", ("eve",)), new="u"), ["u"]),
    ],
)
async def test_what_needs_consent(catalog: Catalog, reading: QuerySources, gaps: list[str]) -> None:
    await catalog.database.write(prepare, read(Edition("first", ("eve",)), "t"))
    found, _ = await catalog.database.read(consents.find_gaps, "m", reading)
    assert [need.id for gap in found for need in gap.needs] == [(id,) for id in gaps]


async def test_names_that_a_release_before_did_not_record_count_by_what_was_read(
    catalog: Catalog,
) -> None:
    await catalog.database.write(prepare, read(Edition("first", ("eve",)), "t"))
    await catalog.database.write(forget_names)
    for reading, gaps in (
        (read(Edition("first", ("eve",)), "t"), []),
        (read(Edition("first", ("eve",)), t="u"), ["u"]),
    ):
        found, _ = await catalog.database.read(consents.find_gaps, "m", reading)
        assert [need.id for gap in found for need in gap.needs] == [(id,) for id in gaps]


async def forget_names(tx: Transaction) -> None:
    """Record all names as the view's own, as it was done before migration 21."""
    await tx.fetch("UPDATE view_sources SET reader = ''")
