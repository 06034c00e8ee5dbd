"""The connection of commands that need a running server."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from penstock.errors import Unavailable
from penstock.sdk.connection import connect
from penstock.sdk.connection.server_choice import (
    DATA,
    DEFAULT,
    URL,
    ServerChoice,
    choose_server,
    find_folder,
)
from penstock.sdk.connection.server_note import answers
from penstock.sdk.lake import Lake

ELSE = f"else {URL}, else the one that works on ./{DATA}"


def lake_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--url` and `-v`; the command gets a `Lake` as its first argument."""

    @wraps(command)
    def with_lake(*, url: str | None, verbose: bool, **given: Any) -> None:
        with open_lake(url, verbose=verbose) as lake:
            command(lake, **given)

    decorated = click.option(
        "-v", "--verbose", is_flag=True, help="Say on stderr which server is asked, and why."
    )(with_lake)
    return click.option(
        "--url",
        metavar="URL",
        help=f"Address of the server; {ELSE}. PENSTOCK_API_KEY has the key.",
    )(decorated)


def open_lake(url: str | None, *, verbose: bool = False) -> Lake:
    """Connect to the server that is named, or that of the environment or the folder."""
    choice = find_server(url)
    if verbose:
        click.echo(f"penstock: asks {choice}", err=True)
    return connect.open_lake(choice)


def find_server(url: str | None) -> ServerChoice:
    """The server that a command asks; it starts none, which would end with it."""
    if (choice := choose_server(url)) is not None:
        return choice
    told = f"no server is named by --url or {URL}, and none works on {find_folder(None)}"
    if answers(DEFAULT):
        remedy = f"one answers at {DEFAULT}: if it is meant, add --url {DEFAULT}"
        raise Unavailable(told, detail=remedy)
    raise Unavailable(told, detail="start one with `penstock serve`")
