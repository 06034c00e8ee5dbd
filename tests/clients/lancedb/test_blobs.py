"""lancedb's remote tables: columns of blobs, read whole, as files and in ranges."""

import hashlib
from typing import Any

import lance
import lancedb
import pyarrow as pa
import pytest
from lance.blob import Blob, blob_array
from lancedb.remote.errors import HttpError

from penstock.lance.read.blobs import MAX_WHOLE_BYTES
from tests.harness.clients.lancedb_modes import Lake, covers
from tests.harness.data.tables import new_name

LARGE = 5 * 1024 * 1024
SCHEMA = pa.schema([pa.field("id", pa.int64()), lancedb.blob("image")])


def some_bytes(size: int, seed: int) -> bytes:
    return hashlib.shake_256(bytes([seed])).digest(size)


@pytest.fixture
def images(lake: Lake) -> Any:
    """A table with a short blob, none, an empty one, and one in a file of its own."""
    blobs = [b"short", None, b"", some_bytes(200_000, 0)]
    rows = [{"id": id, "image": blob} for id, blob in enumerate(blobs)]
    return lake.done(lake.database.create_table(new_name(), rows, schema=SCHEMA))


def row_ids(lake: Lake, table: Any, where: str = "true") -> list[int]:
    found = lake.with_row_id(lake.query(table).where(where)).select(["id"])
    return [row["_rowid"] for row in lake.done(found.to_list())]


@covers("table", "blob_columns", "fetch_blobs")
def test_blobs_are_read_whole(lake: Lake, images: Any) -> None:
    assert lake.done(images.blob_columns()) == ["image"]
    found = lake.done(images.fetch_blobs("image", [3, 2, 1, 0, 0])).to_pylist()
    assert found == [some_bytes(200_000, 0), b"", None, b"short", b"short"]
    hits = lake.done(lake.query(images).select(["image"]).where("id < 2").to_arrow())
    assert lake.done(images.fetch_blobs("image", hits)).to_pylist() == [b"short", None]


@covers("table", "fetch_blob_files")
def test_blobs_are_files(lake: Lake, images: Any) -> None:
    content = some_bytes(200_000, 0)
    short, none, empty, long = lake.done(images.fetch_blob_files("image", [0, 1, 2, 3]))
    assert none is None
    assert lake.mode != "sync" or (short.read(), empty.read(), empty.size()) == (b"short", b"", 0)
    assert long.size() == 200_000
    assert lake.done(long.aread()) == content if lake.mode == "async" else long.read() == content
    if lake.mode == "sync":
        long.seek(-7, 2)
        assert long.read() == content[-7:]
        assert long.read_range(1000, 50) == content[1000:1050]


def test_a_file_stays_at_its_version(lake: Lake, images: Any) -> None:
    (file,) = lake.done(images.fetch_blob_files("image", [0]))
    lake.done(images.delete("id = 0"))
    assert (lake.done(file.aread()) if lake.mode == "async" else file.read()) == b"short"
    with pytest.raises(HttpError, match="no row with the id 0"):
        lake.done(images.fetch_blobs("image", [0]))


def test_large_blobs_arrive_and_are_read(lake: Lake, images: Any) -> None:
    rows = [{"id": 10 + n, "image": some_bytes(LARGE, n)} for n in range(3)]
    lake.done(images.add(rows))
    ids = row_ids(lake, images, "id >= 10")
    assert lake.done(images.fetch_blobs("image", ids)).to_pylist() == [r["image"] for r in rows]
    merge = images.merge_insert("id").when_matched_update_all()
    lake.done(merge.execute([{"id": 10, "image": some_bytes(LARGE, 9)}], timeout=None))
    (changed,) = row_ids(lake, images, "id = 10")
    assert lake.done(images.fetch_blobs("image", [changed])).to_pylist() == [some_bytes(LARGE, 9)]


def test_a_very_large_blob_is_read_in_ranges(lake: Lake, images: Any) -> None:
    content = some_bytes(1024, 1) * (MAX_WHOLE_BYTES // 1024 + 1)
    lake.done(images.add([{"id": 10, "image": content}]))
    (id,) = row_ids(lake, images, "id = 10")
    found = lake.done(images.fetch_blobs("image", [0, id, 1])).to_pylist()
    assert (found[0], found[1] == content, found[2]) == (b"short", True, None)


def test_what_is_no_blob_is_refused(lake: Lake, images: Any) -> None:
    for column, ids, match in (
        ("id", [0], "holds no blobs"),
        ("nothing", [0], "does not exist"),
        ("image", [99], "no row with the id 99"),
    ):
        for read in (images.fetch_blobs, images.fetch_blob_files):
            with pytest.raises(HttpError, match=match):
                lake.done(read(column, ids))


def test_a_blob_outside_the_table_is_not_fetched(lake: Lake, images: Any, tmp_path: Any) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not yours")
    location = lake.get(images, "uri")
    blobs = blob_array([Blob.from_uri(secret.as_uri())])
    rows = pa.table({"id": [9], "image": blobs}, schema=lance.dataset(location).schema)
    dataset = lance.dataset(location)
    lance.write_dataset(rows, dataset, mode="append", allow_external_blob_outside_bases=True)
    (id,) = row_ids(lake, images, "id = 9")
    for read in (images.fetch_blobs, images.fetch_blob_files):
        with pytest.raises(HttpError, match="outside the table's own files"):
            lake.done(read("image", [id]))
