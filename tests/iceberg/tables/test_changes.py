"""What a table's snapshots say about its rows."""

from typing import Any

from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.changes import (
    count_added,
    count_rows,
    find_appended,
    find_rows_snapshot,
)


def table(
    *snapshots: tuple[int, int, str], current: int = 0, summary: dict[str, str] | None = None
) -> Json:
    """A table with snapshots: each its id, its parent (0: none) and its operation."""
    listed: list[dict[str, Any]] = [
        {
            "snapshot-id": id,
            **({"parent-snapshot-id": parent} if parent else {}),
            "summary": {"operation": operation} | (summary or {}),
        }
        for id, parent, operation in snapshots
    ]
    return {"snapshots": listed, "current-snapshot-id": current or snapshots[-1][0]}


EMPTY: Json = {"snapshots": [], "current-snapshot-id": -1}
ONE = table((1, 0, "append"))


def ids(found: list[Json] | str) -> list[int]:
    assert not isinstance(found, str), found
    return [each["snapshot-id"] for each in found]


def test_appends_are_listed_oldest_first_and_compactions_are_none() -> None:
    now = table((1, 0, "append"), (2, 1, "append"), (3, 2, "replace"), (4, 3, "append"))
    assert ids(find_appended(now, 1)) == [2, 4]
    assert ids(find_appended(now, 0)) == [1, 2, 4]
    assert find_appended(now, 4) == []
    assert find_appended(EMPTY, 0) == []


def test_what_is_not_known_to_be_an_append_is_told() -> None:
    for operation in ("delete", "overwrite", "newer"):
        found = find_appended(table((1, 0, "append"), (2, 1, operation)), 1)
        assert found == f"snapshot 2 did more than append rows: {operation}"
    with_deletes = table((1, 0, "append"), (2, 1, "append"), summary={"added-delete-files": "1"})
    assert "did more" in str(find_appended(with_deletes, 1))


def test_a_snapshot_that_is_gone_or_on_another_branch_is_no_beginning() -> None:
    expired = table((3, 2, "append"))
    rolled_back = table((1, 0, "append"), (2, 1, "append"), (3, 1, "append"))
    replaced = table((1, 0, "append"), (2, 0, "append"))
    circle = table((2, 3, "append"), (3, 2, "append"))
    for document, since in ((expired, 1), (rolled_back, 2), (replaced, 1), (circle, 1), (ONE, -1)):
        assert "not among those before" in str(find_appended(document, since))


def test_only_snapshots_that_change_rows_count() -> None:
    compacted = table((1, 0, "append"), (2, 1, "replace"))
    assert find_rows_snapshot(EMPTY, None, 0) == 0
    assert find_rows_snapshot(ONE, EMPTY, 0) == 1
    assert find_rows_snapshot(compacted, ONE, 1) == 1
    # Also when the snapshot before the compaction is gone by now.
    expired = table((2, 1, "replace"))
    assert find_rows_snapshot(expired, compacted, 1) == 1
    again = table((2, 1, "replace"), (3, 2, "replace"))
    assert find_rows_snapshot(again, expired, 1) == 1
    assert find_rows_snapshot(table((2, 1, "replace"), (3, 2, "append")), expired, 1) == 3
    assert find_rows_snapshot(table((1, 0, "append"), (2, 1, "append"), current=1), again, 3) == 1


def test_rows_are_counted_where_summaries_tell_it_exactly() -> None:
    counted = table((1, 0, "append"), (2, 1, "append"), summary={"added-records": "3"})
    assert count_added(counted["snapshots"]) == 6
    assert count_added(table((1, 0, "append"))["snapshots"]) is None
    assert count_rows(EMPTY) == 0
    assert count_rows(ONE) is None
    plain = {"total-records": "5", "total-delete-files": "0"}
    assert count_rows(table((1, 0, "append"), summary=plain)) == 5
    assert count_rows(table((1, 0, "append"), summary=plain | {"total-delete-files": "1"})) is None
