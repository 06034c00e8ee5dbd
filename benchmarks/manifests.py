"""Staged manifests: small but real ones, as a Lance writer leaves them for the catalog."""

import struct
import uuid
from dataclasses import dataclass
from pathlib import Path

from penstock.lance.commit.manifest import manifest_name, versions_folder


@dataclass(frozen=True)
class StagedManifest:
    """A file that waits to become a version; the path is as the SDK writes it."""

    path: str
    size: int


def stage(location: str, version: int) -> StagedManifest:
    """Write a manifest of this version into the table's folder, under a name for now."""
    folder = Path(location.removeprefix("file://")) / versions_folder("")
    folder.mkdir(parents=True, exist_ok=True)
    content = make_manifest(version)
    staged = folder / f"{manifest_name(version, 'V2')}-{uuid.uuid4()}"
    staged.write_bytes(content)
    return StagedManifest(str(staged).lstrip("/"), len(content))


def make_manifest(version: int) -> bytes:
    """A message with version, time and transaction, and the footer."""
    transaction = f"{version - 1}-{uuid.uuid4()}.txn"
    message = _number(3, version)
    message += _bytes(7, _number(1, 1_700_000_000) + _number(2, 5_000_000))
    message += _bytes(12, transaction.encode())
    return struct.pack("<I", len(message)) + message + struct.pack("<QHH", 0, 0, 2) + b"LANC"


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
