"""Any set of rows is taken away as Lance itself would."""

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from penstock.jobs.refresh.history import commit_refresh
from penstock.jobs.refresh.row_files import RowFiles
from penstock.lance.commit.removal import remove_rows
from penstock.lance.session.remote import Location


def write(path: Path, rows: int, fragment: int) -> lance.LanceDataset:
    table = pa.table({"id": pa.array(range(rows), pa.int64())})
    return lance.write_dataset(
        table, str(path), max_rows_per_file=fragment, enable_stable_row_ids=True
    )


def remove(dataset: lance.LanceDataset, path: Path, ids: Any) -> lance.LanceDataset:
    removal = remove_rows(dataset, Location(str(path), ""), ids)
    commit_refresh(dataset, removal, (), {})
    after = lance.dataset(str(path))
    assert dataset.count_rows() - after.count_rows() == removal.rows
    return after


def ids_of(dataset: lance.LanceDataset) -> list[int]:
    found: list[int] = sorted(dataset.to_table()["id"].to_pylist())
    return found


@pytest.mark.parametrize("share", [0.0001, 0.02, 0.5, 0.97])
def test_rows_go_from_fragments_that_have_lost_some(tmp_path: Path, share: float) -> None:
    rows, chance = 200_000, np.random.default_rng(3)
    dataset = write(tmp_path / "t", rows, 150_000)
    dataset.delete("id % 10 = 3")
    dataset = lance.dataset(str(tmp_path / "t"))
    gone = chance.choice(rows, int(rows * share), replace=False).astype(np.int64)
    after = remove(dataset, tmp_path / "t", gone)
    assert ids_of(after) == sorted({n for n in range(rows) if n % 10 != 3} - set(gone.tolist()))
    # Lance goes on from there.
    after.delete("id % 10 = 4")
    after.optimize.compact_files()
    left = {n for n in range(rows) if n % 10 not in (3, 4)} - set(gone.tolist())
    assert ids_of(lance.dataset(str(tmp_path / "t"))) == sorted(left)


def test_a_fragment_without_rows_is_gone(tmp_path: Path) -> None:
    dataset = write(tmp_path / "t", 30, 10)
    after = remove(dataset, tmp_path / "t", np.arange(8, 20))
    assert [fragment.fragment_id for fragment in after.get_fragments()] == [0, 2]
    assert ids_of(after) == [*range(8), *range(20, 30)]
    assert ids_of(remove(after, tmp_path / "t", "all")) == []


def test_ids_that_are_not_there_are_no_matter(tmp_path: Path) -> None:
    dataset = write(tmp_path / "t", 5, 5)
    removal = remove_rows(dataset, Location(str(tmp_path / "t"), ""), np.array([70, 71]))
    assert (removal.removed, removal.updated, removal.rows) == ([], [], 0)


def test_new_rows_are_what_was_written_in_every_type(tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": pa.array([1, None, 3]),
            "s": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]),
            "l": pa.array([[1, 2], [], None]),
            "d": pa.array(["u", None, "u"]).dictionary_encode(),
            "v": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        }
    )
    path = tmp_path / "t"
    lance.write_dataset(table, str(path), enable_stable_row_ids=True)
    lance.dataset(str(path)).add_columns({"extra": "n * 2"})
    dataset = lance.dataset(str(path))
    files = RowFiles(dataset, Location(str(path), ""), table.schema.names, "job", 1, max_rows=2)
    for batch in table.to_batches():
        files.write(batch)
    made = files.close()
    assert len(made) == 2
    commit_refresh(dataset, remove_rows(dataset, Location(str(path), ""), "all"), made, {})
    after = lance.dataset(str(path)).to_table(with_row_id=True)
    assert after.select(table.schema.names).to_pylist() == table.to_pylist()
    assert after["extra"].to_pylist() == [None] * 3
    assert after["_rowid"].to_pylist() == [3, 4, 5]
