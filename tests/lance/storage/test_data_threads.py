"""Threads for data: work that is past its deadline is answered for, and loses nobody a thread."""

import threading
import time

import anyio
import anyio.lowlevel
import pytest

from penstock.errors import Unavailable
from penstock.lance.storage.data_threads import Deadline, Workers

pytestmark = pytest.mark.anyio


async def test_work_past_its_deadline_is_unavailable_and_gives_its_place_to_others() -> None:
    workers, release = Workers(threads=1, most=9), threading.Event()
    with pytest.raises(Unavailable, match=r"no result after 0\.2 seconds"):
        await workers.run_until(Deadline(0.2), release.wait)
    assert await workers.run(lambda: "done") == "done"
    assert workers.overdue == 1
    release.set()
    workers.close()
    await anyio.lowlevel.checkpoint()
    assert workers.overdue == 0


async def test_no_more_threads_than_twice_the_regular_ones_are_ever_used() -> None:
    workers, release = Workers(threads=1, most=9), threading.Event()
    for _ in range(2):
        with pytest.raises(Unavailable):
            await workers.run_until(Deadline(0.1), release.wait)
    with pytest.raises(TimeoutError):
        with anyio.fail_after(0.3):
            await workers.run(lambda: "done")
    release.set()
    assert await workers.run(lambda: "done") == "done"
    workers.close()


async def test_work_that_gets_on_or_waits_for_others_is_not_overdue() -> None:
    workers, deadline = Workers(threads=1, most=9), Deadline(0.3)

    def work() -> str:
        for _ in range(4):
            time.sleep(0.1)
            deadline.restart()
        deadline.pause()
        time.sleep(0.4)
        return "done"

    assert await workers.run_until(deadline, work) == "done"
    assert workers.overdue == 0
    workers.close()


async def test_what_work_raises_is_raised_and_its_place_is_free() -> None:
    workers = Workers(threads=1, most=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await workers.run_until(Deadline(5), lambda: 1 // 0)
    assert await workers.run(lambda: workers.busy) == 1
    workers.close()
