"""lancedb's remote client with keys: what somebody may is what their key may."""

from collections.abc import Callable, Iterator
from typing import Any

import lancedb
import pytest
from lancedb.remote import ClientConfig
from lancedb.remote.errors import HttpError
from lancedb.remote.header import StaticHeaderProvider

from tests.harness.clients.lancedb_modes import some_rows
from tests.harness.processes.access import GuardedServer, guarded


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    with guarded(tmp_path_factory.mktemp("gate")) as started:
        started.grant("ada", "owner")
        started.grant("bob", "reader")
        connect(started, started.key("ada")).create_table("t", some_rows(1, 2, 3))
        yield started


def connect(gate: GuardedServer, key: str, **options: Any) -> Any:
    return lancedb.connect("db://x", api_key=key, host_override=gate.server.url, **options)


def test_a_reader_reads_and_does_not_write(gate: GuardedServer) -> None:
    table = connect(gate, gate.key("bob")).open_table("t")
    assert table.search([1.0, 0.0, 0.0, 0.0]).limit(1).to_list()[0]["id"] == 1
    assert table.get_lsm_write_spec() is None
    refused: list[Callable[[], Any]] = [
        lambda: table.add(some_rows(4)),
        lambda: table.delete("true"),
        lambda: table.create_index("id"),
        lambda: table.tags.create("mine", 1),
    ]
    for call in refused:
        with pytest.raises(HttpError, match="403"):
            call()
    assert table.count_rows() == 3


def test_a_stranger_hears_nothing(gate: GuardedServer) -> None:
    with pytest.raises(HttpError, match="401"):
        connect(gate, "wrong").open_table("t")
    with pytest.raises(ValueError, match="'t' was not found"):
        connect(gate, gate.key("carl")).open_table("t")


def test_headers_may_bring_the_credentials(gate: GuardedServer) -> None:
    bearer = StaticHeaderProvider({"x-api-key": gate.key("bob")})
    config = ClientConfig(header_provider=bearer)
    assert connect(gate, "none", client_config=config).open_table("t").count_rows() == 3
