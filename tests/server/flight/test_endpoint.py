"""SQL by Arrow Flight: the gate, rights and bounds of `/v1/sql`, and nothing that breaks it."""

import contextlib
import random
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import lancedb
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from lancedb.remote import ClientConfig, TlsConfig

from penstock.server.flight.messages import COMMAND, SERVICE, STATEMENT_QUERY, SUBMITTED
from penstock.server.flight.protobuf import decode, encode, read_bytes, read_message
from penstock.server.flight.statements import MAX_OF_OWNER
from tests.harness.data.arrow import people, send
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes import servers
from tests.harness.processes.access import GuardedServer, guarded, tls
from tests.harness.processes.waiting import until

MAX_ROWS, MAX_MIB, MIB = 50, 10, 1024 * 1024
METHODS = ("PollFlightInfo", "GetFlightInfo", "DoGet", "DoAction")


class Place:
    """A guarded server with a port for Flight, and the table t in a namespace."""

    def __init__(self, gate: GuardedServer, port: int) -> None:
        self.gate, self.port, self.admin = gate, port, gate.admin()
        self.ns = f"f{uuid.uuid4().hex[:8]}"
        self.admin.post(f"/v1/namespace/{self.ns}/create").raise_for_status()
        send(self.admin, f"/v1/table/{self.ns}$t/create", people(1, 2, 3)).raise_for_status()

    def reader(self) -> str:
        """The key of somebody who may read the table."""
        name = f"p{uuid.uuid4().hex[:8]}"
        self.gate.grant(name, "reader", "table", self.ns, "t")
        return self.gate.key(name)

    def connect(self, key: str) -> Any:
        return lancedb.connect(
            "db://x",
            api_key=key,
            host_override=self.gate.server.url,
            sql_host_override=f"grpc://127.0.0.1:{self.port}",
        )

    def ask(self, key: str, sql: str) -> Any:
        found = self.connect(key).execute_query(sql, default_namespace_path=[self.ns])
        return found.read_all()

    def call(self, method: str, request: bytes, key: str = "", **headers: str) -> bytes:
        """One call without a client's help."""
        credentials = {"x-api-key": key} if key else {}
        metadata = tuple((credentials | headers).items())
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            if method in ("DoGet", "DoAction"):
                stream = channel.unary_stream(SERVICE + method)
                return b"".join(stream(request, metadata=metadata, timeout=20))
            answer: bytes = channel.unary_unary(SERVICE + method)(
                request, metadata=metadata, timeout=20
            )
            return answer

    def submit(self, key: str, sql: str) -> str:
        """The id of a new statement."""
        polled = decode(self.call("PollFlightInfo", command(STATEMENT_QUERY, {1: sql}), key))
        info = read_message(polled, 1)
        return read_bytes(read_message(read_message(info, 2), 2), 2).decode()


def command(kind: str, fields: dict[int, Any] | str) -> bytes:
    value = fields if isinstance(fields, str) else encode(fields)
    return encode({1: COMMAND, 2: encode({1: kind, 2: value})})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    port = servers.free_port()
    environ = {
        "PENSTOCK__SERVER__FLIGHT_PORT": str(port),
        "PENSTOCK__SERVER__SQL_MAX_ROWS": str(MAX_ROWS),
        "PENSTOCK__SERVER__SQL_MAX_BYTES": str(MAX_MIB * MIB),
        "PENSTOCK__SERVER__SQL_SECONDS": "20",
        "PENSTOCK__AUTH__MAX_QUERIES": "2",
    }
    with guarded(tmp_path_factory.mktemp("flight"), environ=environ) as gate:
        yield Place(gate, port)


def test_a_reader_gets_what_they_may_read(place: Place) -> None:
    rows = place.ask(place.reader(), "SELECT id FROM t WHERE id > 1")
    assert rows.to_pydict() == {"id": [1, 2]} or rows.num_rows == 2
    assert place.ask(place.reader(), f"SELECT count(*) AS n FROM {place.ns}.t").num_rows == 1


def test_who_has_no_key_hears_nothing(place: Place) -> None:
    for key in ("wrong", place.reader()[:-1] + "x"):
        with pytest.raises(RuntimeError, match="does not have valid authentication credentials"):
            place.ask(key, "SELECT id FROM t")
    for method in METHODS:
        with pytest.raises(grpc.RpcError) as refused:
            place.call(method, command(STATEMENT_QUERY, {1: "SELECT 1"}))
        assert refused.value.code().name in ("UNAUTHENTICATED", "INVALID_ARGUMENT", "UNIMPLEMENTED")


def test_what_may_not_be_read_is_not_there(place: Place) -> None:
    name = f"p{uuid.uuid4().hex[:8]}"
    place.admin.post(f"/v1/namespace/{place.ns}$other/create").raise_for_status()
    place.gate.grant(name, "reader", "namespace", place.ns, "other")
    told = []
    for table in ("t", "q"):
        with pytest.raises(RuntimeError) as refused:
            place.ask(place.gate.key(name), f"SELECT id FROM {place.ns}.{table}")
        told.append(str(refused.value).partition("message")[2])
    assert "is not in the catalog" in told[0]
    assert told[0].replace(f"{place.ns}.t ", f"{place.ns}.q ").replace("$t", "$q") == told[1]


def test_a_statement_is_its_callers_alone(place: Place) -> None:
    one, other = place.reader(), place.reader()
    id = place.submit(one, f"SELECT id FROM {place.ns}.t")
    cancel = encode({1: encode({2: command(SUBMITTED, id)})})
    for key in (other, one[:-1] + "x", ""):
        for method, request in (
            ("PollFlightInfo", command(SUBMITTED, id)),
            ("GetFlightInfo", command(SUBMITTED, id)),
            ("DoGet", encode({1: id})),
            ("DoAction", encode({1: "CancelFlightInfo", 2: cancel})),
        ):
            with pytest.raises(grpc.RpcError) as refused:
                place.call(method, request, key)
            assert refused.value.code().name in ("INVALID_ARGUMENT", "UNAUTHENTICATED")
    assert place.call("DoGet", encode({1: id}), one)
    with pytest.raises(grpc.RpcError, match="no such statement"):
        place.call("DoGet", encode({1: id}), one)


def test_a_key_that_was_revoked_fetches_nothing(place: Place) -> None:
    name = f"p{uuid.uuid4().hex[:8]}"
    place.gate.grant(name, "reader", "table", place.ns, "t")
    token, key = place.gate.make_key(name)
    id = place.submit(key, f"SELECT id FROM {place.ns}.t")
    place.gate.revoke(token.id)
    with pytest.raises(grpc.RpcError) as refused:
        place.call("DoGet", encode({1: id}), key)
    assert refused.value.code().name == "UNAUTHENTICATED"


def test_a_runners_key_asks_nothing(place: Place) -> None:
    key = place.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=("local",))
    with pytest.raises(RuntimeError, match="leases jobs"):
        place.ask(key, "SELECT id FROM t")


def test_a_result_is_bounded(place: Place) -> None:
    rows = people(*range(MAX_ROWS + 1))
    send(place.admin, f"/v1/table/{place.ns}$many/create", rows).raise_for_status()
    admin = place.admin.client.headers["Authorization"].removeprefix("Bearer ")
    with pytest.raises(RuntimeError, match=f"more than {MAX_ROWS} rows"):
        place.ask(admin, "SELECT id FROM many")
    assert place.ask(admin, f"SELECT id FROM many LIMIT {MAX_ROWS}").num_rows == MAX_ROWS


def make_large(place: Place, parts: int) -> str:
    """A table whose rows are some MiB, which come in so many batches; returns its name."""
    name = f"large{uuid.uuid4().hex[:8]}"
    rows = pa.table({"id": pa.array(range(4), pa.int64()), "name": ["x" * (MIB // 4)] * 4})
    send(place.admin, f"/v1/table/{place.ns}${name}/create", rows).raise_for_status()
    for _ in range(parts - 1):
        send(place.admin, f"/v1/table/{place.ns}${name}/insert", rows).raise_for_status()
    return name


def test_a_large_result_is_sent_while_it_is_read_and_broken_off_at_its_bound(place: Place) -> None:
    key = place.admin.client.headers["Authorization"].removeprefix("Bearer ")
    fits = place.ask(key, f"SELECT name FROM {make_large(place, 1)}")
    assert fits.num_rows == 4
    with pytest.raises(RuntimeError, match=f"more than {MAX_MIB * MIB} bytes"):
        place.ask(key, f"SELECT id, name FROM {make_large(place, 12)}")


def test_who_does_not_read_holds_what_a_principal_may_hold(place: Place) -> None:
    name = f"p{uuid.uuid4().hex[:8]}"
    place.gate.grant(name, "reader", "namespace", place.ns)
    key, sql = place.gate.key(name), f"SELECT id, name FROM {place.ns}.{make_large(place, 8)}"
    ids = [place.submit(key, sql) for _ in range(2)]
    # As over HTTP: they are queries of the principal for as long as they are not read.
    with pytest.raises(grpc.RpcError, match="has 2 queries running"):
        place.submit(key, sql)
    for id in ids:
        cancel = encode({1: encode({2: command(SUBMITTED, id)})})
        assert place.call("DoAction", encode({1: "CancelFlightInfo", 2: cancel}), key)
    until(lambda: can_ask(place, key), "what was canceled is still held")


def can_ask(place: Place, key: str) -> bool:
    """Whether there is room for as many queries as a principal may have."""
    request = command(STATEMENT_QUERY, {1: f"SELECT id FROM {place.ns}.t"})
    with contextlib.suppress(grpc.RpcError):
        return bool(place.call("PollFlightInfo", request, key))
    return False


def test_a_client_that_vanishes_in_the_middle_leaves_nothing(place: Place) -> None:
    name = f"p{uuid.uuid4().hex[:8]}"
    place.gate.grant(name, "reader", "namespace", place.ns)
    key, sql = place.gate.key(name), f"SELECT id, name FROM {place.ns}.{make_large(place, 8)}"
    for _ in range(3):
        id = place.submit(key, sql)
        with grpc.insecure_channel(f"127.0.0.1:{place.port}") as channel:
            stream = channel.unary_stream(SERVICE + "DoGet")
            rows = stream(encode({1: id}), metadata=(("x-api-key", key),), timeout=20)
            next(iter(rows))
    until(lambda: can_ask(place, key), "what nobody reads is still held")


def test_one_caller_leaves_room_for_others(place: Place) -> None:
    one, sql = place.reader(), f"SELECT id FROM {place.ns}.t"
    ids = [place.submit(one, sql) for _ in range(MAX_OF_OWNER)]
    with pytest.raises(RuntimeError, match="submitted and not fetched"):
        place.ask(one, sql)
    assert place.ask(place.reader(), sql).num_rows == 3
    for id in ids:
        place.call("DoGet", encode({1: id}), one)
    assert place.ask(one, sql).num_rows == 3


def test_a_statement_that_is_canceled_ends_its_job(place: Place) -> None:
    runner_key = place.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=("local",))
    runner = Runner(place.gate.as_(runner_key), "local")
    runner.lease()
    db = place.connect(place.reader())
    query = db.execute_query_async("SELECT sum(id) FROM t", default_namespace_path=[place.ns])
    assert query.describe().status == "running"
    (job,) = runner.lease()
    query.cancel()
    assert query.describe().status == "cancelled"
    until(lambda: runner.report(job).json().get("cancel") is True, "the job goes on")
    runner.finish(job, "CANCELED").raise_for_status()


def test_a_statement_that_failed_says_so_again(place: Place) -> None:
    runner_key = place.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=("local",))
    runner = Runner(place.gate.as_(runner_key), "local")
    runner.lease()
    key = place.reader()
    id = place.submit(key, f"SELECT sum(id) FROM {place.ns}.t")
    (job,) = runner.lease()
    runner.finish(job, "FAILED", error="it rained").raise_for_status()
    for method in ("PollFlightInfo", "GetFlightInfo", "PollFlightInfo"):
        with pytest.raises(grpc.RpcError, match="it rained"):
            place.call(method, command(SUBMITTED, id), key)


def test_flight_clients_of_others_get_the_rows(place: Place) -> None:
    client = flight.connect(f"grpc://127.0.0.1:{place.port}")
    headers = [(b"x-api-key", place.reader().encode())]
    options = flight.FlightCallOptions(headers=headers, timeout=20)
    any_message = encode(
        {1: STATEMENT_QUERY, 2: encode({1: f"SELECT id FROM {place.ns}.t WHERE id < 2"})}
    )
    info = client.get_flight_info(flight.FlightDescriptor.for_command(any_message), options)
    assert info.schema == pa.schema([("id", pa.int64())])
    reader = client.do_get(info.endpoints[0].ticket, options)
    assert reader.read_all()["id"].to_pylist()
    for ask in (
        lambda: list(client.list_flights(b"", options)),
        lambda: client.get_schema(flight.FlightDescriptor.for_path("t"), options),
        lambda: list(client.do_action(("drop", b""), options)),
    ):
        with pytest.raises((NotImplementedError, pa.ArrowException, flight.FlightError)):
            ask()


def test_bytes_that_mean_nothing_are_refused(place: Place) -> None:
    key, chance = place.reader(), random.Random(7)
    known = [
        command(STATEMENT_QUERY, {1: "SELECT id FROM t"}),
        command(SUBMITTED, "x"),
        encode({1: "CancelFlightInfo", 2: encode({1: encode({2: command(SUBMITTED, "x")})})}),
        command(STATEMENT_QUERY, {1: "SELECT id FROM t", 2: "transaction"}),
        command(STATEMENT_QUERY, {1: b"\xff\xfe"}),
        command("type.googleapis.com/arrow.flight.protocol.sql.CommandGetTables", {}),
        b"",
    ]
    for _ in range(200):
        request = bytearray(chance.choice(known))
        for _ in range(chance.randrange(4)):
            if request:
                request[chance.randrange(len(request))] = chance.randrange(256)
        with pytest.raises(grpc.RpcError) as refused:
            place.call(chance.choice(METHODS[1:]), bytes(request[: chance.randrange(200)]), key)
        told = refused.value.code().name
        assert told in ("INVALID_ARGUMENT", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED"), told


def test_the_namespace_of_a_header_is_checked(place: Place) -> None:
    for path in ("..", "a$$b", "x" * 300):
        with pytest.raises(grpc.RpcError) as refused:
            place.call(
                "GetFlightInfo",
                command(STATEMENT_QUERY, {1: "SELECT id FROM t"}),
                place.reader(),
                **{"namespace-path": path},
            )
        assert refused.value.code().name == "INVALID_ARGUMENT", path


def test_a_sent_header_comes_once(place: Place) -> None:
    metadata = (("x-api-key", place.reader()), ("x-api-key", place.reader()))
    with grpc.insecure_channel(f"127.0.0.1:{place.port}") as channel:
        poll = channel.unary_unary(SERVICE + "PollFlightInfo")
        with pytest.raises(grpc.RpcError, match="more than once"):
            poll(command(STATEMENT_QUERY, {1: "SELECT 1"}), metadata=metadata, timeout=20)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_everybody_is_let_in_only_when_that_is_meant(tmp_path: Path, host: str) -> None:
    environ = {"PENSTOCK__SERVER__FLIGHT_PORT": "1", "PENSTOCK__SERVER__FLIGHT_HOST": host}
    with pytest.raises(Exception, match="would let everybody in"):
        servers.start(tmp_path, environ=environ)


def test_it_speaks_tls_when_the_server_does(tmp_path: Path) -> None:
    port = servers.free_port()
    environ = {**tls(tmp_path), "PENSTOCK__SERVER__FLIGHT_PORT": str(port)}
    with servers.running(tmp_path / "data", environ=environ) as server:
        send(server, "/v1/table/t/create", people(1)).raise_for_status()
        trust = TlsConfig(ssl_ca_cert=str(tmp_path / "tls.crt"))
        db = lancedb.connect(
            "db://x",
            api_key="k",
            host_override=server.url,
            sql_host_override=f"grpcs://localhost:{port}",
            client_config=ClientConfig(tls_config=trust),
        )
        assert db.execute_query("SELECT id FROM t").read_all().num_rows == 1
        plain = lancedb.connect(
            "db://x",
            api_key="k",
            host_override=server.url,
            sql_host_override=f"grpc://localhost:{port}",
        )
        with pytest.raises(RuntimeError):
            plain.execute_query("SELECT id FROM t")


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Exception, match=f"cannot listen on 127.0.0.1:{port} for Flight"):
            servers.start(tmp_path, environ={"PENSTOCK__SERVER__FLIGHT_PORT": str(port)})
