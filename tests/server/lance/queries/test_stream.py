"""Large results: sent while they are computed, in bounded memory, and never cut off unnoticed."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import lance
import numpy as np
import pyarrow as pa
import pytest

from tests.harness.data.rows import put, query, vectors
from tests.harness.data.tables import Table, code
from tests.harness.processes import servers
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that does one data operation at a time, and lets none wait."""
    environ = {
        "PENSTOCK__SERVER__DATA_THREADS": "1",
        "PENSTOCK__SERVER__MAX_DATA_REQUESTS": "1",
    }
    with servers.running(tmp_path_factory.mktemp("lone"), environ=environ) as started:
        yield started


def numbers(megabytes: int) -> pa.Table:
    """So many megabytes of vectors that do not compress, each megabyte a batch."""
    found = np.random.default_rng(1).random((1024, 256), dtype=np.float32)
    batch = pa.record_batch({"id": np.arange(1024), "vector": vectors(found)})
    return pa.Table.from_batches([batch] * megabytes)


def bytes_read(server: Server) -> int:
    fields = Path(f"/proc/{server.process.pid}/io").read_text().split()
    return int(fields[1])


def resident_bytes(server: Server) -> int:
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * 4096


def start_to_read(table: Table) -> httpx.Response:
    """The answer to a query for everything, of which nothing but the head was read."""
    client = table.server.client
    request = client.build_request("POST", f"/v1/table/{table.id}/query", json={})
    return client.send(request, stream=True)


def test_a_large_result_has_no_length_and_all_rows(lone: Server) -> None:
    table, dataset = put(lone, numbers(6))
    answer = start_to_read(table)
    assert "content-length" not in answer.headers
    assert pa.ipc.open_file(answer.read()).read_all() == dataset.to_table()
    assert "content-length" in table.ask("query", {"k": 5}).headers


def test_a_client_that_goes_away_stops_the_work(lone: Server) -> None:
    table, _ = put(lone, numbers(200))
    before = bytes_read(lone)
    answer = start_to_read(table)
    # Kept: an iterator that is thrown away closes the connection.
    chunks = answer.iter_raw(MEGABYTE)
    next(chunks)
    assert code(table.ask("count_rows", {"predicate": "id > 0"})) == (429, 21)
    answer.close()
    until(
        lambda: table.ask("count_rows", {"predicate": "id > 0"}).status_code == 200,
        "the query never ended",
    )
    assert bytes_read(lone) - before < 150 * MEGABYTE


def test_an_error_in_the_middle_breaks_the_connection(lone: Server) -> None:
    table, dataset = put(lone, numbers(40))
    dataset.insert(numbers(1))
    last = dataset.get_fragments()[-1].data_files()[0].path
    (table.location / "data" / last).unlink()
    with pytest.raises(httpx.RemoteProtocolError):
        start_to_read(table).read()
    assert query(table, k=3).num_rows == 3


@pytest.mark.slow
def test_memory_stays_bounded_while_300_megabytes_stream(lone: Server) -> None:
    table, _ = put(lone, numbers(100))
    for _ in range(2):
        lance.write_dataset(numbers(100), str(table.location), mode="append")
    query(table, k=1)
    before, peak, size = resident_bytes(lone), 0, 0
    for part in start_to_read(table).iter_raw(MEGABYTE):
        size += len(part)
        peak = max(peak, resident_bytes(lone))
    print(f"{size / 1e6:.0f} MB sent, {(peak - before) / 1e6:.0f} MB more in memory")
    assert size > 300 * MEGABYTE
    assert peak - before < 250 * MEGABYTE


def test_a_server_can_stop_while_a_client_does_not_read(tmp_path: Path) -> None:
    environ = {"PENSTOCK__SERVER__STOP_SECONDS": "1"}
    with servers.running(tmp_path, environ=environ) as server:
        table, _ = put(server, numbers(100))
        answer = start_to_read(table)
        started = time.monotonic()
        assert server.stop() == 0
        # Without the setting it would be half a minute.
        assert time.monotonic() - started < 20
        answer.close()
