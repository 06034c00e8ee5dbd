"""The log of which snapshot was current, and when."""

from collections.abc import Collection, Mapping
from itertools import pairwise

from penstock.errors import InvalidTable
from penstock.iceberg.metadata import Json

# By how much clocks may differ; Java's readers refuse a table whose times differ more.
TOLERANCE_MS = 60_000


def log_entry(snapshot_id: int, timestamp_ms: int) -> Json:
    return {"timestamp-ms": timestamp_ms, "snapshot-id": snapshot_id}


def correct_log(
    log: list[Json],
    snapshots: Mapping[int, Json],
    current: int | None,
    *,
    added: Collection[int],
    removed: bool,
    now_ms: int,
) -> list[Json]:
    """The log without snapshots that were current within one request only, or that are gone.

    With a snapshot that is gone, everything before it goes: otherwise its predecessor would seem to
    have been current in its time.
    """
    found: list[Json] = []
    for entry in log:
        id = entry["snapshot-id"]
        if id not in snapshots:
            if removed:
                found.clear()
            else:
                found.append(entry)
        elif id == current or id not in added:
            found.append(entry)
    if current is not None and (not found or found[-1]["snapshot-id"] != current):
        # Only a file that somebody else wrote has such a log.
        found.append(log_entry(current, now_ms))
    return found


def check_times(log: list[Json], last_updated_ms: int) -> None:
    """Refuse times that go back, or are in the future, by more than clocks differ."""
    for earlier, later in pairwise(log):
        if later["timestamp-ms"] - earlier["timestamp-ms"] < -TOLERANCE_MS:
            raise InvalidTable(
                f"Invalid snapshot timestamp {later['timestamp-ms']}: before the previous snapshot "
                f"log entry at {earlier['timestamp-ms']}",
                detail="set the clock of the machine that writes",
            )
    if log and last_updated_ms - log[-1]["timestamp-ms"] < -TOLERANCE_MS:
        raise InvalidTable(
            f"Invalid update timestamp {last_updated_ms}: before last snapshot log entry at "
            f"{log[-1]['timestamp-ms']}",
            detail="set the clock of the machine that writes",
        )
