"""Sixteen clients that act at the same moment."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx

CLIENTS = 16


def race(act: Callable[[int], httpx.Response]) -> Counter[tuple[int, int]]:
    """Let all clients act at once; returns how often each (status, code) came."""
    start = threading.Barrier(CLIENTS)

    def run(number: int) -> tuple[int, int]:
        start.wait()
        answer = act(number)
        return answer.status_code, answer.json().get("code", 0) if answer.content else 0

    with ThreadPoolExecutor(CLIENTS) as threads:
        return Counter(threads.map(run, range(CLIENTS)))


def one_winner(loss: tuple[int, int]) -> Counter[tuple[int, int]]:
    """What a race gives when exactly one client may win."""
    return Counter({(200, 0): 1, loss: CLIENTS - 1})
