"""Queries of the system tables by which Geneva's client follows jobs."""

from penstock.catalog.jobs import geneva_tables
from penstock.catalog.names import tables
from penstock.lance.read.query import Query
from penstock.lance.storage.data_threads import Deadline
from penstock.server.lance.call import Call
from penstock.server.lance.row_answers import answer_rows
from penstock.server.transport.downloads import Download
from penstock.server.transport.http import Reply


async def query_rows(call: Call, wanted: Query) -> Reply:
    """Answer from what the catalog knows of jobs, whatever the table's own rows say of them."""
    table = await tables.get(call.catalog.database, call.id)
    only = None if call.identity is None else call.identity.grantees
    deadline = Deadline(call.catalog.query_seconds)

    async def run(download: Download) -> None:
        await geneva_tables.write_rows(call.catalog, table, wanted, only, deadline, download)

    return await answer_rows(call, run, deadline)
