"""The audit log over HTTP."""

from typing import Annotated

import msgspec

from penstock.catalog.access import audit
from penstock.catalog.access.audit import AuditEntry, AuditFilter
from penstock.model.paging import request_page
from penstock.server.lance.call import Body, Call, Text

Millis = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class ListAudit(Body, forbid_unknown_fields=True):
    principal: Text | None = None
    operation: Text | None = None
    object: Text | None = None
    since: Millis | None = None
    until: Millis | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    page_token: str | None = None


class Entries(msgspec.Struct, omit_defaults=True):
    entries: list[AuditEntry]
    page_token: str | None = None


_list = msgspec.json.Decoder(ListAudit)


async def list_entries(call: Call) -> Entries:
    body = call.decode(_list)
    wanted = AuditFilter(body.principal, body.operation, body.object, body.since, body.until)
    scope = msgspec.json.encode(["audit", wanted]).decode()
    page = request_page(scope, body.page_token, body.limit, call.max_page)
    found = await call.catalog.database.read(audit.list_entries, page, wanted)
    return Entries(found.items, found.token)
