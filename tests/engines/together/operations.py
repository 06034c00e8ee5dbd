"""Each engine makes a table, each of them writes to it in every way, and all read the same."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.engines.checks import Check, Rows, expect
from tests.engines.together.parties import Party, Pyiceberg, Sql

INSERTS = 5


def list_operations(spark: Sql, trino: Sql, pyiceberg: Pyiceberg) -> Iterator[Check]:
    parties: list[Party] = [spark, trino, pyiceberg]
    for maker in parties:
        table = f"by_{maker.name}"
        yield Check(f"{maker.name} makes a table that all read", partial(_make, maker, parties))
        for writer in parties:
            told = f"{writer.name} inserts, changes and deletes in {maker.name}'s table"
            yield Check(told, partial(_change, writer, table, parties))
    yield Check("all add columns to one table and see them", partial(_grow, parties))
    yield Check("all write to one table at once", partial(_race, parties))
    yield from _views(spark, trino, pyiceberg)


def _make(maker: Party, parties: Sequence[Party]) -> None:
    table = f"by_{maker.name}"
    maker.create(table)
    maker.insert(table, 1, maker.name)
    _all_see(parties, table, [[1, maker.name]])


def _change(writer: Party, table: str, parties: Sequence[Party]) -> None:
    """The table is at the end as it was; all look after each step."""
    first = writer.rows(table)
    writer.insert(table, 8, "eight")
    writer.insert(table, 9, "nine")
    _all_see(parties, table, [*first, [8, "eight"], [9, "nine"]])
    writer.rename_row(table, 8, "VIII")
    _all_see(parties, table, [*first, [8, "VIII"], [9, "nine"]])
    writer.delete(table, 9)
    _all_see(parties, table, [*first, [8, "VIII"]])
    writer.delete(table, 8)
    _all_see(parties, table, first)


def _all_see(parties: Sequence[Party], table: str, rows: Rows) -> None:
    found = {each.name: each.rows(table) for each in parties}
    expect(found, {each.name: rows for each in parties})


def _grow(parties: Sequence[Party]) -> None:
    table = f"by_{parties[0].name}"
    for party in parties:
        party.grow(table, f"of_{party.name}")
    wanted = ["id", "name", *[f"of_{party.name}" for party in parties]]
    expect(
        {party.name: party.columns(table) for party in parties}, {p.name: wanted for p in parties}
    )


def _race(parties: Sequence[Party]) -> None:
    """Who loses a commit tries again by itself; no row may be lost, none may be there twice."""
    table = "raced"
    parties[0].create(table)

    def write(number: int) -> None:
        for n in range(INSERTS):
            parties[number].insert(table, 10 * number + n, parties[number].name)

    with ThreadPoolExecutor(len(parties)) as threads:
        list(threads.map(write, range(len(parties))))
    numbers = [10 * number + n for number in range(len(parties)) for n in range(INSERTS)]
    expect([row[0] for row in parties[0].rows(table)], numbers)


def _views(spark: Sql, trino: Sql, pyiceberg: Pyiceberg) -> Iterator[Check]:
    query = "AS SELECT id, name FROM"
    yield Check("all see each other's views", partial(_see_views, spark, trino, pyiceberg))
    yield Check(
        "trino reads spark's view",
        partial(trino.run, "SELECT * FROM lake.shop.of_spark"),
        limit="unsupported dialect",
        reason="Trino reads no other dialect than its own",
    )
    yield Check(
        "spark reads trino's view",
        partial(spark.run, "SELECT * FROM shop.of_trino"),
    )
    yield Check(
        "spark replaces trino's view",
        partial(spark.run, f"CREATE OR REPLACE VIEW shop.of_trino {query} shop.by_spark"),
        limit="loss of view dialects",
        reason="Spark keeps other dialects: it asks for replace.drop-dialect.allowed",
    )


def _see_views(spark: Sql, trino: Sql, pyiceberg: Pyiceberg) -> None:
    spark.run("CREATE VIEW shop.of_spark AS SELECT id, name FROM shop.by_spark")
    trino.run("CREATE VIEW lake.shop.of_trino AS SELECT id, name FROM lake.shop.by_trino")
    names = ["of_spark", "of_trino"]
    expect(sorted(row[1] for row in spark.run("SHOW VIEWS IN shop")), names)
    expect(sorted(name[-1] for name in pyiceberg.catalog.list_views("shop")), names)
    expect([row[0] for row in trino.run("SHOW TABLES FROM lake.shop LIKE 'of%'")], names)
