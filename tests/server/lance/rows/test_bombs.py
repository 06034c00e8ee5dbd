"""Arrow bodies that ask for far more memory than they bring are refused before it is allocated."""

import io
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, send, to_stream
from tests.harness.data.tables import code, new_name
from tests.harness.processes.servers import Server, running

ZEROS = pa.array(np.zeros(1_000_000, np.int64))


def pack(rows: Any, compression: str | None = "zstd") -> bytes:
    """A stream of batches, each compressed in itself."""
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write(rows)
    return sink.getvalue()


def claim(content: bytes, true: int, said: int) -> bytes:
    """The same stream with another number of rows in every place."""
    return content.replace(struct.pack("<q", true), struct.pack("<q", said))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that grants a batch four megabytes."""
    environ = {"PENSTOCK__SERVER__MAX_BATCH_BYTES": str(2**22)}
    with running(tmp_path_factory.mktemp("bombs"), environ=environ) as started:
        yield started


@pytest.fixture(scope="module")
def table(server: Server) -> str:
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    send(server, f"/v1/table/{namespace}$t/create", people(1)).raise_for_status()
    return f"{namespace}$t"


def bombs() -> dict[str, bytes]:
    wide = {f"c{i}": ZEROS[:300_000] for i in range(4)}
    few = pa.array(np.zeros(10_000, np.int8))
    text = pa.DictionaryArray.from_arrays(few, pa.array(["x" * 1000]))
    one = pa.array(["y" * 1000], pa.string_view())
    views = pa.py_buffer(one.buffers()[1].to_pybytes()[:16] * 10_000)
    view = pa.Array.from_buffers(pa.string_view(), 10_000, [None, views, *one.buffers()[2:]])
    return {
        "zstd": pack(pa.record_batch({"id": ZEROS})),
        "lz4": pack(pa.record_batch({"id": ZEROS}), "lz4"),
        "several": pack(pa.Table.from_batches([pa.record_batch({"id": ZEROS[:300_000]})] * 5)),
        "columns": pack(pa.record_batch(wide)),
        "nulls": claim(pack(pa.record_batch({"id": pa.nulls(777)})), 777, 10**12),
        "list of nulls": pack(
            pa.record_batch({"id": pa.nulls(50, pa.list_(pa.null(), 1_000_000))}), None
        ),
        "dictionary": pack(pa.record_batch({"id": text})),
        "views": pack(pa.record_batch({"id": view})),
    }


BOMBS = bombs()


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("operation", ["create", "insert", "merge_insert"])
def test_a_body_that_asks_for_more_than_is_granted_is_refused(
    server: Server, table: str, operation: str, name: str
) -> None:
    target = f"{table}_{new_name()}" if operation == "create" else table
    merge = {"on": "id", "when_not_matched_insert_all": "true"}
    params = merge if operation == "merge_insert" else {}
    answer = send(server, f"/v1/table/{target}/{operation}", BOMBS[name], **params)
    assert code(answer)[0] in (400, 413), answer.text
    assert "bytes" in answer.text or operation != "create"
    assert server.post(f"/v1/table/{table}/count_rows", {}).json() == 1


def test_a_long_stream_is_looked_at_batch_by_batch(server: Server, table: str) -> None:
    noise = np.random.default_rng(1).integers(0, 2**62, 400_000)
    batches = [pa.record_batch({"id": noise})] * 2 + [pa.record_batch({"id": ZEROS})]
    answer = send(
        server,
        f"/v1/table/{table}_{new_name()}/create",
        pack(pa.Table.from_batches(batches)),
    )
    assert code(answer) == (413, 13), answer.text
    assert "would take 8000000 bytes" in answer.text


@pytest.mark.parametrize("compression", ["zstd", "lz4", None])
def test_rows_in_compressed_batches_are_rows(server: Server, compression: str | None) -> None:
    namespace, rows = new_name(), people(*range(1000)).to_batches()[0]
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    path = f"/v1/table/{namespace}$t/create"
    assert send(server, path, pack(rows, compression)).status_code == 200
    assert server.post(f"/v1/table/{namespace}$t/count_rows", {}).json() == 1000


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "br", "x, gzip"])
@pytest.mark.parametrize(
    "path", ["/v1/table/{}/count_rows", "/v1/table/{}/insert", "/iceberg/v1/namespaces"]
)
def test_a_body_that_is_compressed_as_a_whole_is_415(
    server: Server, table: str, path: str, encoding: str
) -> None:
    headers = {"content-encoding": encoding}
    answer = server.client.post(path.format(table), content=to_stream(people(2)), headers=headers)
    assert answer.status_code == 415
    assert "content encoding" in answer.text
