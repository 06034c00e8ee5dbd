"""A column filled without server and Spark: by two plain processes, or by pylance alone."""

import tempfile
import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.file import LanceFileWriter
from lance.fragment import DataFile

from benchmarks.filling import Case
from benchmarks.memory import prepare_memory
from penstock.lance.session.remote import RemoteCatalog

BATCH_ROWS = 65_536


def fill(pool: ProcessPoolExecutor, url: str, table: list[str], case: Case) -> None:
    """Write the column's files in two processes, and commit them."""
    dataset = RemoteCatalog(url).open_latest(table, "")
    ids = [fragment.fragment_id for fragment in dataset.get_fragments()]
    halves = [pool.submit(_write, dataset.uri, dataset.version, ids[n::2], case) for n in (0, 1)]
    field = next(f for f in dataset.lance_schema.fields() if f.name() == "value")
    major, minor = (int(part) for part in dataset.data_storage_version.split("."))
    groups = [
        LanceOperation.DataReplacementGroup(
            id, DataFile(path, [_leaf(field).id()], [0], major, minor, size)
        )
        for half in halves
        for id, path, size in half.result()
    ]
    operation = LanceOperation.DataReplacement(groups)
    LanceDataset.commit(dataset, Transaction(dataset.version, operation))


def _leaf(field: Any) -> Any:
    children = field.children()
    return _leaf(children[0]) if children else field


def _write(uri: str, version: int, ids: list[int], case: Case) -> list[tuple[int, str, int]]:
    """What one of the two does: scan, call, write."""
    dataset = lance.dataset(uri, version=version)
    schema = pa.schema([pa.field("value", case.type)])
    done = []
    for id in ids:
        name = f"plain-{uuid.uuid4().hex}.lance"
        writer = LanceFileWriter(f"{uri}/data/{name}", schema, version=dataset.data_storage_version)
        fragment: Any = dataset.get_fragment(id)
        scanner = dataset.scanner(
            columns=[case.input], fragments=[fragment], batch_size=BATCH_ROWS, scan_in_order=True
        )
        for batch in scanner.to_batches():
            writer.write_batch(pa.record_batch([_call(case, batch.column(0))], schema=schema))
        writer.close()
        done.append((id, name, writer.size_bytes or 0))
    return done


def add_columns(url: str, table: list[str], case: Case) -> float:
    """Seconds that pylance needs for a new column, in this process, on a copy by reference."""
    source = RemoteCatalog(url).open_latest(table, "")
    schema = pa.schema([pa.field("value", case.type)])
    with tempfile.TemporaryDirectory(dir=Path(source.uri).parent) as folder:
        rows = source.to_table(columns=[case.input])
        size = -(-len(rows) // len(source.get_fragments()))
        copy = lance.write_dataset(rows, f"{folder}/copy", max_rows_per_file=size)

        @lance.batch_udf(output_schema=schema)
        def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.record_batch([_call(case, batch.column(0))], schema=schema)

        prepare_memory(Path(folder), len(rows) * case.value_bytes)
        started = time.perf_counter()
        copy.add_columns(compute, read_columns=[case.input], batch_size=BATCH_ROWS)
        return time.perf_counter() - started


def _call(case: Case, values: pa.Array) -> pa.Array:
    if case.kind == "scalar":
        return pa.array(list(map(case.call, values.to_pylist())), case.type)
    result: pa.Array = case.call(values)
    return result
