"""AlterTableAddColumns, AlterTableAlterColumns and AlterTableDropColumns, on main and a branch."""

from collections import Counter
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.harness.clients.generated import Client as Generated
from tests.harness.clients.generated import models
from tests.harness.clients.pylance import Client, connect
from tests.harness.data.tables import Table, code, get_table
from tests.harness.fuzzing.races import CLIENTS, race
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

DATA = pa.table(
    {
        "n": pa.array([1, 2, None], pa.int64()),
        "s": ["a", "b", "c"],
        "st": pa.array([{"x": 1, "y.z": {"q`r": 0.5}}] * 3),
        "docs": pa.array([[{"t": "a"}]] * 3),
        "vector": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2)),
    }
)
DEEP = "st.`y.z`.`q``r`"


@pytest.fixture
def client(server: Server, namespace: str) -> Client:
    client = Client(connect(server), [namespace, "t"])
    lance.write_dataset(DATA, mode="create", **client.target)
    return client


@pytest.fixture
def table(server: Server, client: Client) -> Table:
    """A table with one version of three rows, and a branch `dev` of it."""
    table = get_table(server, "$".join(client.id))
    assert table.ask("branches/create", {"name": "dev"}).status_code == 200
    return table


def add(table: Table, name: str = "m", **fields: Any) -> Any:
    column = {"name": name} | {k: v for k, v in fields.items() if k != "branch"}
    return table.ask("add_columns", {"new_columns": [column], "branch": fields.get("branch")})


def alter(table: Table, path: str, **change: Any) -> Any:
    return table.ask("alter_columns", {"alterations": [{"path": path} | change]})


def names(client: Client, branch: str | None = None) -> list[str]:
    dataset = client.open()
    return list((dataset.checkout_version((branch, None)) if branch else dataset).schema.names)


def test_an_expression_fills_the_new_column(table: Table, client: Client) -> None:
    answer = add(table, expression="n * 2")
    assert answer.json() == {"version": 2}
    assert client.open().to_table()["m"].to_pylist() == [2, 4, None]
    assert table.listed() == [1, 2]


def test_columns_are_added_together(table: Table, client: Client) -> None:
    columns = [{"name": "m", "expression": "n + 1"}, {"name": "k", "expression": f"{DEEP} * 2"}]
    assert table.ask("add_columns", {"new_columns": columns}).json() == {"version": 2}
    assert client.open().to_table()["k"].to_pylist() == [1.0] * 3


def test_the_published_client_reads_the_answers(table: Table, server: Server) -> None:
    generated = Generated(server.url)
    entry = models.AddColumnsEntry(name="m", expression="n + 1")
    request = models.AlterTableAddColumnsRequest(new_columns=[entry])
    assert generated.alter_table_add_columns(table.id, request).version == 2
    change = models.AlterColumnsEntry(path="m", rename="k", data_type={"type": "int32"})
    altered = models.AlterTableAlterColumnsRequest(alterations=[change])
    assert generated.alter_table_alter_columns(table.id, altered).version == 3
    request = models.AlterTableDropColumnsRequest(columns=["k"])
    dropped = generated.alter_table_drop_columns(table.id, request)
    assert dropped.version == 4
    known = server.post(f"/v1/transaction/{dropped.transaction_id}/describe")
    assert known.json()["status"] == "SUCCEEDED"


def test_columns_that_many_add_at_once_are_all_there(table: Table, client: Client) -> None:
    found = race(lambda number: add(table, f"m{number}", expression=f"n + {number}"))
    assert found == Counter({(200, 0): CLIENTS})
    assert set(names(client)) == {*DATA.schema.names, *(f"m{n}" for n in range(CLIENTS))}
    assert table.listed() == list(range(1, CLIENTS + 2))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ({}, (400, 13)),
        ({"expression": "n", "computed": "n"}, (400, 13)),
        ({"expression": "n + +"}, (400, 13)),
        ({"expression": "sum(n)"}, (400, 13)),
        ({"expression": "missing + 1"}, (404, 12)),
        ({"expression": "n", "name": "s"}, (400, 20)),
        ({"expression": "n", "name": ""}, (400, 13)),
        ({"expression": "n", "name": "a.b"}, (400, 13)),
        ({"expression": "n", "name": "a\x00b"}, (400, 13)),
        ({"expression": "n", "name": "_rowid"}, (400, 13)),
        ({"expression": "n", "branch": "missing"}, (404, 22)),
        ({"expression": "n", "branch": "no such"}, (400, 13)),
    ],
)
def test_bad_columns_are_refused(
    table: Table, column: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert code(add(table, **column)) == expected
    assert table.listed() == [1]


def test_a_column_named_twice_is_refused(table: Table) -> None:
    columns = [{"name": "m", "expression": "n"}] * 2
    assert code(table.ask("add_columns", {"new_columns": columns})) == (400, 13)


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("add_columns", {"new_columns": []}),
        ("alter_columns", {"alterations": []}),
        ("drop_columns", {"columns": []}),
        ("add_columns", {}),
        ("alter_columns", {"alterations": [{"path": ""}]}),
        ("drop_columns", {"columns": [""]}),
    ],
)
def test_nothing_to_do_is_refused(table: Table, operation: str, body: dict[str, Any]) -> None:
    assert code(table.ask(operation, body)) == (400, 13)


def test_a_rename_keeps_the_values(table: Table, client: Client) -> None:
    assert alter(table, "s", rename="text").json() == {"version": 2}
    assert client.open().to_table()["text"].to_pylist() == ["a", "b", "c"]


def test_a_column_becomes_required_only_without_nulls(table: Table, client: Client) -> None:
    assert alter(table, "s", nullable=False).status_code == 200
    assert client.open().schema.field("s").nullable is False
    assert alter(table, "s", nullable=True).status_code == 200
    assert client.open().schema.field("s").nullable is True
    assert code(alter(table, "n", nullable=False)) == (400, 13)


@pytest.mark.parametrize("data_type", ["int32", {"type": "int32"}, {"type": "INT32"}])
def test_a_type_is_an_object_or_its_name(table: Table, client: Client, data_type: Any) -> None:
    assert alter(table, "n", data_type=data_type).status_code == 200
    assert client.open().schema.field("n").type == pa.int32()
    assert client.open().to_table()["n"].to_pylist() == [1, 2, None]


def test_a_vector_changes_its_precision(table: Table, client: Client) -> None:
    item = {"name": "item", "type": {"type": "float16"}, "nullable": True}
    wanted = {"type": "fixed_size_list", "length": 2, "fields": [item]}
    assert alter(table, "vector", data_type=wanted).status_code == 200
    assert client.open().schema.field("vector").type == pa.list_(pa.float16(), 2)


def test_nested_fields_are_altered_and_dropped(table: Table, client: Client) -> None:
    assert alter(table, DEEP, rename="q", data_type="float").status_code == 200
    inner = client.open().schema.field("st").type.field("y.z").type
    assert inner == pa.struct([pa.field("q", pa.float32())])
    assert table.ask("drop_columns", {"columns": ["st.`y.z`.q", "docs"]}).status_code == 200
    assert client.open().schema.field("st").type == pa.struct([pa.field("x", pa.int64())])
    assert names(client) == ["n", "s", "st", "vector"]


def test_alterations_share_a_version(table: Table, client: Client) -> None:
    changes = [{"path": "n", "rename": "number"}, {"path": "s", "rename": "text"}]
    assert table.ask("alter_columns", {"alterations": changes}).json() == {"version": 2}
    assert names(client)[:2] == ["number", "text"]


@pytest.mark.parametrize(
    ("path", "change", "expected"),
    [
        ("missing", {"rename": "k"}, (404, 12)),
        ("st.missing", {"rename": "k"}, (404, 12)),
        ("`st", {"rename": "k"}, (400, 13)),
        ("st..x", {"rename": "k"}, (400, 13)),
        ("n", {}, (400, 13)),
        ("n", {"rename": "s"}, (400, 20)),
        ("n", {"rename": ""}, (400, 13)),
        ("n", {"rename": "a\x00b"}, (400, 13)),
        ("n", {"rename": "_rowaddr"}, (400, 13)),
        ("vector.item", {"data_type": "double"}, (404, 12)),
        ("docs.item.missing", {"rename": "k"}, (404, 12)),
        ("s", {"data_type": "int32"}, (400, 20)),
        ("n", {"data_type": "integer"}, (400, 13)),
        ("n", {"data_type": {"type": "fixed_size_list"}}, (400, 13)),
        ("n", {"data_type": 7}, (400, 13)),
        ("n", {"virtual_column": {}}, (400, 13)),
        ("n", {"virtual_column": {"udf_version": "2"}}, (400, 13)),
    ],
)
def test_bad_alterations_are_refused(
    table: Table, path: str, change: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert code(alter(table, path, **change)) == expected
    assert table.listed() == [1]


def test_one_column_is_altered_once(table: Table) -> None:
    changes = [{"path": "n", "rename": "a"}, {"path": "`n`", "rename": "b"}]
    assert code(table.ask("alter_columns", {"alterations": changes})) == (400, 13)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [(["missing"], (404, 12)), (["n", "missing"], (404, 12)), (DATA.schema.names, (400, 13))],
)
def test_bad_drops_are_refused(table: Table, columns: list[str], expected: tuple[int, int]) -> None:
    assert code(table.ask("drop_columns", {"columns": columns})) == expected
    assert table.listed() == [1]


def test_a_branch_changes_alone(table: Table, client: Client) -> None:
    before = names(client)
    assert add(table, expression="n", branch="dev").json() == {"version": 2}
    change = [{"path": "m", "rename": "k"}]
    answer = table.ask("alter_columns", {"alterations": change, "branch": "dev"})
    assert answer.json() == {"version": 3}
    answer = table.ask("drop_columns", {"columns": ["s"], "branch": "dev"})
    assert answer.json()["version"] == 4
    assert names(client, "dev") == ["n", "st", "docs", "vector", "k"]
    assert names(client) == before
    assert table.listed() == [1]
    assert table.listed(branch="dev") == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("add_columns", {"new_columns": [{"name": "m", "expression": "1"}]}),
        ("alter_columns", {"alterations": [{"path": "n", "rename": "m"}]}),
        ("drop_columns", {"columns": ["n"]}),
    ],
)
def test_a_missing_table_is_named(
    server: Server, namespace: str, operation: str, body: dict[str, Any]
) -> None:
    assert code(server.post(f"/v1/table/{namespace}$gone/{operation}", body)) == (404, 4)
    assert code(server.post(f"/v1/table/nowhere$gone/{operation}", body)) == (404, 1)
