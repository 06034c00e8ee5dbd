"""What clients load of a table."""

from penstock.iceberg.tables.loading import etag, refs_only
from tests.iceberg.tables.tables import (
    LOCATION,
    committed,
    created,
    set_ref,
    snapshot_ids,
    with_snapshots,
)


def test_only_snapshots_with_references_are_loaded_and_nothing_else_changes() -> None:
    table = committed(with_snapshots(5), set_ref(2, "b"), set_ref(3, "t", "tag"))
    found = refs_only(table)
    assert snapshot_ids(found) == [2, 3, 5]
    assert {**found, "snapshots": table["snapshots"]} == table
    assert snapshot_ids(table) == [1, 2, 3, 4, 5]


def test_a_table_without_snapshots_is_loaded_whole() -> None:
    assert refs_only(created()) == created()
    bare = {key: value for key, value in created().items() if key not in ("refs", "snapshots")}
    assert refs_only(bare) == bare


def test_a_tag_tells_place_and_extent() -> None:
    tags = {etag(f"{LOCATION}/{name}", how) for name in "ab" for how in ("all", "refs")}
    assert len(tags) == 4
    assert all(tag.startswith('"') and tag.endswith('"') and tag.isascii() for tag in tags)
    assert etag(LOCATION) == etag(LOCATION, "all")
