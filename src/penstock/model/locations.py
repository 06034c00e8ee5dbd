"""Locations: the canonical spelling of a place on storage.

A location is an absolute path for local storage and `scheme://bucket/key` for anything else.
Several libraries read it, and not all alike: some decode `%2e`, and cut at `?` and `#`. So a
location has only characters that all of them take literally. Everything here is pure.
"""

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote

from penstock.errors import InvalidRequest

REMOTE_SCHEMES = ("s3", "gs", "az", "memory")
MAX_LOCATION_BYTES = 1600
# An object's key has at most 1,024 bytes, and a table's files are below its location.
MAX_KEY_BYTES = 800
MAX_STEP_BYTES = 255

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BUCKET = re.compile(r"[A-Za-z0-9$][A-Za-z0-9$._-]*")
# Decoded or cut off by URL parsers; a separator elsewhere; a wildcard of policies.
_SPECIAL = re.compile(r"[%?#\\*]|\$\{")


@dataclass(frozen=True, slots=True)
class LocationParts:
    """A client's location, taken apart; `path` is absolute, relative, or a key."""

    store: str
    path: str
    is_relative: bool = False


def spell_out(text: str, what: str = "location") -> LocationParts:
    """Take a location apart; raises when any part of it is ambiguous."""
    if not text or not text.isprintable():
        raise InvalidRequest(
            f"{what} is empty or holds control characters", detail="send a path or a URI"
        )
    if len(text.encode(errors="replace")) > MAX_LOCATION_BYTES:
        raise InvalidRequest(
            f"{what} is longer than {MAX_LOCATION_BYTES} bytes", detail="choose a shorter one"
        )
    if text.startswith(":"):
        raise InvalidRequest(f"{what} {text!r} has no scheme", detail="send a path or a URI")
    if (found := _SCHEME.match(text)) is None:
        return LocationParts("", text, is_relative=not text.startswith("/"))
    scheme = found[1]
    if scheme == "file":
        return LocationParts("", _read_file_uri(text, what))
    if scheme not in REMOTE_SCHEMES or not text.startswith(f"{scheme}://"):
        raise InvalidRequest(
            f"{what} {text!r} has the unknown scheme {scheme!r}",
            detail="use a path, or a URI of "
            + ", ".join(f"{each}://" for each in ("file", *REMOTE_SCHEMES))
            + ", in lower case",
        )
    rest = text.removeprefix(f"{scheme}://")
    if scheme == "memory":
        return LocationParts("memory://", rest.strip("/"))
    bucket, _, key = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise InvalidRequest(
            f"{what} {text!r} names {bucket!r}, which is no bucket",
            detail="write it as scheme://bucket/key, without a user and a port",
        )
    return LocationParts(f"{scheme}://{bucket}", key.rstrip("/"))


def check_steps(path: str, what: str = "location") -> str:
    """Check a path below a root: all steps must mean the same to every reader."""
    if (found := _SPECIAL.search(path)) is not None:
        raise InvalidRequest(
            f"{what} holds {found[0]!r} in {path!r}",
            detail="choose one without any of % ? # \\ * and ${: not everybody reads them alike",
        )
    if not path.isprintable() or not unicodedata.is_normalized("NFC", path):
        raise InvalidRequest(
            f"{what} {path!r} is not in Unicode's composed form (NFC)",
            detail="normalise it, and leave control characters out",
        )
    for step in path.split("/"):
        if step in ("", ".", ".."):
            raise InvalidRequest(
                f"{what} {path!r} has the step {step!r}",
                detail="name the folder itself, without empty steps, '.' and '..'",
            )
        if step[0] == " " or step[-1] == " ":
            raise InvalidRequest(
                f"{what} {path!r} has a step that begins or ends with a space",
                detail="remove the space",
            )
        if len(step) * 4 > MAX_STEP_BYTES and len(step.encode()) > MAX_STEP_BYTES:
            raise InvalidRequest(
                f"{what} has a step of {len(step.encode())} bytes",
                detail=f"use at most {MAX_STEP_BYTES} bytes between two slashes",
            )
    return path


def check_key(key: str, what: str = "location") -> str:
    """Check the key of a folder in an object store; a whole store has none."""
    if len(key.encode(errors="replace")) > MAX_KEY_BYTES:
        raise InvalidRequest(
            f"{what} has a key of more than {MAX_KEY_BYTES} bytes", detail="choose a shorter one"
        )
    return check_steps(key, what) if key else key


def join(folder: str, name: str) -> str:
    """The location of this name in a folder."""
    return f"{folder}{name}" if folder.endswith("/") else f"{folder}/{name}"


def is_within(location: str, folder: str) -> bool:
    """Whether a location is a folder itself, or anywhere below it; both in canonical spelling."""
    return location == folder or location.startswith(join(folder, ""))


def store_of(location: str) -> str:
    """The part of a location that names its store: '' for local, else scheme and bucket."""
    if location.startswith("/"):
        return ""
    scheme, _, rest = location.partition("://")
    return f"{scheme}://" if scheme == "memory" else f"{scheme}://{rest.partition('/')[0]}"


def _read_file_uri(text: str, what: str) -> str:
    """The path of a `file:` URI, decoded once; Java writes it with one slash."""
    rest = text.removeprefix("file:")
    if rest == "//":
        return "/"
    if rest.startswith("//") and not rest.startswith("///"):
        raise InvalidRequest(f"{what} {text!r} names a host", detail="write it as file:///path")
    if not rest.startswith("/") or "?" in rest or "#" in rest:
        raise InvalidRequest(
            f"{what} {text!r} is no path", detail="write it as file:///path, without ? and #"
        )
    path = unquote(rest.removeprefix("//"), errors="replace")
    if not path.isprintable():
        raise InvalidRequest(
            f"{what} {text!r} holds control characters", detail="choose another location"
        )
    return path
