"""`penstock.aio.connect`: as `penstock.connect`, awaited."""

from pathlib import Path

from penstock.aio.generated.lake import AsyncLake
from penstock.aio.switching import run, run_aside
from penstock.aio.transport import AwaitingTransport, pause
from penstock.sdk.connection.connect import open_lake
from penstock.sdk.connection.local import choose_or_start
from penstock.sdk.connection.waiting import Waiting

AWAITING = Waiting(pause, AwaitingTransport)


async def connect(
    url: str | None = None,
    *,
    api_key: str | None = None,
    data: str | Path | None = None,
    runner: bool = True,
    keep: bool = False,
    retry_seconds: float = 30.0,
    verify: bool = True,
) -> AsyncLake:
    """Connect to a server; the arguments are those of `penstock.connect`."""
    # It may have to start one.
    choice = await run_aside(choose_or_start, url, data, runner=runner, keep=keep)
    return AsyncLake(await run(open_lake, choice, api_key, retry_seconds, verify, AWAITING))
