"""Apply the updates of a commit, in order, to a document; what was given is never changed."""

from collections.abc import Sequence
from typing import assert_never

from penstock.errors import InvalidTable
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import DEFAULT_FORMAT_VERSION, FORMAT_VERSIONS
from penstock.iceberg.tables.drafts import history, structure
from penstock.iceberg.tables.drafts.draft import Draft, close_draft, new_draft, open_draft
from penstock.iceberg.tables.update_kinds import (
    AddEncryptionKey,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AddSpec,
    AssignUuid,
    RemoveEncryptionKey,
    RemoveProperties,
    RemoveRef,
    RemoveSchemas,
    RemoveSnapshots,
    RemoveSpecs,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    SetRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
)


def apply(
    document: Json | None,
    updates: Sequence[Update],
    now_ms: int,
    *,
    uuid: str | None = None,
    location: str | None = None,
) -> Json:
    """The document after the updates; the same object when nothing changes.

    Without a document the updates make a new table; its UUID and location are those given here
    unless the updates say others.
    """
    if document is None:
        draft = new_draft(_first_version(updates), now_ms)
        draft.location = location
    else:
        draft = open_draft(document, now_ms)
    for update in updates:
        _apply(draft, update)
    draft.uuid = draft.uuid or uuid
    return close_draft(draft)


def _first_version(updates: Sequence[Update]) -> int:
    found = (each.format_version for each in updates if isinstance(each, UpgradeFormatVersion))
    version = next(found, DEFAULT_FORMAT_VERSION)
    _check_version(version)
    return version


def _apply(draft: Draft, update: Update) -> None:
    match update:
        case AddSnapshot(snapshot):
            history.add_snapshot(draft, snapshot)
        case SetRef(name, ref):
            history.set_ref(draft, name, ref)
        case RemoveRef(name):
            history.remove_ref(draft, name)
        case RemoveSnapshots(ids):
            history.remove_snapshots(draft, ids)
        case AddSchema(schema):
            structure.add_schema(draft, schema)
        case SetCurrentSchema(id):
            structure.set_current_schema(draft, id)
        case RemoveSchemas(ids):
            structure.remove_schemas(draft, ids)
        case AddSpec(spec):
            structure.add_spec(draft, spec)
        case SetDefaultSpec(id):
            structure.set_default_spec(draft, id)
        case RemoveSpecs(ids):
            structure.remove_specs(draft, ids)
        case AddSortOrder(order):
            structure.add_order(draft, order)
        case SetDefaultSortOrder(id):
            structure.set_default_order(draft, id)
        case AssignUuid(uuid):
            _assign_uuid(draft, uuid)
        case UpgradeFormatVersion(version):
            _upgrade(draft, version)
        case SetLocation(location):
            draft.location = location
        case SetProperties(changed):
            draft.properties |= changed
        case RemoveProperties(removals):
            for key in removals:
                draft.properties.pop(key, None)
        case SetStatistics(key, file):
            draft.files[key][file["snapshot-id"]] = [file]
        case RemoveStatistics(key, id):
            draft.files[key].pop(id, None)
        case AddEncryptionKey(key):
            draft.keys.setdefault(key["key-id"], key)
        case RemoveEncryptionKey(key_id):
            draft.keys.pop(key_id, None)
        case other:
            assert_never(other)


def _assign_uuid(draft: Draft, uuid: str) -> None:
    if draft.uuid is not None and uuid.lower() != draft.uuid.lower():
        raise InvalidTable(f"Cannot reassign uuid {draft.uuid}", detail="leave assign-uuid out")
    draft.uuid = draft.uuid or uuid


def _upgrade(draft: Draft, version: int) -> None:
    _check_version(version)
    if version < draft.format_version:
        raise InvalidTable(
            f"Cannot downgrade v{draft.format_version} table to v{version}",
            detail="leave upgrade-format-version out",
        )
    draft.format_version = version


def _check_version(version: int) -> None:
    if version not in FORMAT_VERSIONS:
        newest = FORMAT_VERSIONS[-1]
        raise InvalidTable(
            f"Cannot upgrade table to unsupported format version: v{version} "
            f"(supported: v{newest})",
            detail=f"send a number from 1 to {newest}",
        )
