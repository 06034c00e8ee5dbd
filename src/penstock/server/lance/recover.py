"""Answers for effects whose own answer was lost with the server that had it.

Only a crash between an effect and the note of its answer leads here. What the transaction and the
catalog still know is told; counts that nobody kept are left out.
"""

from dataclasses import replace
from typing import Any

import msgspec

from penstock.catalog import tables, transactions
from penstock.errors import NotFound
from penstock.server.http import Reply
from penstock.server.lance.call import Call
from penstock.server.lance.operations import Operation

# These recognise what they did before, and answer as they did then.
REPEATABLE = ("CreateTableVersion", "BatchCreateTableVersions", "AlterTransaction")
MAKES_TABLE = ("DeclareTable", "RegisterTable", "CreateTable")


async def recover(operation: Operation, call: Call, transaction_id: str) -> Reply:
    """The answer to a call whose effect is the transaction's."""
    if operation.name in REPEATABLE and operation.handler is not None:
        return Reply(200, msgspec.json.encode(await operation.handler(replace(call, key=None))))
    body: dict[str, Any] = {"transaction_id": transaction_id}
    try:
        known = await transactions.get(call.catalog.database, transaction_id)
        if "version" in known.properties:
            body["version"] = int(known.properties["version"])
        if operation.name in MAKES_TABLE:
            table = await tables.get(call.catalog.database, call.id)
            body |= {"location": table.location, "properties": table.properties}
    except NotFound:
        pass  # forgotten or dropped since; the effect took place all the same
    if operation.name == "BatchCommitTables":
        body["results"] = []
    return Reply(200, msgspec.json.encode(body))
