"""Our own routes of views: translation to another dialect, and lineage of columns."""

from penstock.catalog.iceberg_views import dialects
from penstock.errors import InvalidRequest
from penstock.server.iceberg.call import Call
from penstock.server.iceberg.replies import json_reply
from penstock.server.transport.http import Reply


async def translate(call: Call) -> Reply:
    target = call.text("target")
    if not target:
        raise InvalidRequest("target is missing", detail="name a dialect, as in ?target=trino")
    return json_reply(
        await dialects.translate(call.catalog, call.id, target, call.text("from"), call.may_read)
    )


async def trace(call: Call) -> Reply:
    found = await dialects.trace(call.catalog, call.id, call.text("from"), call.may_read)
    return json_reply(found)
