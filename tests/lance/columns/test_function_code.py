"""The code of functions beside a table."""

import hashlib
from pathlib import Path

import pytest

from penstock.lance.columns import function_code
from penstock.lance.storage import files
from penstock.lance.storage.lake import Lake, Place

CODE = b"\x80\x05N."
HASH = hashlib.sha256(CODE).hexdigest()


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    root = str(tmp_path / "lake") if request.param == "local" else "memory://lake"
    lake = Lake(root)
    return lake.place(lake.new_location("t", "1"))


def test_code_is_stored_and_read_by_its_hash(place: Place) -> None:
    for _ in range(2):
        assert function_code.store(place, CODE) == HASH
    assert function_code.exists(place, HASH)
    assert files.read(place, function_code.path_of(HASH)) == CODE


def test_a_damaged_file_is_stored_anew(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    place = lake.place(lake.new_location("t", "1"))
    function_code.store(place, CODE)
    path = Path(place.file(function_code.path_of(HASH)))
    path.write_bytes(b"other")
    function_code.store(place, CODE)
    assert files.read(place, function_code.path_of(HASH)) == CODE
    assert [each.name for each in path.parent.iterdir()] == [HASH]
