"""Names and contents of metadata files."""

import gzip
import io
import re
import zlib

import msgspec

from penstock.errors import InvalidRequest, InvalidView
from penstock.iceberg.checks import check_location, clip, show, strip_slash
from penstock.iceberg.metadata import Json

METADATA_PATH = "write.metadata.path"
COMPRESSION_CODEC = "write.metadata.compression-codec"
EXTENSIONS = {"gzip": ".gz.metadata.json", "none": ".metadata.json"}
MAX_BYTES = 64 * 1024 * 1024
# What a document may take once it is read, and about how much each mark in its text stands for:
# millions of empty lists take twenty times the bytes of their text.
MAX_MEMORY = 640 * 1024 * 1024
_BYTES_OF = {b'"': 25, b",": 36, b"[": 60, b"{": 130}

_NUMBER = re.compile(r"([0-9]{1,18})-")
_GZIPPED = (".gz.metadata.json", ".metadata.json.gz")
_MAGIC = b"\x1f\x8b"
# Metadata is mostly repeated names, so the fastest level saves nearly as much as the best.
_LEVEL = 1


def next_metadata_path(
    location: str, properties: dict[str, str], previous: str | None, uuid: str
) -> str:
    """The path of the next metadata file, numbered after the previous one."""
    folder = f"{strip_slash(location)}/metadata"
    if chosen := properties.get(METADATA_PATH):
        folder = check_location(chosen, METADATA_PATH)
    number = 0
    if previous is not None and (found := _NUMBER.match(previous.rpartition("/")[2])):
        number = int(found[1]) + 1
    return f"{folder}/{number:05d}-{uuid}{_extension(properties)}"


def encode_metadata(metadata: Json, path: str) -> bytes:
    """The bytes of a file, compressed if its name says so; equal metadata gives equal bytes."""
    body = msgspec.json.encode(metadata)
    return gzip.compress(body, _LEVEL, mtime=0) if path.endswith(_GZIPPED) else body


def decode_metadata(raw: bytes, path: str, max_bytes: int = MAX_BYTES) -> Json:
    """Read a metadata file; when name and bytes disagree on compression, the bytes win."""
    # No JSON begins like gzip, so the bytes tell.
    body = _decompress(raw, path, max_bytes) if raw.startswith(_MAGIC) else raw
    if len(body) > max_bytes:
        raise InvalidView(
            f"the file {show(path)} holds more than {max_bytes} bytes",
            detail="register a smaller metadata file",
        )
    if (size := estimate_memory(body)) > MAX_MEMORY:
        raise InvalidView(
            f"the file {show(path)} holds so many values that they take {size} bytes",
            detail="register a smaller metadata file",
        )
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise InvalidView(
            f"the file {show(path)} is not JSON: {clip(str(error))}", detail=_WANTED
        ) from error
    if not isinstance(found, dict):
        raise InvalidView(f"the file {show(path)} holds {show(found)}, no object", detail=_WANTED)
    return found


def estimate_memory(body: bytes) -> int:
    """About how many bytes the values of a JSON text take, at most."""
    return sum(body.count(mark) * size for mark, size in _BYTES_OF.items())


_WANTED = "name a metadata file of an Iceberg view"


def _extension(properties: dict[str, str]) -> str:
    codec = properties.get(COMPRESSION_CODEC, "gzip")
    if (extension := EXTENSIONS.get(codec.lower())) is None:
        raise InvalidRequest(
            f"{COMPRESSION_CODEC} is {show(codec)}", detail="set it to gzip or none, or remove it"
        )
    return extension


def _decompress(raw: bytes, path: str, max_bytes: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            return file.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidView(
            f"the file {show(path)} is not gzip: {clip(str(error))}", detail=_WANTED
        ) from error
