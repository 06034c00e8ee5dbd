"""The functions that benchmarks fill columns with, and the tables that they fill."""

import base64
import hashlib
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle
import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.namespace import RestNamespace

from benchmarks.jobs import Client

DIMENSIONS = 128
BLOB_BYTES = 100_000
VECTOR = pa.list_(pa.float32(), DIMENSIONS)
HASHES = 16


@dataclass(frozen=True)
class Case:
    """A function, how it is called, and the type of its column."""

    name: str
    kind: str
    call: Callable[..., Any]
    type: pa.DataType
    json_type: dict[str, Any]
    input: str = "text"

    @property
    def value_bytes(self) -> int:
        """What one value takes in memory and in a file."""
        if pa.types.is_fixed_size_list(self.type):
            return int(self.type.list_size) * int(self.type.value_type.bit_width) // 8
        return int(self.type.bit_width) // 8


def _vector_json(length: int) -> dict[str, Any]:
    item = {"name": "item", "type": {"type": "float"}, "nullable": True}
    return {"type": "fixed_size_list", "fields": [item], "length": length}


def length_of_all(texts: pa.Array) -> pa.Array:
    return pc.cast(pc.binary_length(texts), pa.int64())


def length_of_one(text: str) -> int:
    return len(text)


def vectors(ids: pa.Array) -> pa.Array:
    firsts = np.asarray(ids, dtype=np.float32)
    values = firsts[:, None] + np.arange(DIMENSIONS, dtype=np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSIONS)


def slow_length(text: str) -> int:
    total = 0
    for number in range(900):
        total += number
    return len(text) + total * 0


def hashed(text: str) -> list[float]:
    """A hashing embedding; it takes some 20 microseconds."""
    content = text.encode()
    digests = (
        hashlib.blake2b(content, digest_size=4, salt=bytes([n])).digest() for n in range(HASHES)
    )
    return [int.from_bytes(digest, "big") / 2**32 for digest in digests]


def size_of_one(content: bytes) -> int:
    return len(content)


LONG = {"type": "int64"}
SCALAR = Case("scalar", "scalar", length_of_one, pa.int64(), LONG)
COSTLY = Case("costly", "scalar", hashed, pa.list_(pa.float32(), HASHES), _vector_json(HASHES))
SLOW = Case("slow", "scalar", slow_length, pa.int64(), LONG)
BLOBS = Case("blobs", "scalar", size_of_one, pa.int64(), LONG, "content")
CASES = (
    Case("arrow", "arrow", length_of_all, pa.int64(), LONG),
    SCALAR,
    Case("vector", "arrow", vectors, VECTOR, _vector_json(DIMENSIONS), "id"),
)


def add_column(client: Client, table: list[str], case: Case) -> None:
    """Declare the column `value`, all null."""
    # By value, because workers have no benchmarks.
    import benchmarks.filling

    cloudpickle.register_pickle_by_value(benchmarks.filling)
    payload = cloudpickle.dumps(case.call)
    envelope = {
        "format": "penstock/1",
        "kind": case.kind,
        "payload": base64.b64encode(payload).decode(),
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    output = {
        "column": "value",
        "struct_field": "",
        "data_type": case.json_type,
        "nullable": True,
    }
    virtual = {
        "input_columns": [case.input],
        "outputs": [output],
        "image": "",
        "udf": base64.b64encode(json.dumps(envelope).encode()).decode(),
        "udf_name": case.name,
        "udf_version": "1",
        "udf_backend": "penstock/1",
    }
    new = [{"name": "value", "virtual_column": virtual}]
    client.post(f"/v1/table/{'$'.join(table)}/add_columns", {"new_columns": new})


def renew_column(client: Client, table: list[str], case: Case) -> None:
    """The column again, without values."""
    client.post(f"/v1/table/{'$'.join(table)}/drop_columns", {"columns": ["value"]})
    add_column(client, table, case)


def make_table(client: Client, rows: int, fragments: int) -> list[str]:
    """Numbers and texts of about a hundred bytes."""
    data = pa.table({"id": range(rows), "text": ["x" * (50 + n % 97) for n in range(rows)]})
    return _write(client, data, -(-rows // fragments))


def make_blobs(client: Client, rows: int) -> list[str]:
    """Large values, all in one fragment."""
    contents = (
        pa.array([bytes([n % 251]) * BLOB_BYTES for n in range(start, start + 100)])
        for start in range(0, rows, 100)
    )
    schema = pa.schema([pa.field("content", pa.binary())])
    batches = (pa.record_batch([part], schema=schema) for part in contents)
    return _write(client, pa.RecordBatchReader.from_batches(schema, batches), rows)


def make_wide(client: Client, rows: int) -> list[str]:
    """So many rows that only their metadata can be looked at."""
    size = 1_000_000
    part = pa.record_batch([pa.array(np.zeros(size, np.int8))], ["text"])
    parts = (part for _ in range(rows // size))
    return _write(client, pa.RecordBatchReader.from_batches(part.schema, parts), size)


def _write(client: Client, data: Any, rows_per_file: int) -> list[str]:
    id = [f"b{uuid.uuid4().hex[:8]}", "t"]
    client.post(f"/v1/namespace/{id[0]}/create")
    connect: Any = RestNamespace
    lance.write_dataset(
        data,
        namespace_client=connect(uri=client.url),
        table_id=id,
        mode="create",
        max_rows_per_file=rows_per_file,
        max_bytes_per_file=1 << 40,
        enable_stable_row_ids=True,
    )
    return id
