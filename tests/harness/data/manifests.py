"""Small but real Lance manifests, made by hand so that a test can choose their version."""

import struct
import uuid
from pathlib import Path

from penstock.lance.commit.manifest import manifest_name, versions_folder


def make_manifest(
    version: int,
    branch: str = "",
    filler: int = 0,
    transaction: str = "",
    seconds: int = 1_700_000_000,
) -> bytes:
    """A manifest file: a message with version, time, transaction and branch, and the footer."""
    transaction = transaction or str(uuid.uuid4())
    message = _number(3, version)
    message += _bytes(7, _number(1, seconds) + _number(2, 5_000_000))
    message += _bytes(12, f"{version - 1}-{transaction}.txn".encode())
    if branch:
        message += _bytes(20, branch.encode())
    message += _bytes(99, b"x" * filler)
    return struct.pack("<I", len(message)) + message + struct.pack("<QHH", 0, 0, 2) + b"LANC"


def stage(
    location: str | Path, version: int, branch: str = "", scheme: str = "V2", filler: int = 0
) -> str:
    """Write a staged manifest as the SDK does; returns its path as the SDK names it."""
    folder = Path(location) / versions_folder(branch)
    folder.mkdir(parents=True, exist_ok=True)
    staged = folder / f"{manifest_name(version, scheme)}-{uuid.uuid4()}"
    staged.write_bytes(make_manifest(version, branch, filler))
    return str(staged).lstrip("/")


def commit_by_path(
    location: str | Path, version: int, branch: str = "", scheme: str = "V2"
) -> Path:
    """Commit a version behind the catalog's back; returns the final path."""
    final = Path(location) / versions_folder(branch) / manifest_name(version, scheme)
    final.parent.mkdir(parents=True, exist_ok=True)
    final.write_bytes(make_manifest(version, branch))
    return final


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
