"""A long upload goes through with the server's memory bounded."""

import io
from collections.abc import Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from tests.harness.data.arrow import send
from tests.harness.processes import servers
from tests.harness.processes.servers import Server

ROWS = 100_000
MEGABYTE = 1_000_000


def batches(count: int) -> Iterator[bytes]:
    """One batch of 10 MB, `count` times, as an Arrow stream in pieces of a megabyte."""
    values = pa.array(np.arange(ROWS * 25, dtype="f4"))
    batch = pa.record_batch(
        {"id": np.arange(ROWS), "v": pa.FixedSizeListArray.from_arrays(values, 25)}
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
        start = sink.tell()
        writer.write_batch(batch)
        end = sink.tell()
    whole = sink.getvalue()
    for part in (whole[:start], *[whole[start:end]] * (count - 1), whole[end:]):
        yield from (part[i : i + MEGABYTE] for i in range(0, len(part), MEGABYTE))


def peak_megabytes(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_gigabyte_goes_in_twice_with_less_than_half_a_gigabyte_of_memory(
    tmp_path: Path,
) -> None:
    with servers.running(tmp_path) as server:
        made = send(server, "/v1/table/t/create", batches(100)).raise_for_status().json()
        # With a length it takes another way in.
        length = sum(map(len, batches(100)))
        headers = {"content-length": str(length)}
        send(server, "/v1/table/t/insert", batches(100), headers).raise_for_status()
        assert peak_megabytes(server) < 512
    assert lance.dataset(made["location"]).count_rows() == 200 * ROWS
