"""How a connection waits for answers and time: by blocking, or as `penstock.aio` does."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx


@dataclass(frozen=True)
class Waiting:
    """What a connection waits by."""

    pause: Callable[[float], None]
    # Makes what requests are sent by, told `verify` and `trust_env` of httpx; None is httpx's own.
    transport: Callable[[bool, bool], httpx.BaseTransport] | None = None


BLOCKING = Waiting(time.sleep)
