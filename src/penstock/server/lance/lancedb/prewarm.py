"""lancedb's hints that an index or columns will be read soon."""

from typing import Annotated

import msgspec

from penstock.catalog.data import datasets
from penstock.catalog.names import tables
from penstock.lance.columns.fields import get_field
from penstock.lance.doors import lance
from penstock.lance.indexes import prewarm
from penstock.model.tables import MAIN
from penstock.server.lance.call import Body, Call


class PrewarmColumns(Body):
    columns: list[Annotated[str, msgspec.Meta(min_length=1)]] | None = None


_body = msgspec.json.Decoder(Body)
_columns = msgspec.json.Decoder(PrewarmColumns)


async def prewarm_index(call: Call) -> None:
    call.decode(_body)
    (name,) = call.names
    table = await tables.get(call.catalog.database, call.id)
    await datasets.read(call.catalog, table, MAIN, None, lambda dataset: prewarm(dataset, name))


async def prewarm_columns(call: Call) -> None:
    """Only check that they are there: rows are not kept in memory here."""
    columns = call.decode(_columns).columns or ()

    def check(dataset: "lance.LanceDataset") -> None:
        for column in columns:
            get_field(dataset, column)

    table = await tables.get(call.catalog.database, call.id)
    await datasets.read(call.catalog, table, MAIN, None, check)
