"""The code of functions, stored beside the table as `_udfs/<sha256>`. Everything here blocks.

The folder belongs to the table, whatever branch a column is on. A file is named by its content, so
it never changes, and older versions and other branches keep finding theirs.
"""

import hashlib
import uuid

from penstock.lance.storage import files
from penstock.lance.storage.lake import Place

FOLDER = "_udfs"


def path_of(sha256: str) -> str:
    return f"{FOLDER}/{sha256}"


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def store(place: Place, content: bytes) -> str:
    """Store the code of a function once; returns its hash."""
    sha256 = hash_of(content)
    path = path_of(sha256)
    try:
        if files.get_size(place, path) == len(content):
            return sha256
    except FileNotFoundError:
        pass
    if place.is_local:
        # Written so that it is complete from the moment it has its name.
        staged = f"{path}.{uuid.uuid4().hex}"
        files.write_new(place, staged, content)
        files.move(place, staged, path)
        files.make_durable(place, path)
    else:
        files.write_new(place, path, content)
    return sha256


def exists(place: Place, sha256: str) -> bool:
    return files.exists(place, path_of(sha256))
