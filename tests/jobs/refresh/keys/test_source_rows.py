"""Rows of a source by their keys: no more of them are held than are worth it."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from penstock.jobs.refresh.context import SourceVersions
from penstock.jobs.refresh.keys.key_sets import KeySet
from penstock.jobs.refresh.keys.source_rows import SourceRows, TooManyRows
from penstock.lance.session.remote import Location
from penstock.model.views import Source

ROWS = 1_000


def open_rows(folder: Path) -> SourceRows:
    table = pa.table({"kind": pa.array([n % 4 for n in range(ROWS)], pa.int64())})
    dataset = lance.write_dataset(table, str(folder / "t"), enable_stable_row_ids=True)
    source = Source(id="t", table=("t",), name="t", reads=("kind",))
    return SourceRows(
        SourceVersions(source, Location(str(folder / "t"), ""), dataset.version, dataset), None
    )


def test_rows_are_found_up_to_a_bound(tmp_path: Path) -> None:
    rows = open_rows(tmp_path)
    wanted = [(("kind",), KeySet([pa.array([1, 3], pa.int64())]))]
    assert len(rows.find((), wanted).ids) == ROWS // 2
    assert len(rows.find((), wanted, ROWS // 2).ids) == ROWS // 2
    with pytest.raises(TooManyRows):
        rows.find((), wanted, ROWS // 2 - 1)
