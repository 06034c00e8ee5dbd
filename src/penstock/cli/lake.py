"""The connection of commands that need a running server."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from penstock.sdk.connection.connect import connect
from penstock.sdk.connection.server_note import find
from penstock.sdk.lake import Lake

DATA, DEFAULT = Path("penstock-data"), "http://127.0.0.1:2333"


def lake_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--url`; the command gets a `Lake` as its first argument."""

    @wraps(command)
    def with_lake(*, url: str | None, **given: Any) -> None:
        with open_lake(url) as lake:
            command(lake, **given)

    return click.option(
        "--url",
        metavar="URL",
        envvar="PENSTOCK_URL",
        help="Address of the server; else PENSTOCK_URL, else the one that works on "
        f"./{DATA}, else {DEFAULT}. PENSTOCK_API_KEY has the key.",
    )(with_lake)


def open_lake(url: str | None) -> Lake:
    """Connect to the server that the options name."""
    if url is None:
        found = find(DATA.absolute())
        url = DEFAULT if found is None else found.url
    return connect(url)
