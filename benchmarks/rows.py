"""The rows that are written: cheap to make, and the same for every server and every run."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

ARROW_STREAM = "application/vnd.apache.arrow.stream"
INSERTED_ROWS = 1_000
BULK_BATCH_ROWS = 16_384
DIMENSION = 128


def small_rows() -> pa.RecordBatch:
    """What one insert brings: a number, a text and a short vector per row."""
    return pa.record_batch(
        {
            "id": pa.array(range(INSERTED_ROWS), pa.int64()),
            "name": [f"name {n}" for n in range(INSERTED_ROWS)],
            "vector": _vectors(INSERTED_ROWS, 16),
        }
    )


def vector_rows(count: int) -> pa.RecordBatch:
    """A number and a vector per row."""
    ids = pa.array(range(count), pa.int64())
    return pa.record_batch({"id": ids, "vector": _vectors(count, DIMENSION)})


def query_vectors(count: int) -> list[list[float]]:
    """Vectors to look for; none is a row's."""
    numbers = np.random.default_rng(2).random((count, DIMENSION), dtype=np.float32)
    return [[float(value) for value in row] for row in numbers]


def to_stream(batch: pa.RecordBatch) -> bytes:
    """One batch as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


@dataclass(frozen=True)
class Bulk:
    """Many rows: one batch, over and over."""

    batch: pa.RecordBatch
    repeats: int

    @property
    def rows(self) -> int:
        return int(self.batch.num_rows) * self.repeats

    def reader(self) -> pa.RecordBatchReader:
        batches = (self.batch for _ in range(self.repeats))
        return pa.RecordBatchReader.from_batches(self.batch.schema, batches)

    def stream(self) -> tuple[int, Iterator[bytes]]:
        """The length and the pieces of the Arrow stream, without making it as a whole."""
        head = self.batch.schema.serialize().to_pybytes()
        body = self.batch.serialize().to_pybytes()
        # A marker and a length of nothing are the end of a stream.
        end = b"\xff\xff\xff\xff\x00\x00\x00\x00"
        length = len(head) + len(body) * self.repeats + len(end)
        return length, iter((head, *(body,) * self.repeats, end))


def bulk(size_bytes: int) -> Bulk:
    """At least so many bytes of Arrow."""
    batch = vector_rows(BULK_BATCH_ROWS)
    return Bulk(batch, -(-size_bytes // batch.nbytes))


def _vectors(count: int, dimension: int) -> pa.FixedSizeListArray:
    numbers = np.random.default_rng(1).random(count * dimension, dtype=np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers), dimension)
