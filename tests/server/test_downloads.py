"""Large results on their way to the client, through real sockets."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from penstock.server.transport.downloads import PART_BYTES, Download

PARTS = 6


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


async def _send(ours: socket.socket, idle_seconds: float, *, is_stalled: bool) -> None:
    download = Download(idle_seconds)
    download.send_to(ours)

    def work() -> None:
        for _ in range(PARTS):
            download.write(b"x" * PART_BYTES)
        download.end()

    try:
        await asyncio.to_thread(work)
    finally:
        assert download.is_stalled is is_stalled


def test_a_client_that_takes_nothing_ends_the_work(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = sockets
    with pytest.raises(BrokenPipeError, match=r"took nothing for 0\.5 seconds"):
        asyncio.run(_send(ours, 0.5, is_stalled=True))
    assert len(theirs.recv(1)) == 1


def test_a_client_that_takes_little_at_a_time_gets_all(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = sockets
    taken = 0
    paused = threading.Event()

    def read() -> None:
        nonlocal taken
        while taken < PARTS * PART_BYTES:
            # More often than the bound, and longer in all.
            paused.wait(0.05)
            taken += len(theirs.recv(2**20))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    asyncio.run(_send(ours, 1.0, is_stalled=False))
    reader.join(30)
    assert taken >= PARTS * PART_BYTES
