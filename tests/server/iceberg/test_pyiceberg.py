"""pyiceberg's RestCatalog as it is, and its command line, against a running server."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.cli import console
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view import View
from pyiceberg.view.metadata import SQLViewRepresentation, ViewMetadata, ViewVersion

from tests.harness.clients.iceberg import Iceberg, Namespace
from tests.harness.clients.iceberg_views import local, new_version, sql
from tests.harness.processes.servers import Server

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True), NestedField(2, "data", StringType())
)

Cli = Callable[..., str]


@pytest.fixture(scope="module")
def rest(server: Server) -> Iterator[RestCatalog]:
    """A catalog of pyiceberg, which has asked for a token and for the configuration."""
    opened = RestCatalog(
        "penstock", uri=f"{server.url}/iceberg", warehouse="penstock", credential="id:secret"
    )
    yield opened
    opened.close()


def create(rest: RestCatalog, ns: Namespace, name: str = "view", **more: Any) -> View:
    query = SQLViewRepresentation(type="sql", sql="select 1 as id", dialect="spark")
    fields = {"schema-id": 0, "default-namespace": ns.levels, "representations": [query]}
    made: View = rest.create_view(
        (*ns.levels, name), SCHEMA, ViewVersion.model_validate(fields), **more
    )
    return made


def test_a_view_is_created_loaded_and_dropped(rest: RestCatalog, ns: Namespace) -> None:
    created = create(rest, ns, properties={"owner": "me"})
    loaded = rest.load_view((*ns.levels, "view"))
    assert loaded.metadata == created.metadata
    assert loaded.schema() == SCHEMA
    assert loaded.current_version().representations[0].root.sql == "select 1 as id"
    assert (len(loaded.history()), loaded.properties) == (1, {"owner": "me"})
    assert rest.view_exists((*ns.levels, "view"))
    rest.drop_view((*ns.levels, "view"))
    assert not rest.view_exists((*ns.levels, "view"))


def test_a_view_is_created_where_it_is_wanted(
    rest: RestCatalog, iceberg: Iceberg, ns: Namespace
) -> None:
    location = f"file://{iceberg.server.lake}/{ns.name}"
    assert create(rest, ns, location=f"{location}/").location() == location


def test_a_replaced_view_is_read_with_its_history(rest: RestCatalog, ns: Namespace) -> None:
    uuid = str(create(rest, ns).uuid())
    known = {"type": "assert-view-uuid", "uuid": uuid}
    ns.view().replace(*new_version(sql(text="select 2 as id")), requirements=[known])
    loaded = rest.load_view((*ns.levels, "view"))
    assert [each.version_id for each in loaded.history()] == [1, 2]
    assert loaded.current_version().representations[0].root.sql == "select 2 as id"


def test_views_are_listed_in_pages(server: Server, ns: Namespace) -> None:
    for number in range(5):
        ns.create_view(f"v{number}")
    paged = RestCatalog("paged", uri=f"{server.url}/iceberg", **{"rest-page-size": "2"})
    assert paged.list_views(ns.levels) == [(*ns.levels, f"v{n}") for n in range(5)]
    assert paged.list_tables(ns.levels) == []


def test_a_view_that_is_not_there_is_told_so(rest: RestCatalog, ns: Namespace) -> None:
    with pytest.raises(NoSuchViewError, match="View does not exist"):
        rest.load_view((*ns.levels, "nothing"))
    with pytest.raises(NoSuchViewError):
        rest.drop_view((*ns.levels, "nothing"))
    with pytest.raises(NoSuchNamespaceError):
        rest.list_views("nowhere")
    assert not rest.view_exists(("nowhere", "nothing"))


def test_a_view_that_is_there_is_told_so(rest: RestCatalog, ns: Namespace) -> None:
    create(rest, ns)
    with pytest.raises(ViewAlreadyExistsError, match="View already exists"):
        create(rest, ns)


def test_a_view_is_registered(rest: RestCatalog, ns: Namespace) -> None:
    created = create(rest, ns, properties={"gc.enabled": "false"})
    location = ns.view().load().location
    with pytest.raises(ViewAlreadyExistsError):
        rest.register_view((*ns.levels, "view"), location)
    rest.drop_view((*ns.levels, "view"))
    assert rest.register_view((*ns.levels, "again"), location).metadata == created.metadata


def test_a_view_in_a_deep_namespace_with_odd_names(rest: RestCatalog, ns: Namespace) -> None:
    odd = ns.child("a b").child("c.d/é")
    rest.create_namespace(ns.child("a b").levels)
    rest.create_namespace(odd.levels, {"k": "v"})
    create(rest, odd)
    assert rest.list_views(odd.levels) == [(*odd.levels, "view")]
    assert rest.load_view((*odd.levels, "view")).current_version().default_namespace == odd.levels
    assert rest.list_namespaces(ns.levels) == [ns.child("a b").levels]
    rest.drop_view((*odd.levels, "view"))
    rest.drop_namespace(odd.levels)


def test_namespaces_come_change_and_go(rest: RestCatalog, ns: Namespace) -> None:
    child = (*ns.levels, "child")
    rest.create_namespace(child, {"a": "1", "b": "2"})
    with pytest.raises(NamespaceAlreadyExistsError):
        rest.create_namespace(child)
    summary = rest.update_namespace_properties(child, {"a", "x"}, {"c": "3"})
    assert (summary.removed, summary.updated, summary.missing) == (["a"], ["c"], ["x"])
    found = rest.load_namespace_properties(child)
    assert {k: v for k, v in found.items() if k != "location"} == {"b": "2", "c": "3"}
    assert rest.list_namespaces(ns.levels) == [child]
    with pytest.raises(NamespaceNotEmptyError):
        rest.drop_namespace(ns.levels)
    rest.drop_namespace(child)
    assert not rest.namespace_exists(child)
    with pytest.raises(NoSuchNamespaceError):
        rest.drop_namespace(child)


def test_tables_are_not_there(rest: RestCatalog, ns: Namespace) -> None:
    create(rest, ns)
    for name in ("view", "nothing"):
        assert not rest.table_exists((*ns.levels, name))
        with pytest.raises(NoSuchTableError):
            rest.load_table((*ns.levels, name))
    assert rest.list_tables(ns.levels) == []


def test_a_view_is_no_table(rest: RestCatalog, ns: Namespace) -> None:
    create(rest, ns)
    with pytest.raises(TableAlreadyExistsError, match="View with same name already exists"):
        rest.create_table((*ns.levels, "view"), SCHEMA)
    with pytest.raises(NoSuchTableError, match="Table does not exist"):
        rest.drop_table((*ns.levels, "view"))


def test_an_unknown_warehouse_is_refused(server: Server) -> None:
    with pytest.raises(Exception, match="Warehouse does not exist: elsewhere"):
        RestCatalog("x", uri=f"{server.url}/iceberg", warehouse="elsewhere")


def test_the_metadata_file_is_one_that_pyiceberg_reads(rest: RestCatalog, ns: Namespace) -> None:
    created = create(rest, ns)
    raw = gzip.decompress(local(ns.view().load().location).read_bytes())
    assert ViewMetadata.model_validate_json(raw) == created.metadata


@pytest.fixture
def cli(server: Server, request: pytest.FixtureRequest) -> Cli:
    """The `pyiceberg` command, run in this process: to start it takes a second each time."""
    if "postgresql" in request.node.name:
        pytest.skip("one database is enough for the command")

    def run(*arguments: str, fails: bool = False) -> str:
        line = ["--uri", f"{server.url}/iceberg", "--output", "json", *arguments]
        done = CliRunner().invoke(console.run, line)
        assert (done.exit_code != 0) == fails, done.output
        return done.output

    return run


def test_the_command_starts_and_finds_the_catalog(cli: Cli, server: Server) -> None:
    command = str(Path(sys.executable).with_name("pyiceberg"))
    line = [command, "--uri", f"{server.url}/iceberg", "--output", "json", "list"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=110, cwd=server.data)
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), list)


def test_the_command_lists_namespaces(cli: Cli, ns: Namespace) -> None:
    ns.child("inner").create().ok()
    assert ns.name in json.loads(cli("list"))
    assert json.loads(cli("list", ns.name)) == [f"{ns.name}.inner"]


def test_the_command_makes_describes_and_drops_a_namespace(cli: Cli, ns: Namespace) -> None:
    child = f"{ns.name}.inner"
    cli("create", "namespace", child)
    cli("properties", "set", "namespace", child, "owner", "me")
    assert json.loads(cli("describe", child))["owner"] == "me"
    assert json.loads(cli("properties", "get", "namespace", child, "owner")) == "me"
    cli("properties", "remove", "namespace", child, "owner")
    assert ns.child("inner").properties() == {}
    cli("drop", "namespace", child)
    assert not ns.child("inner").exists()


def test_the_command_tells_what_is_not_there(cli: Cli, ns: Namespace) -> None:
    ns.create_view()
    assert "does not exist" in cli("describe", f"{ns.name}.view", fails=True)
    found = cli("describe", "--entity", "table", f"{ns.name}.view", fails=True)
    assert "Table does not exist" in found
    assert "not empty" in cli("drop", "namespace", ns.name, fails=True)
