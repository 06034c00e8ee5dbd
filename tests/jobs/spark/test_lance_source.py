"""Lance tables as Spark reads them, without Spark."""

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from penstock.jobs.spark.lance_source import (
    FragmentPiece,
    divide,
    make_scan,
    read_kernel,
    read_piece,
    spark_schema,
    take_first,
)
from penstock.lance.session.remote import Location


@pytest.mark.parametrize("slots", [1, 2, 3, 7])
@pytest.mark.parametrize("sizes", [[], [5], [100_000], [100_000, 1, 0, 70_000], [40_000] * 9])
def test_tasks_have_every_row_once_and_about_as_many(sizes: list[int], slots: int) -> None:
    tasks = divide(dict(enumerate(sizes)), slots)
    assert len(tasks) <= slots
    seen = {id: np.zeros(rows, int) for id, rows in enumerate(sizes)}
    for task in tasks:
        for piece in task:
            seen[piece.fragment][slice(*(piece.range or (None, None)))] += 1
    assert all((rows == 1).all() for rows in seen.values())
    counts = [sum(_rows(piece, sizes) for piece in task) for task in tasks]
    assert max(counts) - min(counts) <= len(sizes) + 1


def _rows(piece: FragmentPiece, sizes: list[int]) -> int:
    first, last = piece.range or (0, sizes[piece.fragment])
    return last - first


def test_the_first_rows_are_those_of_the_first_fragments() -> None:
    sizes = {3: 10, 5: 0, 7: 10, 8: 10}
    assert take_first(sizes, 12) == (
        FragmentPiece(3),
        FragmentPiece(5),
        FragmentPiece(7, (0, 2)),
    )
    assert take_first(sizes, 100) == tuple(map(FragmentPiece, sizes))
    assert take_first({}, 5) == ()


def test_a_reader_gives_only_what_is_asked_for(tmp_path: Path) -> None:
    table = pa.table({"u": pa.array([7, 8, 9], pa.uint64()), "i": [1, 5, 5], "other": [0, 0, 0]})
    path = str(tmp_path / "t")
    dataset = lance.write_dataset(table, path, max_rows_per_file=2, enable_stable_row_ids=True)
    scan = make_scan(dataset, Location(path, ""), ("u", "i"), "job", 2, "id", "i = 5 OR i = 6")
    assert spark_schema(scan) == "`u` decimal(20, 0), `i` bigint, `id` bigint"
    numbers = [pa.record_batch([[n]], ["id"]) for n in range(len(scan.tasks))]
    rows = [row for batch in read_kernel(scan)(iter(numbers)) for row in batch.to_pylist()]
    assert rows == [{"u": 8, "i": 5, "id": 1}, {"u": 9, "i": 5, "id": 2}]


def test_ranges_of_a_fragment_count_deleted_rows_and_filtered_ones(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"a": list(range(10))}), str(tmp_path / "t"))
    dataset.delete("a < 3")

    def read(range: tuple[int, int], where: str | None) -> list[int]:
        scan = make_scan(dataset, Location(dataset.uri, ""), ("a",), "job", 2, where=where)
        batches = read_piece(scan, FragmentPiece(0, range))
        return [row["a"] for batch in batches for row in batch.to_pylist()]

    assert read((0, 5), None) == [3, 4]
    assert read((5, 10), "a % 2 = 0 OR a = 3") == [6, 8]
