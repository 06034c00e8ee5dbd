"""`penstock.connect`: to a server that runs somewhere, or to one of this machine."""

import os
from pathlib import Path

from penstock.errors import InvalidRequest
from penstock.sdk.connection.local import find_or_start
from penstock.sdk.connection.wire import Wire
from penstock.sdk.lake import Lake

DATA = "./penstock-data"
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
    """Connect to a server: the one at `url`, or one of this machine that works on a folder.

    url: the server's address, as in `http://localhost:2333`.
    api_key: a key of the server; else that of the environment variable PENSTOCK_API_KEY.
    data: without a url, the folder of a local server, `./penstock-data` by default. One that runs
        is found; else one is started on the loopback address.
    runner: whether a server that is started gets a runner, which its jobs need.
    keep: whether a server that is started outlives this process.
    retry_seconds: how long requests are sent again while the server is busy or away.
    verify: whether the certificate of an https address is checked.
    """
    if url is None:
        url = find_or_start(Path(data or DATA), runner=runner, keep=keep)
    elif data is not None:
        raise InvalidRequest(
            "both url and data are given", detail="data is the folder of a local server"
        )
    wire = Wire(url, api_key or os.environ.get(API_KEY) or None, retry_seconds, verify)
    try:
        wire.greet()
    except BaseException:
        wire.close()
        raise
    return Lake(wire)
