"""Lance manifest files: their names, their footer, and the few fields that a catalog needs.

A manifest ends with 16 bytes: where its message starts (u64), format version (2 x u16) and the
magic `LANC`. The message is length-prefixed protobuf; it is walked, not decoded, because a large
table's manifest has megabytes of fragments that don't matter here.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"LANC"
FOOTER = struct.Struct("<QHH4s")
U64_MAX = 2**64 - 1
# Versions with the top bit set are detached: they belong to no history. One below the largest, so
# that there is always a number after the newest.
MAX_VERSION = 2**63 - 2

MAX_MANIFEST_BYTES = 1_000_000_000

FIELD_FRAGMENTS, FIELD_VERSION, FIELD_TIMESTAMP = 2, 3, 7
FIELD_TRANSACTION, FIELD_BRANCH = 12, 20
FIELD_BASE, FIELD_BASE_PATH = 18, 4
SCHEMES = ("V2", "V1")
# The length of values that don't carry it, by wire type.
FIXED_BYTES = {1: 8, 5: 4}
_TRANSACTION = re.compile(r"\d+-([0-9A-Za-z-]{1,64})\.txn")
_FINAL_NAME = re.compile(r"(\d{1,20})\.manifest")


# Lance's operations that change which rows there are, or their values.
ROW_OPERATIONS = {100: "append", 101: "delete", 102: "overwrite", 106: "restore", 108: "update"}
FIRST_OPERATION, FIELD_PROPERTIES = 100, 4


class BadManifest(Exception):
    """The bytes are not a Lance manifest; the message says why."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says about itself."""

    version: int
    branch: str
    timestamp_millis: int
    transaction_id: str
    # Other folders whose files it counts as its own, as spelt there.
    bases: tuple[str, ...] = ()


def parse_manifest(data: bytes) -> Manifest:
    """Read a manifest's version, branch, time and transaction."""
    message = _message(data)
    version, branch, millis, transaction = 0, "", 0, ""
    bases: list[str] = []
    for field, value in _walk(message):
        if field == FIELD_VERSION and isinstance(value, int):
            version = value
        elif field == FIELD_BRANCH and isinstance(value, bytes):
            branch = value.decode(errors="replace")
        elif field == FIELD_TIMESTAMP and isinstance(value, bytes):
            parts = {f: v for f, v in _walk(value) if isinstance(v, int)}
            millis = parts.get(1, 0) * 1000 + parts.get(2, 0) // 1_000_000
        elif field == FIELD_TRANSACTION and isinstance(value, bytes):
            # "<read version>-<uuid>.txn"
            match = _TRANSACTION.fullmatch(value.decode(errors="replace"))
            transaction = match[1] if match else ""
        elif field == FIELD_BASE and isinstance(value, bytes):
            inner = dict(_walk(value, skipped=0))
            path = inner.get(FIELD_BASE_PATH, b"")
            bases.append(path.decode(errors="replace") if isinstance(path, bytes) else "")
    if not 0 < version <= MAX_VERSION:
        raise BadManifest("it names no version of a line of history")
    if millis > MAX_VERSION:
        raise BadManifest("its time is out of range")
    return Manifest(version, branch, millis, transaction, tuple(bases))


@dataclass(frozen=True, slots=True)
class TransactionFile:
    """What a transaction file says about a commit."""

    # How it changed rows: a word of ROW_OPERATIONS, or empty.
    row_operation: str
    properties: dict[str, str]


def find_transaction_file(data: bytes) -> str:
    """The name of the file with a manifest's transaction; empty when it has none."""
    for field, value in _walk(_message(data)):
        if field == FIELD_TRANSACTION and isinstance(value, bytes):
            name = value.decode(errors="replace")
            return name if _TRANSACTION.fullmatch(name) else ""
    return ""


def parse_transaction(data: bytes) -> TransactionFile:
    """Read the parts of a transaction file that a catalog needs."""
    operation, properties = "", {}
    for field, value in _walk(data):
        if field == FIELD_PROPERTIES and isinstance(value, bytes):
            pair = {
                f: v.decode(errors="replace")
                for f, v in _walk(value, skipped=0)
                if isinstance(v, bytes)
            }
            properties[pair.get(1, "")] = pair.get(2, "")
        elif field >= FIRST_OPERATION:
            operation = ROW_OPERATIONS.get(field, "")
    return TransactionFile(operation, properties)


def manifest_name(version: int, scheme: str) -> str:
    """The final file name of a version's manifest."""
    return f"{U64_MAX - version:020d}.manifest" if scheme == "V2" else f"{version}.manifest"


def parse_name(name: str) -> tuple[int, str] | None:
    """The version and naming scheme of a final manifest name; None for any other file."""
    match = _FINAL_NAME.fullmatch(name)
    if match is None:
        return None
    number = int(match[1])
    if len(match[1]) == 20 and number > MAX_VERSION:
        return U64_MAX - number, "V2"
    return (number, "V1") if 0 < number <= MAX_VERSION else None


def versions_folder(branch: str) -> str:
    """The folder of a branch's manifests, relative to the table."""
    return f"tree/{branch}/_versions" if branch else "_versions"


def check_footer(end: bytes, size: int) -> int:
    """Where the message starts, read from the last bytes of a file of that size."""
    if size < FOOTER.size:
        raise BadManifest(f"it is {size} bytes long, shorter than a footer")
    start, _, _, magic = FOOTER.unpack(end)
    if magic != MAGIC:
        raise BadManifest("it does not end with a Lance footer")
    if start + 4 > size - FOOTER.size:
        raise BadManifest("its footer points outside the file")
    if size > MAX_MANIFEST_BYTES:
        raise BadManifest(f"it has {size} bytes, more than {MAX_MANIFEST_BYTES}")
    return int(start)


def _message(data: bytes) -> memoryview:
    start = check_footer(data[-FOOTER.size :], len(data))
    length = int.from_bytes(data[start : start + 4], "little")
    if start + 4 + length > len(data) - FOOTER.size:
        raise BadManifest("it is cut short")
    return memoryview(data)[start + 4 : start + 4 + length]


def _walk(
    message: memoryview | bytes, *, skipped: int = FIELD_FRAGMENTS
) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field of a protobuf message, one level deep."""
    at, end = 0, len(message)
    while at < end:
        key, at = read_varint(message, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, at = read_varint(message, at)
            yield field, value
            continue
        if wire == 2:
            length, at = read_varint(message, at)
        else:
            length = FIXED_BYTES.get(wire, -1)
        if length < 0 or at + length > end:
            raise BadManifest("its message is damaged")
        # Fragments are by far the most and the largest: skip them without copying.
        if wire == 2 and field != skipped:
            yield field, bytes(message[at : at + length])
        at += length


def read_varint(message: memoryview | bytes, at: int) -> tuple[int, int]:
    """Read a varint of a protobuf message; also returns where the next field begins."""
    # Most have one byte: a table may have thousands of fragments to skip.
    if at < len(message) and (value := message[at]) < 0x80:
        return value, at + 1
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise BadManifest("its message is damaged")
