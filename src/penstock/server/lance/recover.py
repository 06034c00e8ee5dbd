"""Answers for effects whose own answer was lost with the server that had it.

Only a crash between an effect and the note of its answer leads here. What the key's notes and the
catalog still know is told; counts that nobody kept are left out.
"""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec

from penstock.catalog import data, tables
from penstock.catalog.idempotency import Used
from penstock.datasets.rows import count_updated
from penstock.errors import AlreadyExists, NotFound
from penstock.model.tables import MAIN
from penstock.server.http import Reply
from penstock.server.lance import (
    jobs,
    manifests,
    materialized_views,
    refs,
    rows,
    transactions,
    versions,
)
from penstock.server.lance.call import Call

MAKES_JOB = ("AlterTableBackfillColumns", "RefreshMaterializedView")
MAKES_TABLE = ("DeclareTable", "RegisterTable", "CreateTable")
Answer = dict[str, Any]


async def recover(operation: str, call: Call, used: Used) -> Reply:
    """The answer to a call whose effect is known to have taken place."""
    special = SPECIAL.get(operation)
    if special is not None:
        return Reply(200, msgspec.json.encode(await special(replace(call, key=None), used)))
    if operation == "CreateMaterializedView":
        return await materialized_views.recover_created(call, used.notes.get("version"))
    if operation in MAKES_JOB:
        return Reply(202, msgspec.json.encode({"job_id": used.transaction_id}))
    body: Answer = {"transaction_id": used.transaction_id}
    if used.notes.get("version") is not None:
        body["version"] = used.notes["version"]
    if operation in MAKES_TABLE:
        # It may have been dropped since; the effect took place all the same.
        with contextlib.suppress(NotFound):
            table = await tables.get(call.catalog.database, call.id)
            body |= {"location": table.location, "properties": table.properties}
    return Reply(200, msgspec.json.encode(body))


async def _drop_namespace(call: Call, used: Used) -> Answer:
    return {"properties": {}}


async def _commit(call: Call, used: Used) -> Answer:
    return {"transaction_id": used.transaction_id, "results": []}


async def _create_versions(call: Call, used: Used) -> object:
    return await versions.describe_created(call, used.transaction_id)


async def _create_version(call: Call, used: Used) -> Answer:
    found = await versions.describe(call)
    return {"transaction_id": used.transaction_id, "version": found.version}


async def _replace_metadata(call: Call, used: Used) -> Answer:
    found: Answer = msgspec.json.decode(call.body)
    return found


async def _update_rows(call: Call, used: Used) -> Answer:
    table, branch = await rows.find_updated(call)
    version = used.notes["version"]
    count = await data.read(call.catalog, table, branch or MAIN, version, count_updated)
    return {"updated_rows": count, "version": version, "properties": table.properties}


def _redo(
    handler: Callable[[Call], Awaitable[object]],
) -> Callable[[Call, Used], Awaitable[object]]:
    """For a change of a tag: make it if the crash came before, and the tag is as it was then."""

    async def answer(call: Call, used: Used) -> Answer:
        with contextlib.suppress(AlreadyExists, NotFound):
            was = used.notes["was"]
            if was is None or await refs.names(call, was[0], was[1]):
                await handler(call)
        return {"transaction_id": used.transaction_id}

    return answer


async def _alter_transaction(call: Call, used: Used) -> object:
    return await transactions.describe(replace(call, body=b""))


async def _cancel_job(call: Call, used: Used) -> object:
    return await jobs.cancel(call)


async def _alter_view(call: Call, used: Used) -> object:
    """As it is now: to alter it again could undo what somebody did since."""
    return await materialized_views.show_altered(call)


async def _consent_to_view(call: Call, used: Used) -> Answer:
    """That it was done; what was consented to then is in the transaction's own time."""
    found = await materialized_views.consent(replace(call, body=b'{"dry_run": true}'))
    return {"transaction_id": used.transaction_id, "sources": [], "state": found.state}


async def _create_manifest(call: Call, used: Used) -> object:
    return await manifests.describe(replace(call, body=b""))


async def _drop_manifest(call: Call, used: Used) -> Answer:
    return {**used.notes, "manifest": used.notes["content"]}


SPECIAL: dict[str, Callable[[Call, Used], Awaitable[object]]] = {
    "DropNamespace": _drop_namespace,
    "BatchCommitTables": _commit,
    "BatchCreateTableVersions": _create_versions,
    "CreateTableVersion": _create_version,
    "AlterTransaction": _alter_transaction,
    "CancelJob": _cancel_job,
    "AlterMaterializedView": _alter_view,
    "ConsentMaterializedView": _consent_to_view,
    "CreateManifest": _create_manifest,
    "DropManifest": _drop_manifest,
    "UpdateTableSchemaMetadata": _replace_metadata,
    "UpdateTable": _update_rows,
    "CreateTableTag": _redo(refs.create_tag),
    "UpdateTableTag": _redo(refs.update_tag),
    "DeleteTableTag": _redo(refs.delete_tag),
}
