"""Rows of tables that pyiceberg wrote: all of a state, or what appends added."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import Forbidden, InvalidTableState
from penstock.iceberg.tables.reading import StateReader
from tests.harness.data.loose_iceberg import ROWS, make_table
from tests.harness.processes.s3 import BUCKET, SECRETS, Store


def read(table: Any, options: Any = None, snapshots: Any = None, parts: int = 2) -> list[int]:
    folders = [table.metadata.location]
    reader = StateReader(table.metadata_location, folders, options or {}, snapshots)
    found = [batch for part in range(parts) for batch in reader.read(["id"], part, parts)]
    return sorted(pa.Table.from_batches(found)["id"].to_pylist()) if found else []


def snapshots_of(table: Any) -> list[int]:
    return [each.snapshot_id for each in table.metadata.snapshots]


def test_a_state_is_what_its_metadata_file_says_for_ever(tmp_path: Path) -> None:
    table = make_table(f"file://{tmp_path}/t")
    assert read(table) == []
    table.append(ROWS)
    first = StateReader(table.metadata_location, [table.metadata.location], {})
    table.delete("id = 2")
    table.append(ROWS.slice(0, 1))
    assert read(table) == [1, 1, 3]
    assert sum(batch.num_rows for batch in first.read(["name"], 0, 1)) == 3


@pytest.mark.parametrize("merges", ["false", "true"])
def test_appended_rows_are_read_alone_whether_manifests_are_merged_or_not(
    tmp_path: Path, merges: str
) -> None:
    table = make_table(f"file://{tmp_path}/t")
    with table.transaction() as transaction:
        transaction.set_properties(
            {"commit.manifest-merge.enabled": merges, "commit.manifest.min-count-to-merge": "2"}
        )
    for number in range(3):
        table.append(ROWS.slice(number, 1))
    ids = snapshots_of(table)
    assert [read(table, snapshots=[id]) for id in ids] == [[1], [2], [3]]
    assert read(table, snapshots=ids[1:]) == [2, 3]
    assert read(table, snapshots=[]) == []


def test_files_are_opened_in_the_tables_own_folders_only(tmp_path: Path) -> None:
    table = make_table(f"file://{tmp_path}/t")
    table.append(ROWS)
    for folder in (f"{tmp_path}/other", f"{tmp_path}/t/meta", f"file://{tmp_path}/t/data"):
        with pytest.raises(Forbidden, match="not in the table's folder"):
            StateReader(table.metadata_location, [folder], {})
    # A link leads out of the folder.
    data = next((tmp_path / "t" / "data").iterdir())
    data.rename(tmp_path / "elsewhere")
    data.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Forbidden):
        read(table)
    data.unlink()
    with pytest.raises(InvalidTableState, match="is not there any more"):
        read(table)


def test_a_table_in_a_store_is_read_with_the_options_of_the_lake(store: Store) -> None:
    known = {
        "s3_endpoint": store.options["aws_endpoint"],
        "s3_region": "us-east-1",
        "s3_access_key_id": SECRETS["aws_access_key_id"],
        "s3_secret_access_key": SECRETS["aws_secret_access_key"],
    }
    table = make_table(f"s3://{BUCKET}/t", **known)
    table.append(ROWS)
    assert read(table, {**store.options, **SECRETS}) == [1, 2, 3]
    with pytest.raises(Forbidden):
        StateReader(table.metadata_location, [f"s3://{BUCKET}/other"], store.options)
