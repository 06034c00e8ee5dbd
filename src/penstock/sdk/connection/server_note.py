"""The note that a server leaves in its data folder, so that local clients find it."""

import contextlib
import os
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

FILE = "server.json"
# Addresses of this machine, and wildcard addresses that servers listen on.
HERE = ("127.0.0.1", "localhost", "::1", "0.0.0.0", "::")


class ServerNote(msgspec.Struct, frozen=True):
    """The note's content, while the server runs."""

    url: str
    pid: int


def find(folder: Path) -> ServerNote | None:
    """The server that works on a folder, if one is running."""
    try:
        found = msgspec.json.decode((folder / FILE).read_bytes(), type=ServerNote)
    except (OSError, msgspec.MsgspecError):
        return None
    # A copied folder must not send anyone's key to another machine.
    is_one = _is_here(found.url) and _is_alive(found.pid) and answers(found.url)
    return found if is_one else None


def remember(folder: Path, url: str) -> None:
    """Write this server's note."""
    # A server whose catalog and lake are elsewhere may have no such folder, and needs none.
    with contextlib.suppress(OSError):
        note = folder / f"{FILE}.{os.getpid()}"
        note.write_bytes(msgspec.json.encode(ServerNote(url, os.getpid())))
        note.replace(folder / FILE)


def forget(folder: Path) -> None:
    """Remove this server's note."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        found = msgspec.json.decode((folder / FILE).read_bytes(), type=ServerNote)
        if found.pid == os.getpid():
            (folder / FILE).unlink()


def _is_here(url: str) -> bool:
    return urlsplit(url).hostname in HERE


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another server's
    return True


def answers(url: str) -> bool:
    """Whether a server answers there."""
    import httpx

    try:
        return httpx.get(f"{url}/healthz", timeout=5, verify=False, trust_env=False).is_success
    except httpx.TransportError:
        return False
