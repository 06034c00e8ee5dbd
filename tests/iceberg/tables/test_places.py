"""Where metadata files are, and what is in them."""

import gzip

import msgspec
import pytest

from penstock.errors import InvalidTable
from penstock.iceberg.tables.places import encode, next_metadata_path
from tests.iceberg.tables.tables import LOCATION, UUID, with_snapshots

CODEC = "write.metadata.compression-codec"


def test_files_are_numbered_in_the_metadata_folder() -> None:
    first = next_metadata_path(LOCATION, {}, None, UUID)
    assert first == f"{LOCATION}/metadata/00000-{UUID}.metadata.json"
    second = next_metadata_path(LOCATION, {}, first, "x")
    assert second == f"{LOCATION}/metadata/00001-x.metadata.json"
    assert "/00000-x" in next_metadata_path(LOCATION, {}, f"{LOCATION}/v3.metadata.json", "x")


def test_a_property_puts_them_elsewhere() -> None:
    properties = {"write.metadata.path": "s3://lake/files/"}
    path = next_metadata_path(LOCATION, properties, None, "x")
    assert path == "s3://lake/files/00000-x.metadata.json"


def test_a_property_compresses_them() -> None:
    path = next_metadata_path(LOCATION, {CODEC: "GZIP"}, None, "x")
    assert path.endswith("/00000-x.gz.metadata.json")
    table = with_snapshots(2)
    assert msgspec.json.decode(gzip.decompress(encode(table, path))) == table


def test_they_are_plain_otherwise() -> None:
    table = with_snapshots(2)
    path = next_metadata_path(LOCATION, {CODEC: "none"}, None, "x")
    assert msgspec.json.decode(encode(table, path)) == table


def test_metadata_that_is_too_large_is_refused_before_it_is_written() -> None:
    table = with_snapshots(3)
    for path in ("x.metadata.json", "x.gz.metadata.json"):
        with pytest.raises(InvalidTable, match="more than 1000") as error:
            encode(table, path, max_bytes=1000)
        assert "expire snapshots" in error.value.detail


def test_metadata_of_more_values_than_anybody_could_load_is_refused_before_it_is_written() -> None:
    table = {**with_snapshots(1), "x": [[]] * 8_000_000}
    with pytest.raises(InvalidTable, match="more values than anybody could load"):
        encode(table, "x.metadata.json")
