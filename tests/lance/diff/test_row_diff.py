"""Two versions of a table are compared exactly, whatever happened in between."""

from pathlib import Path
from typing import Any

import lance
import pytest

from penstock.errors import ColumnNotFound
from penstock.lance.diff.row_diff import compare, count_changed
from tests.harness.data.sources import SourceHistory

PATHS = ("a", "s.x")


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
    history = SourceHistory(path, seed)
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
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_random_histories_are_compared_exactly(tmp_path: Path, seed: int) -> None:
    go_through(tmp_path / "t", seed, 20)


def test_what_did_not_change_is_not_looked_at(tmp_path: Path) -> None:
    history = SourceHistory(tmp_path / "t", 0)
    then = history.open()
    history.open().update({"b": "7"}, where="id = 3")
    history.do_append()
    found = compare(history.open(), then, PATHS)
    # The fragment that the row left, the one that it went to, and the new one.
    assert found.fragments == 3
    assert found.changed.ids.tolist() == []
    assert len(found.inserted.ids) == history.next - 40


def test_a_field_that_one_version_lacks_is_an_error(tmp_path: Path) -> None:
    history = SourceHistory(tmp_path / "t", 0)
    then = history.open()
    history.open().add_columns({"more": "id"})
    with pytest.raises(ColumnNotFound, match="more"):
        compare(history.open(), then, ("more",))


def test_changed_rows_are_counted_by_the_fragments(tmp_path: Path) -> None:
    history = SourceHistory(tmp_path / "source", 1)
    then = history.open()

    def count(paths: tuple[str, ...] = PATHS) -> int:
        return count_changed(history.open(), then, paths)

    assert count() == 0
    history.open().update({"a": "7"}, where="id < 3")
    assert count() == 3
    history.open().delete("id = 20")
    # Four went, and three came.
    assert count() == 4
    history.do_append()
    came = history.open().count_rows() - 39
    assert count() == 3 + came
    then = history.open()
    history.open().add_columns({"more": "id * 2"})
    assert count() == 0
    history.open().optimize.compact_files()
    assert count() == history.open().count_rows()
