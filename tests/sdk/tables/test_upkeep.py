"""Tables kept small by the SDK."""

from datetime import timedelta

import pytest

import penstock
from penstock.errors import InvalidRequest

NOW = timedelta(0)


def test_a_table_is_compacted_and_its_old_versions_go(table: penstock.Table) -> None:
    for n in range(4):
        table.append([{"id": 10 + n, "text": "x"}])
    rows = table.to_list()
    done = table.compact()
    assert (done.fragments_removed, done.fragments_added, done.pieces_lost) == (5, 1, 0)
    assert table.compact().fragments_removed == 0
    assert table.cleanup().versions_removed == 0
    table.create_tag("two", 2)
    would = table.cleanup(older_than=NOW, dry_run=True)
    assert would.versions_kept == {"newest": 1, "tag": 1}
    cleaned = table.cleanup(older_than=NOW)
    assert cleaned.versions_removed == would.versions_removed == done.version - 2
    assert cleaned.bytes_removed > 0
    assert [each.version for each in table.versions()] == [done.version, 2]
    assert table.to_list() == rows
    assert len(table.at("two")) == 4


def test_a_policy_is_set_told_and_ended(table: penstock.Table) -> None:
    assert table.upkeep() is None
    table.set_upkeep(older_than=timedelta(days=7), keep_versions=10)
    found = table.upkeep()
    assert found is not None
    assert (found.compact, found.older_than, found.keep_versions) == (True, timedelta(days=7), 10)
    assert found.error is None
    with pytest.raises(InvalidRequest, match="older_than_seconds"):
        table.set_upkeep(older_than=timedelta(minutes=1))
    with pytest.raises(InvalidRequest, match="neither compacts nor removes"):
        table.set_upkeep(compact=False)
    table.end_upkeep()
    assert table.upkeep() is None


def test_the_newest_versions_stay(table: penstock.Table) -> None:
    for n in range(3):
        table.append([{"id": 10 + n, "text": "x"}])
    assert table.cleanup(older_than=NOW, keep_versions=3).versions_removed == 1
    with pytest.raises(InvalidRequest, match="older_than is -1 day"):
        table.cleanup(older_than=timedelta(days=-1))
    with pytest.raises(InvalidRequest, match="old versions are not changed"):
        table.at(3).compact()
