"""Which groups a history touches, and which rows are read for them; without Spark."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.jobs.refresh.context import SourceVersions
from penstock.jobs.refresh.groups.key_sets import KeySet
from penstock.jobs.refresh.groups.plan import find_touched
from penstock.jobs.refresh.groups.run import GroupsOrder, read_groups
from penstock.jobs.spark.lance_source import make_scan
from penstock.lance.diff.row_diff import compare
from penstock.lance.session.remote import Location
from penstock.model.views import Column, Groups, Source
from tests.harness.data.sources import SourceHistory

READS = ("a", "s.x", "id")
KEYS = Groups(
    keys=(Column(name="a", expression="a", path="a"), Column(name="x", expression="x", path="s.x"))
)
Key = tuple[Any, Any]


def groups_of(dataset: lance.LanceDataset) -> dict[Key, list[int]]:
    """What any aggregate over `id` depends on."""
    found: dict[Key, list[int]] = defaultdict(list)
    for row in dataset.to_table(columns=["a", "s", "id"]).to_pylist():
        found[row["a"], row["s"]["x"]].append(row["id"])
    return {key: sorted(ids) for key, ids in found.items()}


def as_keys(keys: list[Key], dataset: lance.LanceDataset) -> list[pa.Array]:
    kinds = dataset.schema.field("a").type, pa.string()
    return [pa.array([key[n] for key in keys], kind) for n, kind in enumerate(kinds)]


@pytest.mark.parametrize("seed", range(6))
def test_every_group_that_is_not_what_it_was_is_touched_and_read(tmp_path: Path, seed: int) -> None:
    history = SourceHistory(tmp_path / "source", seed)
    before = 1
    for _ in range(6):
        history.step()
        now, then = history.open(), history.open(before)
        before = now.version
        location = Location(history.path, "")
        source = Source(id="s", table=("n", "source"), name="source", reads=READS)
        at = SourceVersions(source, location, now.version, now, then.version, then)
        touched = find_touched(at, KEYS, compare(now, then, READS))
        is_now, was = groups_of(now), groups_of(then)
        changed = [key for key in is_now.keys() | was if is_now.get(key) != was.get(key)]
        if changed:
            assert touched.contains(as_keys(changed, now)).all(), history.steps
        check_rows(now, location, touched)
        if history.steps[-1] in ("do_compact", "do_update_other", "do_change_columns"):
            assert len(touched) == 0


def check_rows(dataset: lance.LanceDataset, location: Location, touched: KeySet) -> None:
    """All rows of the groups are read, and no others."""
    scan = make_scan(dataset, location, READS, "job", 3)
    order = GroupsOrder(scan, ("a", "s.x"), touched.encode(), None)
    groups = KeySet.decode(order.groups)
    read: list[int] = []
    for task in scan.tasks:
        for piece in task:
            for batch in read_groups(order, groups, piece):
                assert batch.schema.names == ["a", "s", "id"]
                read += batch.column("id").to_pylist()
    found = groups_of(dataset)
    mask: Any = touched.contains(as_keys(list(found), dataset)) if found else []
    wanted = [id for ids, taken in zip(found.values(), mask, strict=True) if taken for id in ids]
    assert sorted(read) == sorted(wanted)
