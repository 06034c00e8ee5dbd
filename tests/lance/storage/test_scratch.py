"""Files that live for minutes, on a disk and on S3."""

import io
import time
from pathlib import Path

import pytest

from penstock.errors import InvalidRequest
from penstock.lance.storage import files, scratch
from penstock.lance.storage.lake import Lake, Place
from tests.harness.processes.s3 import BUCKET, Store

LARGE = bytes(range(256)) * 50_000


@pytest.fixture(params=["disk", "s3", "root of s3"])
def place(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> Place:
    roots = {"disk": str(tmp_path), "s3": f"s3://{BUCKET}/lake", "root of s3": f"s3://{BUCKET}"}
    lake = Lake(roots[request.param], options={} if request.param == "disk" else store.options)
    return lake.place(f"{lake.root}/_results")


def read(place: Place, name: str) -> bytes:
    with scratch.read(place, name) as file:
        return bytes(file.read())


def test_a_file_is_kept_until_it_is_removed(place: Place) -> None:
    scratch.write(place, "one", b"few", 100)
    scratch.write(place, "two", io.BytesIO(LARGE), len(LARGE))
    assert (read(place, "one"), read(place, "two")) == (b"few", LARGE)
    scratch.write(place, "one", b"other", 100)
    assert read(place, "one") == b"other"
    files.remove(place, "one")
    with pytest.raises(FileNotFoundError):
        read(place, "one")


def test_a_file_that_is_too_large_is_not_kept(place: Place) -> None:
    with pytest.raises(InvalidRequest, match="more than 1000 bytes"):
        scratch.write(place, "much", io.BytesIO(LARGE), 1000)
    with pytest.raises(FileNotFoundError):
        read(place, "much")
    assert [each.name for each in files.list_folder(place, "") if "much" in each.name] == []


def test_only_old_files_are_swept(place: Place) -> None:
    assert scratch.sweep(place, 0) == 0
    scratch.write(place, "old", b"x", 10)
    now = int(time.time() * 1000)
    scratch.sweep(place, now - 60_000)
    assert read(place, "old") == b"x"
    assert scratch.sweep(place, now + 60_000) >= 1
    assert files.list_folder(place, "") == []
