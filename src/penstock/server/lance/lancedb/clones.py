"""lancedb's clones: a new table with the rows of another one's version."""

import msgspec

from penstock.catalog.access.permissions import AccessCache
from penstock.catalog.data import clones
from penstock.catalog.names import tables
from penstock.catalog.versions import refs
from penstock.errors import InvalidRequest
from penstock.model.branches import check_tag
from penstock.model.rights import OWN, READ, TABLE, Need
from penstock.model.tables import MAIN
from penstock.server.access.rules import PARENT, Rule
from penstock.server.lance.call import Body, Call, Text, Version


class CloneTable(Body):
    source_location: Text
    source_version: Version | None = None
    source_tag: str | None = None
    # Either way the files are copied.
    is_shallow: bool | None = None


class _Source(Body):
    source_location: Text | None = None


class ClonedTable(msgspec.Struct):
    location: str
    version: int
    transaction_id: str


_clone = msgspec.json.Decoder(CloneTable)
_source = msgspec.json.Decoder(_Source)


async def clone(call: Call) -> ClonedTable:
    body, catalog = call.decode(_clone), call.catalog
    if body.source_version is not None and body.source_tag is not None:
        raise InvalidRequest(
            "source_version and source_tag are given", detail="send only one of them"
        )
    source = await clones.get_source(catalog, body.source_location)
    branch, version = MAIN, body.source_version
    if body.source_tag is not None:
        tag = await refs.get_tag(catalog, source, check_tag(body.source_tag))
        branch, version = tag.branch or MAIN, tag.version
    new = tables.plan_table(catalog, call.id, None, {}, catalog.managed_versions)
    made = await clones.clone(catalog, new, source, branch, version, call.origin)
    return ClonedTable(made.table.location, made.version, made.transaction_id)


async def _read_source(call: Call, access: AccessCache) -> list[Need]:
    """Read the source; who may not even see it hears what they hear of an empty location."""
    assert call.identity is not None
    location = call.decode(_source).source_location
    if location is None:
        return []
    source = await clones.get_source(call.catalog, location)
    if not (await access.standing(call.identity, TABLE, source.identifier)).sees:
        raise clones.missing_source(location)
    return [Need(READ, TABLE, source.identifier)]


CLONE: Rule[Call] = Rule(OWN, PARENT, more=_read_source, also="reader on the table it is made from")
