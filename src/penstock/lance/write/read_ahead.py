"""Read ahead: one thread decodes the next batches while another uses the previous ones."""

import threading
from collections import deque
from collections.abc import Iterator

from penstock.lance.doors import pa

# Enough that a writer never waits; at most one more batch is decoded.
MAX_WAITING_BYTES = 16 * 1024 * 1024


def read_ahead(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """The same batches, read by a separate thread, which stops when nobody wants them."""
    ahead = _ReadAhead(batches)
    threading.Thread(target=ahead.run, name="read-ahead", daemon=True).start()
    try:
        yield from ahead.take()
    finally:
        ahead.stop()


class _ReadAhead:
    def __init__(self, batches: "Iterator[pa.RecordBatch]") -> None:
        self._batches = batches
        self._changed = threading.Condition()
        self._waiting: deque[pa.RecordBatch] = deque()
        self._waiting_bytes = 0
        self._ended = False
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            while self._has_room() and self._put(next(self._batches, None)):
                pass
        except BaseException as error:
            # Not swallowed: it is raised to whoever takes the batches.
            self._failure = error
        finally:
            self.stop()

    def _put(self, batch: "pa.RecordBatch | None") -> bool:
        if batch is None:
            return False
        with self._changed:
            self._waiting.append(batch)
            self._waiting_bytes += batch.nbytes
            self._changed.notify()
        return True

    def take(self) -> "Iterator[pa.RecordBatch]":
        while True:
            with self._changed:
                while not self._waiting and not self._ended:
                    self._changed.wait()
                if not self._waiting:
                    break
                batch = self._waiting.popleft()
                self._waiting_bytes -= batch.nbytes
                self._changed.notify()
            yield batch
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _has_room(self) -> bool:
        with self._changed:
            while self._waiting_bytes >= MAX_WAITING_BYTES and not self._ended:
                self._changed.wait()
            return not self._ended
