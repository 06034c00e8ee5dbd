"""What clients ask of Iceberg tables, as the REST catalog spells it, and what one run comes to."""

import time
from typing import Any

import msgspec

Json = dict[str, Any]

CREATE, LOAD = "create table", "load table"
SET, APPEND = "commit, a property", "commit, a snapshot"
OPERATIONS = (CREATE, LOAD, SET, APPEND)
MAIN = "main"


class Contended(msgspec.Struct):
    """What came of many writers on one table."""

    commits: int
    seconds: float
    # Commits that were refused for another's; the writer loaded the table, and tried again.
    refused: int
    # Commits that were answered as made, and are not in the table.
    lost: int


def create(name: str) -> Json:
    """A table of five columns."""
    fields = [
        {"id": n, "name": f"column_{n}", "type": "string", "required": False} for n in range(1, 6)
    ]
    return {"name": name, "schema": {"type": "struct", "schema-id": 0, "fields": fields}}


def set_property(number: int) -> Json:
    updates = [{"action": "set-properties", "updates": {"edition": str(number)}}]
    return {"requirements": [], "updates": updates}


def append(id: int, parent: int | None, sequence: int) -> Json:
    """A commit as writers make it: the branch must be where they found it."""
    snapshot: Json = {
        "snapshot-id": id,
        "sequence-number": sequence,
        "timestamp-ms": int(time.time() * 1000),
        # Catalogs do not open it.
        "manifest-list": f"file:///nowhere/metadata/snap-{id}.avro",
        "summary": {"operation": "append", "added-records": "1"},
        "schema-id": 0,
    }
    if parent is not None:
        snapshot["parent-snapshot-id"] = parent
    return {
        "requirements": [
            {"type": "assert-ref-snapshot-id", "ref": MAIN, "snapshot-id": parent},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {
                "action": "set-snapshot-ref",
                "ref-name": MAIN,
                "type": "branch",
                "snapshot-id": id,
            },
        ],
    }


def snapshot_id(writer: int, number: int) -> int:
    """An id that no other writer uses."""
    return (writer + 1) * 1_000_000 + number + 1
