"""Which groups a history touches, and which rows are read for them; without Spark."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.jobs.refresh.context import SourceVersions
from penstock.jobs.refresh.keys.key_sets import KeySet
from penstock.jobs.refresh.keys.needed import find_needed
from penstock.jobs.refresh.keys.source_rows import SourceRows
from penstock.jobs.refresh.keys.touched import find_touched
from penstock.jobs.spark.chosen_rows import divide, read_chosen
from penstock.jobs.spark.lance_source import make_scan
from penstock.lance.diff.row_diff import compare
from penstock.lance.session.remote import Location
from penstock.model.views import Branch, KeyPart, Occurrence, Source
from tests.harness.data.sources import SourceHistory

READS = ("a", "s.x", "id")
BRANCH = Branch((Occurrence(name="source", source="source"),), (KeyPart(0, "a"), KeyPart(0, "s.x")))
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
        sources = {"source": SourceRows(at, compare(now, then, READS))}
        parts = list(find_touched(BRANCH, sources))
        is_now, was = groups_of(now), groups_of(then)
        changed = [key for key in is_now.keys() | was if is_now.get(key) != was.get(key)]
        if history.steps[-1] in ("do_compact", "do_update_other", "do_change_columns"):
            assert not parts
        if not parts:
            assert not changed
            continue
        touched = KeySet([pa.concat_arrays(each) for each in zip(*parts, strict=True)])
        if changed:
            assert touched.contains(as_keys(changed, now)).all(), history.steps
        check_rows(now, location, sources, touched)


def check_rows(
    dataset: lance.LanceDataset,
    location: Location,
    sources: dict[str, SourceRows],
    touched: KeySet,
) -> None:
    """All rows of the groups are read, and no others."""
    scan = make_scan(dataset, location, READS, "job", 3)
    (needed,) = find_needed(BRANCH, sources, touched)
    assert needed is not None
    read: list[int] = []
    for task in divide(needed.ids, needed.addresses, 3):
        for chosen in task:
            for batch in read_chosen(scan, chosen):
                assert batch.schema.names == ["a", "s", "id"]
                read += batch.column("id").to_pylist()
    found = groups_of(dataset)
    mask: Any = touched.contains(as_keys(list(found), dataset)) if found else []
    wanted = [id for ids, taken in zip(found.values(), mask, strict=True) if taken for id in ids]
    assert sorted(read) == sorted(wanted)
