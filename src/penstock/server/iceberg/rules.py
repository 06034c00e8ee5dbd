"""Rules of the Iceberg routes; each route's definition names one."""

from collections.abc import Sequence

import msgspec

from penstock.catalog.access.permissions import AccessCache
from penstock.catalog.iceberg_views.metadata_files import missing_file
from penstock.catalog.names import locations
from penstock.model.identifiers import ROOT
from penstock.model.rights import NAMESPACE, OWN, READ, SEE, VIEW, Need
from penstock.server.access.rules import CATALOG, NAMED, PARENT, Rule
from penstock.server.iceberg.call import Call, check_namespace, renaming, split_namespace


class _Namespace(msgspec.Struct):
    namespace: list[str]


class _Registered(msgspec.Struct, rename="kebab"):
    metadata_location: str


_namespace = msgspec.json.Decoder(_Namespace)
_registered = msgspec.json.Decoder(_Registered)


async def _see_parent(call: Call, access: AccessCache) -> Sequence[Need]:
    text = call.text("parent")
    parent = split_namespace(text, "parent") if text else ROOT
    return [Need(SEE, NAMESPACE, parent)]


async def _own_parent(call: Call, access: AccessCache) -> Sequence[Need]:
    id = check_namespace(call.decode(_namespace).namespace, "namespace")
    return [Need(OWN, NAMESPACE, id[:-1])]


async def _own_both(call: Call, access: AccessCache) -> Sequence[Need]:
    body = call.decode(renaming)
    return [
        Need(OWN, VIEW, body.source.to_identifier("source")),
        Need(OWN, NAMESPACE, body.destination.to_identifier("destination")[:-1]),
    ]


async def _read_owner(call: Call, access: AccessCache) -> Sequence[Need]:
    """A file of an object in the catalog may be read by those who may read that object."""
    assert call.identity is not None
    location = call.decode(_registered).metadata_location
    owners = await locations.list_owners(call.catalog.database, call.catalog.lake, location)
    for kind, id in owners:
        if not (await access.standing(call.identity, kind, id)).has(READ):
            # Neither its owner nor its existence is revealed.
            raise missing_file(location)
    return ()


OPEN: Rule[Call] = Rule(SEE, CATALOG, is_open=True)
SIGNED_IN: Rule[Call] = Rule(SEE, CATALOG)
LIST_NAMESPACES: Rule[Call] = Rule(SEE, CATALOG, more=_see_parent, also="sees the parent")
CREATE_NAMESPACE: Rule[Call] = Rule(SEE, CATALOG, more=_own_parent, also="owner on the parent")
SEE_NAMESPACE: Rule[Call] = Rule(SEE, PARENT)
READ_NAMESPACE: Rule[Call] = Rule(READ, PARENT)
OWN_NAMESPACE: Rule[Call] = Rule(OWN, PARENT)
READ_VIEW: Rule[Call] = Rule(READ, NAMED, VIEW)
OWN_VIEW: Rule[Call] = Rule(OWN, NAMED, VIEW)
RENAME: Rule[Call] = Rule(
    SEE, CATALOG, more=_own_both, also="owner on the view and on the namespace it goes to"
)
REGISTER: Rule[Call] = Rule(
    OWN, PARENT, more=_read_owner, also="reader on whatever the file belongs to"
)
# There are no Iceberg tables here, whoever asks.
FIND_TABLE: Rule[Call] = Rule(SEE, CATALOG)
