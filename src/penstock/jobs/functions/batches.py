"""Batch sizes: how many rows a function gets at once, and how many batches run concurrently."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
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
        self.most = max(self._least, most)
        self._widest = 1.0
        self.rows = min(max(rows, self._least), self.most)

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
            self.rows = min(max(int(rows * growth), self._least), self.most)


def cut(
    rows: Iterator[pa.RecordBatch],
    size: BatchSize,
    find_called: Callable[[pa.RecordBatch], Any] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """The rows in batches of the size that is right when each is taken.

    Only rows that the function is called for count, of whose places `find_called` gives an array;
    None is all of them.
    """
    rest: list[pa.RecordBatch] = []
    held = _Held(0, 0, 0)
    for batch in rows:
        rest.append(batch)
        held = held.plus(_Held.of(batch, find_called))
        while held.is_enough(size):
            whole = rest[0] if len(rest) == 1 else pa.concat_batches(rest)
            count = _fitting(whole, _reach(whole, size.rows, find_called))
            yield whole.slice(0, count)
            left = whole.slice(count)
            rest = [left] if left.num_rows else []
            held = _Held.of(left, find_called)
    while rest:
        whole = rest[0] if len(rest) == 1 else pa.concat_batches(rest)
        count = _fitting(whole, _reach(whole, size.rows, find_called))
        yield whole.slice(0, count)
        left = whole.slice(count)
        rest = [left] if left.num_rows else []


class _Held(NamedTuple):
    """Rows that wait for their batch, those of them that need a call, and their bytes."""

    rows: int
    called: int
    size: int

    @classmethod
    def of(cls, batch: pa.RecordBatch, find_called: Callable[[pa.RecordBatch], Any]) -> "_Held":
        called = find_called(batch)
        calls = batch.num_rows if called is None else int(called.sum())
        return cls(batch.num_rows, calls, batch.nbytes)

    def plus(self, more: "_Held") -> "_Held":
        return _Held(*(a + b for a, b in zip(self, more, strict=True)))

    def is_enough(self, size: BatchSize) -> bool:
        if not self.rows:
            return False
        return self.called >= size.rows or self.rows >= MAX_ROWS or self.size >= MAX_BYTES


def _reach(batch: pa.RecordBatch, calls: int, find_called: Callable[[pa.RecordBatch], Any]) -> int:
    """How many of the first rows have so many calls among them, or are as many as may be."""
    called = find_called(batch)
    if called is not None:
        calls = int(np.searchsorted(np.cumsum(called), calls)) + 1
    reached: int = min(calls, batch.num_rows, MAX_ROWS)
    return reached


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
