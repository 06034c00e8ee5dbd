"""Who may not bring code does not run any by metadata, nor get somebody else's by its hash."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.harness.clients.pylance import Client, connect
from tests.harness.data.arrow import people, send
from tests.harness.data.functions import add_function, alter_function, virtual_column
from tests.harness.data.tables import code
from tests.harness.processes.access import GuardedServer, Person, person
from tests.harness.processes.servers import Server

PAYLOAD, OTHER = b"\x80\x05N.", b"\x80\x05K\x01."
ROWS = people(1, 2)


def declare(server: Server, ns: str) -> str:
    """A table of somebody who may bring code, with a column `x` that a function fills."""
    table = f"{ns}$theirs{uuid.uuid4().hex[:6]}"
    send(server, f"/v1/table/{table}/create", ROWS).raise_for_status()
    new = virtual_column(PAYLOAD, ["id"], {"x": "int64"}, name="theirs")
    add_function(server, table, new).raise_for_status()
    return table


@dataclass
class Thief:
    """Somebody who owns a namespace, may not bring code, and knows another's binding."""

    person: Person
    ns: str
    schema: pa.Schema
    sha256: str

    @property
    def server(self) -> Server:
        return self.person.server

    @property
    def rows(self) -> pa.Table:
        """Rows that come with the other's binding."""
        columns = [*ROWS.columns, pa.nulls(2, pa.int64())]
        return pa.table(columns, schema=self.schema.remove_metadata())

    def make(self, rows: pa.Table | None = None) -> str:
        """A table of their own, without any binding."""
        table = f"{self.ns}$t{uuid.uuid4().hex[:6]}"
        plain = self.rows.replace_schema_metadata()
        bare = pa.table(plain.columns, names=plain.column_names)
        send(self.server, f"/v1/table/{table}/create", rows or bare).raise_for_status()
        return table

    def location(self, table: str) -> str:
        return str(self.server.post(f"/v1/table/{table}/describe").json()["location"])

    def ask(self, table: str, operation: str, body: Any) -> Any:
        return self.server.post(f"/v1/table/{table}/{operation}", body)


@pytest.fixture
def thief(gate: GuardedServer, admin: Server, ns: str) -> Thief:
    ann, mine = person(gate), f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{mine}/create").raise_for_status()
    gate.grant(ann.name, "owner", "namespace", mine)
    location = admin.post(f"/v1/table/{declare(admin, ns)}/describe").json()["location"]
    schema = lance.dataset(location).schema
    function = json.loads(schema.field("x").metadata[b"penstock.function"])
    return Thief(ann, mine, schema, function["sha256"])


def test_a_table_is_not_created_with_a_binding(thief: Thief) -> None:
    answer = send(thief.server, f"/v1/table/{thief.ns}$new/create", thief.rows)
    assert code(answer) == (400, 13)
    assert "of column x is the server's own" in answer.json()["error"]
    assert not thief.person.sees(f"{thief.ns}$new")


def test_a_declared_table_does_not_begin_with_a_binding(thief: Thief) -> None:
    table = f"{thief.ns}$declared"
    thief.ask(table, "declare", {}).raise_for_status()
    assert code(send(thief.server, f"/v1/table/{table}/insert", thief.rows)) == (400, 13)


def test_rows_for_all_bring_no_binding(thief: Thief) -> None:
    table = thief.make()
    path = f"/v1/table/{table}/insert"
    assert code(send(thief.server, path, thief.rows, mode="overwrite")) == (400, 13)
    path = f"/v1/table/{table}/create"
    assert code(send(thief.server, path, thief.rows, mode="overwrite")) == (400, 13)
    assert lance.dataset(thief.location(table)).version == 1


def test_a_binding_inside_a_struct_or_the_schema_is_refused(thief: Thief) -> None:
    inner = pa.field("x", pa.int64(), metadata={"virtual_column": "true"})
    nested = pa.schema([pa.field("s", pa.struct([inner]))])
    about = pa.schema([pa.field("s", pa.int64())], {"penstock.view": "query"})
    for schema, key in ((nested, "virtual_column"), (about, "penstock.view")):
        answer = send(thief.server, f"/v1/table/{thief.ns}$n/create", schema.empty_table())
        assert code(answer) == (400, 13)
        assert f"metadata {key!r}" in answer.json()["error"]


def by_insert(thief: Thief) -> str:
    table = thief.make()
    send(thief.server, f"/v1/table/{table}/insert", thief.rows).raise_for_status()
    return table


def by_merge(thief: Thief) -> str:
    table = thief.make()
    path = f"/v1/table/{table}/merge_insert"
    how = {"on": "id", "when_matched_update_all": "true", "when_not_matched_insert_all": "true"}
    send(thief.server, path, thief.rows, **how).raise_for_status()
    return table


def by_metadata(thief: Thief) -> str:
    table = thief.make()
    bound = {k.decode(): v.decode() for k, v in thief.schema.field("x").metadata.items()}
    body = {"updates": [{"path": "x", "metadata": bound}]}
    assert code(thief.ask(table, "update_field_metadata", body)) == (400, 13)
    return table


def by_commit(thief: Thief) -> str:
    """Through the catalog, as pylance does: the version is written by the client."""
    table = thief.make()
    client = Client(connect(thief.server), table.split("$"))
    lance.write_dataset(thief.rows, mode="overwrite", **client.target)
    return table


def by_path(thief: Thief) -> str:
    table = thief.make()
    bound = {k.decode(): v.decode() for k, v in thief.schema.field("x").metadata.items()}
    lance.dataset(thief.location(table)).update_field_metadata({"x": bound})
    return table


def by_register(thief: Thief) -> str:
    """A folder that was prepared."""
    name = f"prepared{uuid.uuid4().hex[:6]}"
    lake = thief.server.lake
    lance.write_dataset(thief.rows, str(lake / name), enable_stable_row_ids=True)
    table = f"{thief.ns}${name}"
    thief.ask(table, "register", {"location": name}).raise_for_status()
    return table


WAYS = (by_insert, by_merge, by_metadata, by_commit, by_path, by_register)


@pytest.mark.parametrize("way", WAYS)
def test_a_binding_that_nobody_declared_is_none(thief: Thief, way: Callable[[Thief], str]) -> None:
    table = way(thief)
    for operation in ("backfill_column", "preview_column", "explain_backfill"):
        answer = thief.ask(table, operation, {"column": "x"})
        assert answer.status_code == 400, (operation, answer.text)
    assert "penstock.columns" not in thief.ask(table, "describe", {}).json()["properties"]
    assert not (Path(thief.location(table)) / "_udfs" / thief.sha256).exists()


@pytest.mark.parametrize("way", [by_commit, by_path, by_register])
def test_it_is_none_after_a_restore_or_on_a_branch(
    thief: Thief, way: Callable[[Thief], str]
) -> None:
    table = way(thief)
    version = lance.dataset(thief.location(table)).version
    thief.ask(table, "restore", {"version": version}).raise_for_status()
    thief.ask(table, "branches/create", {"name": "dev"}).raise_for_status()
    for branch in ("main", "dev"):
        body = {"column": "x", "branch": branch}
        assert code(thief.ask(table, "backfill_column", body)) == (400, 19)
        found = thief.ask(table, "describe", {"branch": branch}).json()["properties"]
        assert "penstock.columns" not in found


def test_it_becomes_one_by_bringing_the_code(gate: GuardedServer, thief: Thief) -> None:
    table = by_commit(thief)
    assert alter_function(thief.server, table, "x", udf_version="2").status_code == 403
    gate.grant(thief.person.name, "functions", "namespace", thief.ns)
    refused = alter_function(thief.server, table, "x", udf_version="2")
    assert code(refused) == (400, 19)
    assert "alter the column with the function's udf" in refused.json()["detail"]
    own = virtual_column(OTHER, ["id"], {"x": "int64"})["udf"]
    alter_function(thief.server, table, "x", udf=own, udf_version="2").raise_for_status()
    assert thief.ask(table, "backfill_column", {"column": "x"}).status_code == 202
    assert not (Path(thief.location(table)) / "_udfs" / thief.sha256).exists()


def test_an_environment_comes_with_its_own_declaration(gate: GuardedServer, thief: Thief) -> None:
    gate.grant(thief.person.name, "functions", "namespace", thief.ns)
    table = by_commit(thief)
    dataset = lance.dataset(thief.location(table))
    dataset.update_field_metadata({"x": {"virtual_column.manifest": '{"pip": ["evil"]}'}})
    own = virtual_column(OTHER, ["id"], {"x": "int64"})["udf"]
    alter_function(thief.server, table, "x", udf=own).raise_for_status()
    answer = thief.ask(table, "backfill_column", {"column": "x"})
    assert code(answer) == (400, 19)
    assert "manifest" in answer.json()["error"]
    alter_function(thief.server, table, "x", manifest='{"pip": ["own"]}').raise_for_status()
    assert thief.ask(table, "backfill_column", {"column": "x"}).status_code == 202


def test_the_schemas_own_metadata_stays_the_servers(thief: Thief) -> None:
    table = thief.make()
    assert code(thief.ask(table, "schema_metadata/update", {"penstock.view": "query"})) == (400, 13)
    assert thief.ask(table, "schema_metadata/update", {"a": "1"}).json() == {"a": "1"}


def test_an_expression_that_was_bound_elsewhere_is_checked(thief: Thief) -> None:
    table = thief.make()
    sql = " + ".join(["id"] * 1000)
    bound: dict[str, str | None] = {"computed_column": "true"}
    bound["computed_column.expression"] = sql
    lance.dataset(thief.location(table)).update_field_metadata({"x": bound})
    answer = thief.ask(table, "backfill_column", {"column": "x"})
    assert code(answer) == (400, 13)
    assert "too many operators" in answer.json()["error"]


@pytest.mark.parametrize("key", ["penstock.columns", "penstock.kind"])
def test_a_tables_properties_do_not_tell_of_bindings(thief: Thief, key: str) -> None:
    body = {"properties": {key: "{}"}}
    assert code(thief.ask(f"{thief.ns}$p", "declare", body)) == (400, 13)
    headers = {"x-lance-table-properties": json.dumps(body["properties"])}
    path = f"/v1/table/{thief.ns}$p/create"
    assert code(send(thief.server, path, ROWS, headers)) == (400, 13)
    assert not thief.person.sees(f"{thief.ns}$p")


def test_a_declared_function_stays_one_whatever_becomes_of_its_table(
    admin: Server, ns: str
) -> None:
    table = declare(admin, ns)

    def backfill(column: str = "x", branch: str = "main") -> int:
        body = {"column": column, "branch": branch}
        return admin.post(f"/v1/table/{table}/backfill_column", body).status_code

    def ask(operation: str, body: Any) -> Any:
        return admin.post(f"/v1/table/{table}/{operation}", body).raise_for_status()

    assert backfill() == 202
    udf = virtual_column(OTHER, ["id"], {"x": "int64"})["udf"]
    alter_function(admin, table, "x", udf=udf, udf_version="2").raise_for_status()
    ask("alter_columns", {"alterations": [{"path": "x", "rename": "y"}]})
    assert backfill("y") == 202
    ask("restore", {"version": 2})
    ask("branches/create", {"name": "dev"})
    location = ask("describe", {}).json()["location"]
    lance.dataset(location).optimize.compact_files()
    read = lance.dataset(location).to_table()
    send(admin, f"/v1/table/{table}/insert", read).raise_for_status()
    send(admin, f"/v1/table/{table}/insert", read, mode="overwrite").raise_for_status()
    assert (backfill(), backfill("x", "dev")) == (202, 202)
