"""The store of what functions of views made: on a disk and on an object store."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.jobs.kept import store as kept
from penstock.lance.storage.lake import Lake, Place
from penstock.lance.storage.side_files import FOLDER, write_file
from penstock.model.functions import Function
from tests.harness.processes.s3 import BUCKET, running_store

FUNCTION = Function(
    name="f", version="1", sha256="0" * 64, form="pickle", kind="chunker", inputs=(), outputs=()
)
KINDS = pa.schema([("made", pa.int64())])
FOLDER_OF_VIEW = kept.name_view_store(FUNCTION, KINDS, is_full=False)


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "disk":
        yield Lake(str(tmp_path)).place(str(tmp_path))
        return
    with running_store() as store:
        lake = Lake(f"s3://{BUCKET}/v.lance", options=store.options)
        yield lake.place(lake.root)


def write(place: Place, *keys: int) -> str:
    values = pa.record_batch([pa.array(keys, pa.int64())], schema=KINDS)
    failed = np.zeros(len(keys), bool)
    table = kept.make_table(np.array(keys), np.array(keys, np.uint64), failed, [values])
    return kept.write_part(kept.Store(place, FOLDER_OF_VIEW, "job"), table)


def test_what_is_kept_is_found_read_and_swept(place: Place) -> None:
    assert kept.find_parts(place, FOLDER_OF_VIEW) == []
    name = write(place, 7, 3)
    write_file(place, f"{FOLDER}/other-job/note.json", b"{}")
    (part,) = kept.find_parts(place, FOLDER_OF_VIEW)
    assert part == kept.Part(name, 3, 8, kept.name_writer("job"))
    store = kept.Store(place, FOLDER_OF_VIEW, "another job")
    table = kept.read_part(store, part)
    assert table["made"].to_pylist() == table[kept.KEY].to_pylist() == [7, 3]
    kept.remove_parts(store, [name])
    with pytest.raises(FileNotFoundError):
        kept.read_part(store, part)
    write(place, 1)
    kept.remove_view_stores(place)
    assert kept.find_parts(place, FOLDER_OF_VIEW) == []
    # What is not a view's stays.
    assert place.is_local is False or Path(place.file(f"{FOLDER}/other-job/note.json")).exists()


def test_other_functions_and_full_refreshes_have_stores_of_their_own() -> None:
    other = Function(
        name="f", version="2", sha256="0" * 64, form="pickle", kind="chunker", inputs=(), outputs=()
    )
    names = {
        FOLDER_OF_VIEW,
        kept.name_view_store(FUNCTION, KINDS, is_full=True),
        kept.name_view_store(other, KINDS, is_full=False),
        kept.name_view_store(FUNCTION, pa.schema([("made", pa.int32())]), is_full=False),
    }
    assert len(names) == 4
