"""Commits of column files, and races that they lose."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import DataFile

from penstock.errors import ConcurrentCommit
from penstock.lance.commit.replacement import ColumnFile, commit_files


@pytest.mark.parametrize("race", ["update", "delete", "compact", "overwrite"])
def test_a_file_for_a_fragment_that_is_gone_is_a_lost_race(tmp_path: Path, race: str) -> None:
    """Whoever prepared the file looks at the table again; nothing is wrong with the request."""
    rows = pa.table({"id": range(4), "text": ["a"] * 4})
    made = lance.write_dataset(
        rows, tmp_path / "t", enable_stable_row_ids=True, max_rows_per_file=2
    )
    then = lance.dataset(tmp_path / "t")
    match race:
        case "update":
            made.update({"text": "'b'"}, "id < 2")
        case "delete":
            made.delete("id < 2")
        case "compact":
            made.optimize.compact_files()
        case _:
            lance.write_dataset(rows, tmp_path / "t", mode="overwrite")
    old: DataFile = then.get_fragments()[0].data_files()[0]
    file = ColumnFile(
        path=old.path,
        fields=tuple(old.fields),
        column_indices=tuple(old.column_indices),
        major=old.file_major_version,
        minor=old.file_minor_version,
        size_bytes=old.file_size_bytes or 0,
        rows=2,
    )
    with pytest.raises(ConcurrentCommit):
        commit_files(then, {0: file}, {})
