"""The measure for bulk: pylance alone, writing or reading a folder in a process of its own."""

import subprocess
import sys
import time
from pathlib import Path

import lance

from benchmarks.memory import prepare_memory
from benchmarks.processes import start_module
from benchmarks.rows import bulk


def measure_pylance(action: str, folder: str, size_bytes: int) -> float:
    """The seconds that a new process needs to `write` or `read` so much, without its start."""
    process = start_module(
        "benchmarks.inprocess", action, folder, str(size_bytes), stderr=subprocess.PIPE
    )
    output, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors.decode(errors="replace"))
    return float(output)


def main() -> None:
    action, folder, size_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    data = bulk(size_bytes)
    prepare_memory(Path(folder).parent, size_bytes)
    started = time.perf_counter()
    if action == "write":
        lance.write_dataset(data.reader(), folder, enable_stable_row_ids=True)
    else:
        rows = sum(batch.num_rows for batch in lance.dataset(folder).to_batches())
        assert rows == data.rows, rows
    print(time.perf_counter() - started)


if __name__ == "__main__":
    main()
