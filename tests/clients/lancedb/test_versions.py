"""lancedb's remote tables: versions, tags and branches."""

from typing import Any

import pytest

from tests.harness.clients.lancedb_modes import Lake, covers, some_rows


@covers("table", "list_versions", "checkout", "checkout_latest", "restore", "version")
def test_versions_are_read_and_restored(lake: Lake, table: Any) -> None:
    lake.done(table.add(some_rows(4)))
    assert [one["version"] for one in lake.done(table.list_versions())] == [1, 2]
    lake.done(table.checkout(1))
    assert lake.done(table.count_rows()) == 3
    with pytest.raises(Exception, match="fixed at version 1"):
        lake.done(table.add(some_rows(5)))
    lake.done(table.checkout_latest())
    assert lake.done(table.count_rows()) == 4
    lake.done(table.restore(1))
    assert (lake.get(table, "version"), lake.done(table.count_rows())) == (3, 3)


@covers("table", "tags")
@covers("tags", "create", "list", "get_version", "update", "delete")
def test_tags_name_versions(lake: Lake, table: Any) -> None:
    lake.done(table.add(some_rows(4)))
    lake.done(table.tags.create("first", 1))
    lake.done(table.tags.create("other", 2))
    known = lake.done(table.tags.list())
    assert {name: tag["version"] for name, tag in known.items()} == {"first": 1, "other": 2}
    lake.done(table.tags.update("other", 1))
    assert lake.done(table.tags.get_version("other")) == 1
    lake.done(table.tags.delete("other"))
    assert list(lake.done(table.tags.list())) == ["first"]
    lake.done(table.checkout("first"))
    assert lake.done(table.count_rows()) == 3


@covers("table", "branches", "current_branch")
@covers("branches", "create", "list", "checkout", "delete")
def test_branches_have_rows_of_their_own(lake: Lake, table: Any) -> None:
    branch = lake.done(table.branches.create("dev"))
    assert (branch.current_branch(), table.current_branch()) == ("dev", None)
    lake.done(branch.add(some_rows(4)))
    assert lake.done(branch.update(where="id = 4", **_set(lake, {"text": "x"}))).rows_updated == 1
    assert lake.done(branch.delete("id = 1")).num_deleted_rows == 1
    again = lake.done(table.branches.checkout("dev"))
    assert lake.done(again.count_rows()) == 3
    assert [row["id"] for row in lake.done(lake.query(again).to_list())] == [2, 3, 4]
    assert lake.done(table.count_rows()) == 3
    assert lake.done(table.branches.list())["dev"]["parent_version"] == 1
    lake.done(again.tags.create("of dev".replace(" ", "-"), 2))
    lake.done(table.tags.delete("of-dev"))
    lake.done(table.branches.delete("dev"))
    assert lake.done(table.branches.list()) == {}


def test_a_branch_starts_at_a_version_or_a_branch(lake: Lake, table: Any) -> None:
    lake.done(table.add(some_rows(4)))
    old = lake.done(table.branches.create("old", from_version=1))
    assert lake.done(old.count_rows()) == 3
    lake.done(old.add(some_rows(5, 6)))
    second = lake.done(table.branches.create("second", from_ref="old"))
    assert lake.done(second.count_rows()) == 5


@covers("branches", "diff", "cherry_pick")
def test_branches_are_not_compared(lake: Lake, table: Any) -> None:
    lake.done(table.branches.create("dev"))
    for call in (table.branches.diff, table.branches.cherry_pick):
        with pytest.raises(Exception, match="no comparison of branches"):
            lake.done(call("dev"))


def _set(lake: Lake, values: dict[str, Any]) -> dict[str, Any]:
    return {"values" if lake.mode == "sync" else "updates": values}
