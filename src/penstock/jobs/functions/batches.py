"""Batch sizes: how many rows a function gets at once, and how many batches run concurrently."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa

from penstock.jobs.engine.guard import Stopped

T = TypeVar("T")

# How long a batch should take.
AIM_SECONDS = 1.0
# Batches that took almost no time predict nothing.
MAX_GROWTH = 64.0
MAX_BYTES = 32 * 2**20
# Few, because nothing is known of a function yet; a fast one gets many after two batches.
DEFAULT_ROWS = {
    "scalar": 16,
    "arrow": 64,
    "batch": 64,
    "chunker": 16,
    "batch_chunker": 64,
    "udtf": 1,
}
MIN_ROWS, MAX_ROWS = 1, 65_536


class BatchSize:
    """The number of rows that takes about a second and is not too large, found by measuring."""

    def __init__(self, rows: int, least: int = MIN_ROWS, most: int = MAX_ROWS) -> None:
        self._least = max(1, least)
        self._most = max(self._least, most)
        self._widest = 1.0
        self.rows = min(max(rows, self._least), self._most)

    def learn(self, rows: int, seconds: float, size: int = 0) -> None:
        """Take in how long a batch took, and how many bytes its values have."""
        self._learn_time(rows, seconds)
        # Where a wide value was, others may be.
        self._widest = max(self._widest, size / max(1, rows))
        self.rows = max(1, min(self.rows, int(MAX_BYTES / self._widest)))

    def _learn_time(self, rows: int, seconds: float) -> None:
        if rows < self.rows and seconds < AIM_SECONDS:
            # The end of a fragment, or rows that are large: it says nothing about larger batches.
            return
        growth = min(MAX_GROWTH, AIM_SECONDS / max(seconds, 1e-6))
        # Small differences are noise.
        if not 0.7 < growth < 1.5:
            self.rows = min(max(int(rows * growth), self._least), self._most)


def cut(rows: Iterator[pa.RecordBatch], size: BatchSize) -> Iterator[pa.RecordBatch]:
    """The rows in batches of the size that is right when each is taken."""
    rest: list[pa.RecordBatch] = []
    held = 0
    for batch in rows:
        rest.append(batch)
        held += batch.num_rows
        while held >= size.rows or sum(each.nbytes for each in rest) >= MAX_BYTES:
            whole = rest[0] if len(rest) == 1 else pa.concat_batches(rest)
            count = _fitting(whole, min(size.rows, held))
            yield whole.slice(0, count)
            held -= count
            rest = [whole.slice(count)] if held else []
            if not held:
                break
    while held:
        whole = rest[0] if len(rest) == 1 else pa.concat_batches(rest)
        count = _fitting(whole, min(size.rows, held))
        yield whole.slice(0, count)
        held -= count
        rest = [whole.slice(count)]


def in_order(
    work: Callable[["pa.RecordBatch"], T], batches: Iterator[pa.RecordBatch], threads: int
) -> Iterator[tuple["pa.RecordBatch", T]]:
    """Each batch with its result, in order; at most so many are worked on at once.

    When the batches end because the job was stopped, those under way still come.
    """
    if threads <= 1:
        for batch in batches:
            yield batch, work(batch)
        return
    running: deque[tuple[pa.RecordBatch, Future[T]]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="function") as pool:
        stopped: Stopped | None = None
        try:
            try:
                for batch in batches:
                    running.append((batch, pool.submit(work, batch)))
                    if len(running) >= threads:
                        first, future = running.popleft()
                        yield first, future.result()
            except Stopped as error:
                stopped = error
            while running:
                first, future = running.popleft()
                yield first, future.result()
            if stopped is not None:
                raise stopped
        finally:
            for _, future in running:
                future.cancel()


def _fitting(batch: pa.RecordBatch, rows: int) -> int:
    """How many of the first rows have no more bytes than a batch may have; at least one."""
    while rows > 1 and batch.slice(0, rows).nbytes > MAX_BYTES:
        rows //= 2
    return rows
