"""Rebuild answers that were lost with their server.

Only a crash between an effect and the record of its answer leads here. The answer is made from the
key's notes and the catalog; counts that nobody stored are left out.
"""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec

from penstock.catalog.data import datasets
from penstock.catalog.names import tables
from penstock.catalog.names.idempotency import KeyRecord
from penstock.errors import AlreadyExists, NotFound
from penstock.lance.write.row_changes import count_updated
from penstock.model.tables import MAIN
from penstock.server.lance.call import Call
from penstock.server.lance.handlers import (
    environments,
    jobs,
    materialized_views,
    refs,
    rows,
    transactions,
    versions,
)
from penstock.server.lance.handlers.views import alterations as view_alterations
from penstock.server.lance.handlers.views import iceberg as iceberg_views
from penstock.server.transport.http import Reply

Answer = dict[str, Any]
Recover = Callable[[Call, KeyRecord], Awaitable[Reply]]


async def transaction(call: Call, used: KeyRecord) -> Reply:
    """For an operation without a recovery of its own: its transaction."""
    return _reply(_transaction_of(used))


async def made_table(call: Call, used: KeyRecord) -> Reply:
    body = _transaction_of(used)
    # It may have been dropped since; the effect happened all the same.
    with contextlib.suppress(NotFound):
        table = await tables.get(call.catalog.database, call.id)
        body |= {"location": table.location, "properties": table.properties}
    return _reply(body)


async def queued_job(call: Call, used: KeyRecord) -> Reply:
    return _reply({"job_id": used.transaction_id}, 202)


async def created_view(call: Call, used: KeyRecord) -> Reply:
    return await materialized_views.recover_created(call, used.notes.get("version"))


async def dropped_namespace(call: Call, used: KeyRecord) -> Reply:
    return _reply({"properties": {}})


async def commit(call: Call, used: KeyRecord) -> Reply:
    return _reply({"transaction_id": used.transaction_id, "results": []})


async def created_versions(call: Call, used: KeyRecord) -> Reply:
    return _reply(await versions.describe_created(_keyless(call), used.transaction_id))


async def created_version(call: Call, used: KeyRecord) -> Reply:
    found = await versions.describe(_keyless(call))
    return _reply({"transaction_id": used.transaction_id, "version": found.version})


async def replaced_metadata(call: Call, used: KeyRecord) -> Reply:
    return _reply(msgspec.json.decode(call.body))


async def updated_rows(call: Call, used: KeyRecord) -> Reply:
    table, branch = await rows.find_updated(_keyless(call))
    version = used.notes["version"]
    count = await datasets.read(call.catalog, table, branch or MAIN, version, count_updated)
    counts = {"updated_rows": count, "rows_updated": count}
    return _reply({**counts, "version": version, "properties": table.properties})


def tag_change(handler: Callable[[Call], Awaitable[object]]) -> Recover:
    """For a change of a tag: make it if the crash came first and the tag has not changed since."""

    async def answer(call: Call, used: KeyRecord) -> Reply:
        with contextlib.suppress(AlreadyExists, NotFound):
            was = used.notes["was"]
            if was is None or await refs.names(_keyless(call), was[0], was[1]):
                await handler(_keyless(call))
        return _reply({"transaction_id": used.transaction_id})

    return answer


async def altered_transaction(call: Call, used: KeyRecord) -> Reply:
    return _reply(await transactions.describe(_keyless(call, body=b"")))


async def canceled_job(call: Call, used: KeyRecord) -> Reply:
    return _reply(await jobs.cancel(_keyless(call)))


async def paused_job(call: Call, used: KeyRecord) -> Reply:
    """The job as it is now: pausing it again could undo a later resume."""
    return _reply(await jobs.show_paused(call, is_changed=used.notes["is_changed"]))


async def resumed_job(call: Call, used: KeyRecord) -> Reply:
    return _reply(await jobs.show_resumed(call, is_changed=used.notes["is_changed"]))


async def altered_view(call: Call, used: KeyRecord) -> Reply:
    return await view_alterations.recover_altered(_keyless(call), used.transaction_id)


async def iceberg_view(call: Call, used: KeyRecord) -> Reply:
    """The view as it is now, which may be newer."""
    return _reply(await iceberg_views.describe(_keyless(call, body=b"")))


async def consent(call: Call, used: KeyRecord) -> Reply:
    """Only that it was done; what was consented to is not stored."""
    found = await materialized_views.consent(_keyless(call, body=b'{"dry_run": true}'))
    return _reply({"transaction_id": used.transaction_id, "sources": [], "state": found.state})


async def created_manifest(call: Call, used: KeyRecord) -> Reply:
    return _reply(await environments.describe(_keyless(call, body=b"")))


async def dropped_manifest(call: Call, used: KeyRecord) -> Reply:
    return _reply({**used.notes, "manifest": used.notes["content"]})


def _keyless(call: Call, **changes: Any) -> Call:
    """The same call without its key, which has had its effect."""
    return replace(call, key=None, **changes)


def _transaction_of(used: KeyRecord) -> Answer:
    body: Answer = {"transaction_id": used.transaction_id}
    if used.notes.get("version") is not None:
        body["version"] = used.notes["version"]
    return body


def _reply(body: object, status: int = 200) -> Reply:
    return Reply(status, msgspec.json.encode(body))
