"""A gigabyte goes in and comes out in the memory of some batches, of client and server alike."""

import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from tests.harness.processes.servers import Server

MEGABYTE = 1024 * 1024
SENT = 1024 * MEGABYTE
# What each may grow by, whatever the size of the data.
CLIENT, SERVER = 96 * MEGABYTE, 400 * MEGABYTE

SEND = """
import sys
import numpy as np
import pyarrow as pa
import penstock

url, name, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
lake = penstock.connect(url)
STEP = 4096

def rows():
    vectors = np.random.default_rng(1).random((STEP, 256), dtype=np.float32)
    for start in range(0, size // 1024, STEP):
        yield {"id": pa.array(range(start, start + STEP)), "v": to_array(vectors)}

def to_array(vectors):
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 256)

def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024

lake.create_table(name + "_warm", next(rows())).to_arrow()
before = peak()
lake.create_table(name, rows())
sent = peak() - before
read = sum(batch.num_rows for batch in lake.table(name).to_batches())
print(sent, peak() - before, read)
"""


def grown(server: Server) -> int:
    """The most memory that the server has had."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


@pytest.mark.slow
def test_a_gigabyte_of_a_generator_is_written_and_read_in_bounded_memory(
    lake: penstock.Lake, server: Server, space: str
) -> None:
    before = grown(server)
    done = subprocess.run(
        [sys.executable, "-c", SEND, server.url, f"{space}.t", str(SENT)],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    sent, sent_and_read, rows = map(int, done.stdout.split())
    assert sent <= sent_and_read < CLIENT
    assert grown(server) - before < SERVER
    assert len(lake.table(f"{space}.t")) == rows == SENT // 1024
    grew = (each // MEGABYTE for each in (sent, sent_and_read, grown(server) - before))
    print("grew by {} MB, then {} MB (client), and {} MB (server)".format(*grew))
