"""Rules of the Iceberg routes; each route's definition names one."""

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.catalog.access.permissions import AccessCache
from penstock.catalog.iceberg_views.metadata_files import missing_file
from penstock.catalog.names import locations
from penstock.model.identifiers import ROOT, Identifier
from penstock.model.rights import ICEBERG_TABLE, NAMESPACE, OWN, READ, SEE, VIEW, WRITE, Need
from penstock.server.access.rules import CATALOG, NAMED, PARENT, Rule
from penstock.server.iceberg.call import (
    Call,
    Name,
    any_object,
    check_namespace,
    renaming,
    split_namespace,
)

# Updates of a table that those who write rows make; all others change what the table is.
ROW_UPDATES = frozenset(
    (
        *("add-snapshot", "remove-snapshots", "set-snapshot-ref", "remove-snapshot-ref"),
        *("set-statistics", "remove-statistics"),
        *("set-partition-statistics", "remove-partition-statistics", "add-encryption-key"),
    )
)


class _Namespace(msgspec.Struct):
    namespace: list[str]


class _Registered(msgspec.Struct, rename="kebab"):
    metadata_location: str


class _Change(msgspec.Struct):
    identifier: Name


class _Changes(msgspec.Struct, rename="kebab"):
    table_changes: list[_Change]


_namespace = msgspec.json.Decoder(_Namespace)
_changes = msgspec.json.Decoder(_Changes)
_registered = msgspec.json.Decoder(_Registered)


async def _see_parent(call: Call, access: AccessCache) -> Sequence[Need]:
    text = call.text("parent")
    parent = split_namespace(text, "parent") if text else ROOT
    return [Need(SEE, NAMESPACE, parent)]


async def _own_parent(call: Call, access: AccessCache) -> Sequence[Need]:
    id = check_namespace(call.decode(_namespace).namespace, "namespace")
    return [Need(OWN, NAMESPACE, id[:-1])]


async def _own_both(call: Call, access: AccessCache) -> Sequence[Need]:
    return _rename_needs(call, VIEW)


async def _own_both_of_table(call: Call, access: AccessCache) -> Sequence[Need]:
    return _rename_needs(call, ICEBERG_TABLE)


def _rename_needs(call: Call, kind: str) -> Sequence[Need]:
    body = call.decode(renaming)
    return [
        Need(OWN, kind, body.source.to_identifier("source")),
        Need(OWN, NAMESPACE, body.destination.to_identifier("destination")[:-1]),
    ]


async def _commit(call: Call, access: AccessCache) -> Sequence[Need]:
    return _commit_needs(call.id, call.decode(any_object))


async def _commit_all(call: Call, access: AccessCache) -> Sequence[Need]:
    changes = call.decode(_changes).table_changes
    given = call.decode(any_object)["table-changes"]
    return [
        need
        for number, (change, body) in enumerate(zip(changes, given, strict=True))
        for need in _commit_needs(
            change.identifier.to_identifier(f"table-changes[{number}].identifier"), body
        )
    ]


def _commit_needs(id: Identifier, body: dict[str, Any]) -> list[Need]:
    """What one commit needs; the last is on the table itself. Its form is checked later."""
    needs = []
    if "assert-create" in _list_choices(body, "requirements", "type"):
        needs.append(Need(OWN, NAMESPACE, id[:-1]))
    is_rows = ROW_UPDATES.issuperset(_list_choices(body, "updates", "action"))
    return [*needs, Need(WRITE if is_rows else OWN, ICEBERG_TABLE, id)]


def _list_choices(body: dict[str, Any], key: str, chooser: str) -> set[str]:
    found = body.get(key)
    given = found if isinstance(found, list) else []
    return {str(each.get(chooser)) for each in given if isinstance(each, dict)}


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
READ_TABLE: Rule[Call] = Rule(READ, NAMED, ICEBERG_TABLE)
OWN_TABLE: Rule[Call] = Rule(OWN, NAMED, ICEBERG_TABLE)
COMMIT: Rule[Call] = Rule(
    WRITE,
    NAMED,
    ICEBERG_TABLE,
    more=_commit,
    also="owner if more than snapshots, refs and statistics change; owner on the namespace to "
    "make it",
)
COMMIT_ALL: Rule[Call] = Rule(
    SEE, CATALOG, more=_commit_all, also="on each table what its commit needs"
)
RENAME_TABLE: Rule[Call] = Rule(
    SEE,
    CATALOG,
    more=_own_both_of_table,
    also="owner on the table and on the namespace it goes to",
)
