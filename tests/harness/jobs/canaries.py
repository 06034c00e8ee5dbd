"""Look for secrets in everything that a server and its runners have written down."""

import base64
import binascii
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

BASE64 = re.compile(rb"[A-Za-z0-9+/]{16,}={0,2}")


def find_told(secrets: Sequence[str], texts: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """Where a secret, or a line of one, can be read: in these texts, or in files below a folder.

    Files are looked at as they are; databases and Lance tables also as those who read them see
    them, in each version, and what is base64 in either is decoded.
    """
    signs = [line.encode() for secret in secrets for line in secret.splitlines()]
    found = [text[:500] for text in texts if _tells(text.encode(), signs)]
    for folder in folders:
        for file in folder.rglob("*"):
            if file.is_file() and _tells(file.read_bytes(), signs):
                found.append(str(file))
            if file.suffix == ".sqlite":
                found += _look(f"a row of {file}", _read_database(file), signs)
            if file.is_dir() and (file / "_versions").is_dir():
                found += _look(f"a row of {file}", _read_table(file), signs)
    return found


def _look(what: str, values: Iterator[Any], signs: Sequence[bytes]) -> Iterator[str]:
    return (what for value in values if _tells(_to_bytes(value), signs))


def _to_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _tells(content: bytes, signs: Sequence[bytes]) -> bool:
    return any(sign in text for text in (content, *_decode(content)) for sign in signs)


def _decode(content: bytes) -> Iterator[bytes]:
    for match in BASE64.findall(content):
        try:
            yield base64.b64decode(match + b"=" * (-len(match) % 4))
        except binascii.Error:
            continue


def _read_database(file: Path) -> Iterator[Any]:
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
        tables = [name for name in names if not name.startswith("sqlite_")]
        for table in tables:
            try:
                yield from database.execute(f'SELECT * FROM "{table}"')
            except sqlite3.OperationalError:
                # An index.
                continue


def _read_table(folder: Path) -> Iterator[Any]:
    newest = lance.dataset(str(folder))
    for version in range(1, newest.version + 1):
        try:
            rows: pa.Table = newest.checkout_version(version).to_table()
        except (OSError, ValueError):
            # It was cleaned up.
            continue
        yield from rows.to_pylist()
        yield rows.schema.to_string(truncate_metadata=False)
