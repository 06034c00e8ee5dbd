"""Which server a program talks to, and why: the one rule of `penstock.connect` and the commands.

The one that is named, else that of PENSTOCK_URL, else the one that works on the folder.
"""

import os
from pathlib import Path
from typing import NamedTuple

from penstock.errors import InvalidRequest
from penstock.sdk.connection.server_note import find

URL = "PENSTOCK_URL"
DATA = Path("penstock-data")
# Where `penstock serve` listens unless it is told otherwise.
DEFAULT = "http://127.0.0.1:2333"


class ServerChoice(NamedTuple):
    """A server's address, and what made it the one; nothing where somebody named it just now."""

    url: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.url} ({self.why})" if self.why else self.url


def choose_server(url: str | None = None, data: str | Path | None = None) -> ServerChoice | None:
    """The server to talk to; None where none is named, and none works on the folder."""
    if url is not None:
        if data is not None:
            raise InvalidRequest(
                "both url and data are given", detail="data is the folder of a local server"
            )
        return ServerChoice(url)
    named = os.environ.get(URL)
    if named and data is None:
        return ServerChoice(named, f"{URL} names it")
    folder = find_folder(data)
    found = find(folder)
    return None if found is None else ServerChoice(found.url, f"it works on {folder}")


def find_folder(data: str | Path | None) -> Path:
    """The folder of a local server."""
    return Path(data or DATA).expanduser().absolute()
