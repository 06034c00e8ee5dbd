"""Metadata files: names, numbers and bytes."""

import gzip
import subprocess
import sys
import tracemalloc

import msgspec
import pytest

from penstock.errors import InvalidRequest, InvalidView
from penstock.iceberg.files import (
    MAX_BYTES,
    MAX_MEMORY,
    decode_metadata,
    encode_metadata,
    estimate_memory,
    next_metadata_path,
)
from tests.iceberg.views import LOCATION, UUID, created, with_versions


def path(previous: str | None = None, location: str = LOCATION, **properties: str) -> str:
    names = {f"write.metadata.{key.replace('_', '-')}": each for key, each in properties.items()}
    return next_metadata_path(location, names, previous, UUID)


def test_the_first_file_has_the_number_zero_and_is_compressed() -> None:
    assert path() == f"{LOCATION}/metadata/00000-{UUID}.gz.metadata.json"


@pytest.mark.parametrize(
    ("previous", "number"),
    [
        (f"{LOCATION}/metadata/00000-{UUID}.gz.metadata.json", "00001"),
        (f"s3://elsewhere/00041-{UUID}.metadata.json", "00042"),
        ("00009-x.metadata.json", "00010"),
        ("a/99999-x.metadata.json", "100000"),
        ("a/b.metadata.json", "00000"),
        ("a/v5.metadata.json", "00000"),
        ("a/-5-x.metadata.json", "00000"),
        ("a/٣-x.metadata.json", "00000"),
        ("a/" + "9" * 5000 + "-x.metadata.json", "00000"),
        ("00007-dir/x.metadata.json", "00000"),
        ("", "00000"),
    ],
)
def test_the_number_follows_that_of_the_previous_file(previous: str, number: str) -> None:
    assert path(previous) == f"{LOCATION}/metadata/{number}-{UUID}.gz.metadata.json"


@pytest.mark.parametrize(
    ("codec", "extension"),
    [
        ("gzip", ".gz.metadata.json"),
        ("GZIP", ".gz.metadata.json"),
        ("none", ".metadata.json"),
        ("None", ".metadata.json"),
    ],
)
def test_the_codec_decides_the_extension(codec: str, extension: str) -> None:
    assert path(compression_codec=codec).endswith(f"{UUID}{extension}")


@pytest.mark.parametrize("codec", ["zstd", "", "gz"])
def test_another_codec_is_refused(codec: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        path(compression_codec=codec)
    assert error.value.message == f"write.metadata.compression-codec is {codec!r}"


@pytest.mark.parametrize("given", ["s3://meta/here", "s3://meta/here/"])
def test_the_metadata_path_decides_the_folder(given: str) -> None:
    """The kit's createViewWithCustomMetadataLocation."""
    assert path(path=given) == f"s3://meta/here/00000-{UUID}.gz.metadata.json"


def test_an_empty_metadata_path_is_none() -> None:
    assert path(path="").startswith(f"{LOCATION}/metadata/")


@pytest.mark.parametrize("given", ["/", "a\nb"])
def test_a_metadata_path_that_names_no_place_is_refused(given: str) -> None:
    with pytest.raises(InvalidView, match=r"^Invalid location: "):
        path(path=given)


def test_a_slash_at_the_end_of_the_location_is_not_doubled() -> None:
    assert path(location="file:/a/").startswith("file:/a/metadata/00000-")


def test_after_a_change_of_location_the_next_file_is_below_the_new_one() -> None:
    assert path(path(), location="s3://new") == f"s3://new/metadata/00001-{UUID}.gz.metadata.json"


@pytest.mark.parametrize("name", ["v.metadata.json", "v.gz.metadata.json", "v.metadata.json.gz"])
def test_what_is_written_is_read_again(name: str) -> None:
    metadata = with_versions(3, comment="é")
    raw = encode_metadata(metadata, name)
    assert raw.startswith(b"\x1f\x8b") == ("gz" in name)
    assert decode_metadata(raw, name) == metadata


def test_equal_metadata_gives_equal_bytes() -> None:
    first = encode_metadata(created(), "a.gz.metadata.json")
    assert first[4:8] == bytes(4)
    assert first == encode_metadata(created(), "b.gz.metadata.json")


def test_a_name_that_is_wrong_about_compression_is_forgiven() -> None:
    body = msgspec.json.encode(created())
    assert decode_metadata(body, "v.gz.metadata.json") == created()
    assert decode_metadata(gzip.compress(body), "v.metadata.json") == created()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b'{"a":"\xff"}', "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b"[]", "holds a list, no object"),
        (b"null", "holds null, no object"),
        (b"\x1f\x8bxx", "is not gzip"),
        (gzip.compress(b"{}", mtime=0)[:-4], "is not gzip"),
        (gzip.compress(b"{}" * 100, mtime=0)[:20] + b"xx", "is not gzip"),
        (gzip.compress(b"no", mtime=0), "is not JSON"),
    ],
)
def test_a_file_that_holds_no_metadata_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(InvalidView, match=rf"^the file 'f.metadata.json' {reason}"):
        decode_metadata(raw, "f.metadata.json")


def test_a_file_that_swells_is_refused_before_it_is_whole() -> None:
    raw = gzip.compress(b" " * 30_000_000)
    tracemalloc.start()
    with pytest.raises(InvalidView, match="holds more than 1000 bytes"):
        decode_metadata(raw, "f.metadata.json", max_bytes=1000)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 3_000_000


def test_a_plain_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(InvalidView, match="holds more than 1000 bytes"):
        decode_metadata(b" " * 1001, "f.metadata.json", max_bytes=1000)


def peak(body: str) -> int:
    """How much more memory a process of its own takes to read this text, an expression."""
    code = f"""
import resource
from penstock.errors import InvalidView
from penstock.iceberg.files import decode_metadata
raw = {body}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decode_metadata(raw, "f.metadata.json")
except InvalidView as error:
    assert "so many values" in error.message
else:
    print("read", end=" ")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    return int(told[-1]) * 1024


@pytest.mark.parametrize("unit", ["[],", "{},", "1,", "1.5,", "999,", '"a",', '{"a":{}},'])
@pytest.mark.parametrize("size", [5_000_000, 60_000_000])
def test_no_file_takes_much_more_memory_than_it_has_bytes(unit: str, size: int) -> None:
    count = size // len(unit)
    assert peak(f"b'{{\"x\": [' + {unit.encode()!r} * {count} + b'0]}}'") < 800 * 1024 * 1024


def test_a_long_history_is_read_as_long_as_its_file_may_be() -> None:
    summary = {f"total-{name}": "123456" for name in ("data-files", "records", "files-size")}
    snapshot = {
        "snapshot-id": 2**62,
        "sequence-number": 1,
        "timestamp-ms": 1_700_000_000_000,
        "manifest-list": f"s3://bucket/lake/a-table.iceberg/metadata/snap-{'0' * 40}.avro",
        "summary": {"operation": "append", **summary},
    }
    field = {"id": 1_000, "name": "a_column", "required": False, "type": "long"}
    for each in (snapshot, field):
        body = msgspec.json.encode(each)
        assert estimate_memory(body) / len(body) * MAX_BYTES < MAX_MEMORY
