"""`penstock.connect`: to a server that runs somewhere, or to one of this machine."""

import os
from pathlib import Path

from penstock.sdk.connection.local import choose_or_start
from penstock.sdk.connection.server_choice import ServerChoice
from penstock.sdk.connection.waiting import BLOCKING, Waiting
from penstock.sdk.connection.wire import Wire
from penstock.sdk.lake import Lake

API_KEY = "PENSTOCK_API_KEY"


def connect(
    url: str | None = None,
    *,
    api_key: str | None = None,
    data: str | Path | None = None,
    runner: bool = True,
    keep: bool = False,
    retry_seconds: float = 30.0,
    verify: bool = True,
) -> Lake:
    """Connect to a server: the one that is named, or one of this machine that works on a folder.

    url: the server's address, as in `http://localhost:2333`; else that of the environment variable
        PENSTOCK_URL, unless `data` is given.
    api_key: a key of the server; else that of the environment variable PENSTOCK_API_KEY.
    data: without an address, the folder of a local server, `./penstock-data` by default. One that
        runs is found; else one is started on the loopback address, which is told as a warning of
        the log `penstock`.
    runner: whether a server that is started gets a runner, which its jobs need.
    keep: whether a server that is started outlives this process.
    retry_seconds: how long requests are sent again while the server is busy or away.
    verify: whether the certificate of an https address is checked.
    """
    return open_lake(
        choose_or_start(url, data, runner=runner, keep=keep), api_key, retry_seconds, verify
    )


def open_lake(
    choice: ServerChoice,
    api_key: str | None = None,
    retry_seconds: float = 30.0,
    verify: bool = True,
    waiting: Waiting = BLOCKING,
) -> Lake:
    """Connect to a server that was chosen, which must answer."""
    api_key = api_key or os.environ.get(API_KEY) or None
    wire = Wire(choice, api_key, retry_seconds, verify, waiting)
    try:
        wire.greet()
    except BaseException:
        wire.close()
        raise
    return Lake(wire)
