"""Updates of snapshots and of the references to them, each applied to a draft."""

from collections.abc import Collection

from penstock.errors import ConcurrentCommit, InvalidTable
from penstock.iceberg.checks import INT64, clip
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import MAIN, ROW_LINEAGE
from penstock.iceberg.tables.drafts.draft import Draft
from penstock.iceberg.tables.parts.snapshot_log import log_entry
from penstock.iceberg.tables.parts.snapshots import sequence_number

_AGAIN = "load the table and write the snapshot again"


def add_snapshot(draft: Draft, snapshot: Json) -> None:
    """Add a snapshot; one that was made for an older state of the table is a conflict."""
    id = snapshot["snapshot-id"]
    if not draft.schemas.by_id:
        raise InvalidTable(
            "Attempting to add a snapshot before a schema is added",
            detail="put add-schema before add-snapshot",
        )
    if id in draft.snapshots:
        raise InvalidTable(
            f"Snapshot already exists for id: {id}", detail="give the snapshot a new random id"
        )
    _check_version(draft, snapshot)
    if draft.format_version > 1:
        _check_sequence(draft, snapshot)
        draft.last_sequence = max(draft.last_sequence, sequence_number(snapshot))
    if draft.format_version >= ROW_LINEAGE:
        draft.next_row = _count_rows(draft, snapshot)
    draft.snapshots[id] = snapshot
    draft.added_snapshots.add(id)


def set_ref(draft: Draft, name: str, ref: Json) -> None:
    id = ref["snapshot-id"]
    if (snapshot := draft.snapshots.get(id)) is None:
        raise InvalidTable(
            f"Cannot set {clip(name)} to unknown snapshot: {id}",
            detail="add the snapshot before, or name one of the table",
        )
    if name == MAIN and id != draft.current_snapshot:
        draft.current_snapshot = id
        added = id in draft.added_snapshots
        # A table that goes back to an older snapshot does so now.
        draft.log.append(log_entry(id, snapshot["timestamp-ms"] if added else draft.now_ms))
    draft.refs[name] = ref


def remove_ref(draft: Draft, name: str) -> None:
    draft.refs.pop(name, None)
    if name == MAIN:
        draft.current_snapshot = None


def remove_snapshots(draft: Draft, ids: Collection[int]) -> None:
    """Remove snapshots that are there, with their statistics; references go in the end."""
    gone = {id for id in ids if draft.snapshots.pop(id, None) is not None}
    if not gone:
        return
    draft.removed_snapshots = True
    draft.added_snapshots -= gone
    for files in draft.files.values():
        for id in gone:
            files.pop(id, None)


def _check_version(draft: Draft, snapshot: Json) -> None:
    """Check what one format version requires of a snapshot and another does not know."""
    if draft.format_version == 1:
        if sequence_number(snapshot):
            raise InvalidTable(
                f"Sequence number must be 0 in v1: {sequence_number(snapshot)}",
                detail="leave sequence-number out, or upgrade the table to format version 2",
            )
        return
    for key in ("manifest-list", "summary"):
        if key not in snapshot:
            raise InvalidTable(
                f"Cannot add a snapshot: {key} is missing",
                detail=f"it is required in format version {draft.format_version}",
            )
    if draft.format_version >= ROW_LINEAGE and "first-row-id" not in snapshot:
        raise InvalidTable(
            "Cannot add a snapshot: first-row-id is null",
            detail="send next-row-id of the table as first-row-id, and added-rows",
        )


def _check_sequence(draft: Draft, snapshot: Json) -> None:
    number = sequence_number(snapshot)
    if number <= draft.last_sequence and "parent-snapshot-id" in snapshot:
        raise ConcurrentCommit(
            f"Cannot add snapshot with sequence number {number} older than last sequence number "
            f"{draft.last_sequence}",
            detail=_AGAIN,
        )


def _count_rows(draft: Draft, snapshot: Json) -> int:
    """The first row id that is free after the snapshot."""
    first: int = snapshot["first-row-id"]
    if first < draft.next_row:
        raise ConcurrentCommit(
            "Cannot add a snapshot, first-row-id is behind table next-row-id: "
            f"{first} < {draft.next_row}",
            detail=_AGAIN,
        )
    following: int = first + snapshot["added-rows"]
    if following not in INT64:
        raise InvalidTable(
            f"no row id is left after {first}", detail="send next-row-id of the table"
        )
    return following
