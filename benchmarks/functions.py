"""How fast functions fill columns on a warm Spark session, beside two plain processes.

The plain processes scan the inputs, call the function the plain way and write the same files,
without batches that adapt, error handling, notes and Spark. Both are measured in turn, so that
their ratio bears a busy machine.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ["LANCE_LOG"] = "error"

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.file import LanceFileWriter
from msgspec import structs

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from penstock.pipeline.spark.engine import Engine, Tasks
from penstock.pipeline.spark.fill_column import SCHEMA, fill_kernel
from penstock.runner.session import Session
from penstock.settings.sections import Cluster
from tests.harness.kernel import Bench, bench

DIMENSION = 128
VECTOR = pa.list_(pa.float32(), DIMENSION)
GOALS = {"arrow": 1.35, "scalar": 1.35, "vector": 1.3}


def lengths(texts: pa.Array) -> pa.Array:
    return pc.utf8_length(texts)


def vectors(ids: pa.Array) -> Any:
    numbers = ids.to_numpy().astype(np.float32)
    return np.repeat(numbers, DIMENSION).reshape(-1, DIMENSION)


# Name: the function, its kind, its input, and the type of its column.
CASES: dict[str, tuple[Callable[..., Any], str, str, pa.DataType]] = {
    "arrow": (lengths, "arrow", "text", pa.int32()),
    "scalar": (len, "scalar", "text", pa.int32()),
    "vector": (vectors, "arrow", "id", VECTOR),
}


def plain(root: str, name: str, fragments: list[int]) -> list[str]:
    """What one plain process does; returns the files that it wrote."""
    written = []
    function, kind, column, of = CASES[name]
    dataset = lance.dataset(root)
    for id in fragments:
        fragment = dataset.get_fragment(id)
        assert fragment is not None
        path = f"{root}/data/plain-{uuid.uuid4().hex}.lance"
        writer = LanceFileWriter(path, pa.schema([("value", of)]), version="2.1")
        for batch in dataset.scanner(
            columns=[column], fragments=[fragment], batch_size=65_536, scan_in_order=True
        ).to_batches():
            given = batch.column(0)
            if kind == "scalar":
                values = pa.array([function(value) for value in given.to_pylist()], of)
            elif name == "vector":
                flat = pa.array(function(given).reshape(-1))
                values = pa.FixedSizeListArray.from_arrays(flat, DIMENSION)
            else:
                values = function(given)
            writer.write_batch(pa.record_batch([values], ["value"]))
        writer.close()
        written.append(path)
    return written


def run_plain(pool: ProcessPoolExecutor, table: Bench, name: str, fragments: int) -> None:
    halves = [list(range(start, fragments, 2)) for start in (0, 1)]
    for done in [pool.submit(plain, str(table.root), name, half) for half in halves]:
        for path in done.result():
            os.remove(path)


def run_kernel(engine: Engine, table: Bench) -> None:
    work = table.work()
    order = structs.replace(table.order(work), tasks=(work[::2], work[1::2]))
    failed = Tasks(engine, fill_kernel(order), 2, SCHEMA).result()
    assert not failed, failed
    for note in table.notes():
        os.remove(table.root / "data" / note.file.path)
    table.job = uuid.uuid4().hex


def compare(
    engine: Engine, pool: ProcessPoolExecutor, table: Bench, name: str, given: argparse.Namespace
) -> None:
    """Measure both in turn, after a round that counts for nothing."""
    pairs = []
    for number in range(given.rounds + 1):
        ceiling = timed(lambda: run_plain(pool, table, name, given.fragments))
        ours = timed(lambda: run_kernel(engine, table))
        if number:
            pairs.append((ceiling, ours))
            print(f"  {name}: {ours:.3f} s beside {ceiling:.3f} s", flush=True)
    ratio = statistics.median(ours / ceiling for ceiling, ours in pairs)
    best = min(ours for _, ours in pairs) / min(ceiling for ceiling, _ in pairs)
    print(f"{name}: {ratio:.2f}x (best {best:.2f}x), goal {GOALS[name]:.2f}x", flush=True)


def timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--fragments", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        random = np.random.default_rng(0)
        texts = ["x" * int(n) for n in random.integers(20, 180, given.rows)]
        data = pa.table({"id": pa.array(np.arange(given.rows)), "text": texts})
        session = Session("bench", Cluster(master="local[2,4]"), folder / "spark")
        engine = session.engine(lambda: None)
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=spawn) as pool:
            for name, (function, kind, column, of) in CASES.items():
                if given.only not in (None, name):
                    continue
                table = bench(
                    folder,
                    data,
                    function,
                    [column],
                    {"value": of},
                    kind=kind,
                    fragments=given.fragments,
                )
                compare(engine, pool, table, name, given)
        session.stop()


if __name__ == "__main__":
    main()
