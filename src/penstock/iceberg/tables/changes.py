"""What a table's snapshots did to its rows; pure."""

from typing import Any

from penstock.iceberg.metadata import Json

# No snapshot at all.
NONE = 0
# Its rows stay what they are: files are compacted, or sorted.
SAME_ROWS = "replace"


def find_rows_snapshot(document: Json, base: Json | None, known: int) -> int:
    """The last snapshot that changed the rows of a table; `known` is that of its `base`."""
    snapshots = _by_id(document)
    before = None if base is None else current_snapshot(base)
    id, seen = current_snapshot(document), set[int]()
    while id != before and id not in seen:
        seen.add(id)
        snapshot = snapshots.get(id)
        if snapshot is None or _operation(snapshot) != SAME_ROWS:
            return id
        id = _parent(snapshot)
    return known if id == before else id


def find_appended(document: Json, since: int) -> list[Json] | str:
    """The snapshots that added rows since another one, oldest first; or why that is not all."""
    snapshots = _by_id(document)
    id, seen, found = current_snapshot(document), set[int](), list[Json]()
    while id != since:
        snapshot = snapshots.get(id)
        if snapshot is None or id in seen:
            return "the snapshot that the view follows is not among those before the current one"
        seen.add(id)
        operation = _operation(snapshot)
        if operation == "append" and not _count(snapshot, "added-delete-files"):
            found.append(snapshot)
        elif operation != SAME_ROWS:
            return f"snapshot {id} did more than append rows: {operation}"
        id = _parent(snapshot)
    return found[::-1]


def count_added(snapshots: list[Json]) -> int | None:
    """How many rows these appends added; None when one does not tell."""
    counts = [_count(each, "added-records") for each in snapshots]
    known = [each for each in counts if each is not None]
    return sum(known) if len(known) == len(counts) else None


def count_rows(document: Json) -> int | None:
    """How many rows a table has, as far as its current snapshot tells that exactly."""
    snapshot = _by_id(document).get(current_snapshot(document))
    if snapshot is None:
        return 0
    # With delete files, the number of records counts what they delete.
    if _count(snapshot, "total-delete-files") != 0:
        return None
    return _count(snapshot, "total-records")


def current_snapshot(document: Json) -> int:
    id = document.get("current-snapshot-id")
    return id if isinstance(id, int) and id >= 0 else NONE


def current_schema(document: Json) -> Json:
    """The schema that the table has now."""
    wanted = document["current-schema-id"]
    found: Json = next(s for s in document["schemas"] if s.get("schema-id", 0) == wanted)
    return found


def _by_id(document: Json) -> dict[int, Json]:
    return {each["snapshot-id"]: each for each in document.get("snapshots") or ()}


def _parent(snapshot: Json) -> int:
    id = snapshot.get("parent-snapshot-id")
    return id if isinstance(id, int) and id >= 0 else NONE


def _operation(snapshot: Json) -> str:
    # Writers of version 1 may leave it out.
    return str(_summary(snapshot).get("operation") or "unknown")


def _count(snapshot: Json, key: str) -> int | None:
    text = str(_summary(snapshot).get(key, ""))
    return int(text) if text.isascii() and text.isdigit() else None


def _summary(snapshot: Json) -> dict[str, Any]:
    found: dict[str, Any] = snapshot.get("summary") or {}
    return found
