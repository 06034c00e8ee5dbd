"""Two versions of a table are compared exactly, whatever happened in between."""

import random
from pathlib import Path
from typing import Any, cast

import lance
import pyarrow as pa
import pytest

from penstock.datasets.differences import compare
from penstock.errors import ColumnNotFound

PATHS = ("a", "s.x")


def some_rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "a": pa.array([None if n % 6 == 0 else n % 3 for n in ids], pa.int64()),
            "s": pa.array([{"x": f"x{n % 2}", "y": n} for n in ids]),
            "b": pa.array([0] * count, pa.int64()),
        }
    )


class History:
    """A table that random things happen to."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = str(path)
        self.chance = random.Random(seed)
        self.next = 40
        self.steps: list[str] = []
        # Between two steps; some take several commits.
        self.versions = [1]
        lance.write_dataset(
            some_rows(0, 40), self.path, max_rows_per_file=10, enable_stable_row_ids=True
        )

    def open(self, version: int | None = None) -> lance.LanceDataset:
        return lance.dataset(self.path, version=version)

    def where(self) -> str:
        modulus = self.chance.choice([2, 3, 7, 20])
        return f"id % {modulus} = {self.chance.randrange(modulus)}"

    def step(self) -> None:
        name = self.chance.choice([name for name in dir(self) if name.startswith("do_")])
        self.steps.append(name)
        getattr(self, name)()
        self.versions.append(self.open().version)

    def do_append(self) -> None:
        count = self.chance.randrange(1, 9)
        self.open().insert(some_rows(self.next, count))
        self.next += count

    def do_update_read(self) -> None:
        self.open().update({"a": str(self.chance.randrange(3))}, where=self.where())

    def do_update_other(self) -> None:
        self.open().update({"b": "b + 1"}, where=self.where())

    def do_delete(self) -> None:
        self.open().delete(self.where() + " AND id % 5 < 2")

    def do_merge(self) -> None:
        start = self.chance.randrange(self.next)
        rows = some_rows(start, 9)
        self.next = max(self.next, start + 9)
        builder = self.open().merge_insert("id")
        builder.when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def do_merge_column(self) -> None:
        ids = [n for n in range(self.next) if self.chance.random() < 0.1]
        rows = pa.table({"id": pa.array(ids, pa.int64()), "a": pa.array([9] * len(ids))})
        self.open().merge_insert("id").when_matched_update_all().execute(rows)

    def do_compact(self) -> None:
        size = self.chance.choice([15, 30, 1000])
        self.open().optimize.compact_files(target_rows_per_fragment=size)

    def do_change_columns(self) -> None:
        dataset = self.open()
        if "more" in dataset.schema.names:
            dataset.drop_columns(["more"])
        else:
            dataset.add_columns({"more": "id * 2"})

    def do_make_read_column_anew(self) -> None:
        self.open().add_columns({"other_a": "a + (id % 2)"})
        self.open().drop_columns(["a"])
        self.open().alter_columns(cast(Any, {"path": "other_a", "name": "a"}))

    def do_restore(self) -> None:
        self.open(self.chance.choice(self.versions)).restore()  # type: ignore[no-untyped-call]

    def do_overwrite(self) -> None:
        if self.chance.random() < 0.3:
            count = self.chance.randrange(10, 40)
            lance.write_dataset(
                some_rows(0, count),
                self.path,
                mode="overwrite",
                max_rows_per_file=10,
                enable_stable_row_ids=True,
            )

    def do_swap(self) -> None:
        for old, new in (("a", "temp"), ("b", "a"), ("temp", "b")):
            self.open().alter_columns(cast(Any, {"path": old, "name": new}))


def rows_of(dataset: lance.LanceDataset) -> dict[int, tuple[Any, Any]]:
    table = dataset.to_table(columns=["a", "s"], with_row_id=True).to_pylist()
    return {row["_rowid"]: (row["a"], row["s"]["x"]) for row in table}


def check(now: lance.LanceDataset, then: lance.LanceDataset) -> None:
    found, new, old = compare(now, then, PATHS), rows_of(now), rows_of(then)
    assert found.inserted.ids.tolist() == sorted(new.keys() - old.keys())
    assert found.deleted.ids.tolist() == sorted(old.keys() - new.keys())
    both = new.keys() & old.keys()
    assert found.changed.ids.tolist() == sorted(id for id in both if new[id] != old[id])
    for n, path in enumerate(PATHS):
        wanted = [new[id][n] != old[id][n] for id in found.changed.ids.tolist()]
        assert found.differing[path].tolist() == wanted
    for rows, dataset in ((found.inserted, now), (found.changed, now), (found.deleted, then)):
        places = ((rows.fragments << 32) | rows.offsets).tolist()
        ids = dataset.to_table(columns=[], with_row_id=True, with_row_address=True).to_pylist()
        where = {row["_rowid"]: row["_rowaddr"] for row in ids}
        assert places == [where[id] for id in rows.ids.tolist()]


def go_through(path: Path, seed: int, steps: int) -> None:
    history = History(path, seed)
    for _ in range(steps):
        history.step()
        newest = history.open()
        # Also backwards: a refresh may be asked for an older version.
        for version in {history.chance.choice(history.versions), newest.version}:
            other = history.open(version)
            try:
                check(newest, other)
                check(other, newest)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {history.steps}, {version}") from error


@pytest.mark.parametrize("seed", range(4))
def test_any_two_versions_of_a_random_history_are_compared_exactly(
    tmp_path: Path, seed: int
) -> None:
    go_through(tmp_path / "t", seed, 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_random_histories_are_compared_exactly(tmp_path: Path, seed: int) -> None:
    go_through(tmp_path / "t", seed, 20)


def test_what_did_not_change_is_not_looked_at(tmp_path: Path) -> None:
    history = History(tmp_path / "t", 0)
    then = history.open()
    history.open().update({"b": "7"}, where="id = 3")
    history.do_append()
    found = compare(history.open(), then, PATHS)
    # The fragment that the row left, the one that it went to, and the new one.
    assert found.fragments == 3
    assert found.changed.ids.tolist() == []
    assert len(found.inserted.ids) == history.next - 40


def test_a_field_that_one_version_lacks_is_an_error(tmp_path: Path) -> None:
    history = History(tmp_path / "t", 0)
    then = history.open()
    history.open().add_columns({"more": "id"})
    with pytest.raises(ColumnNotFound, match="more"):
        compare(history.open(), then, ("more",))
