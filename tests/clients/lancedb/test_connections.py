"""lancedb's remote connection: names, namespaces, how tables are made, and what goes wrong."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import lancedb
import pytest
from lancedb.integrations.pyarrow import PyarrowDatasetAdapter
from lancedb.permutation import Permutation, permutation_builder
from lancedb.remote import ClientConfig, RetryConfig, TimeoutConfig
from lancedb.remote.errors import HttpError

from tests.harness.clients.lancedb_modes import SYNC, Lake, covers, some_rows
from tests.harness.data.tables import new_name
from tests.harness.processes.servers import Server


def names(lake: Lake, namespace: str) -> list[str]:
    return list(lake.done(lake.database.list_tables(namespace_path=[namespace])).tables)


@pytest.fixture
def space(lake: Lake) -> str:
    """A namespace that the client made."""
    name = new_name("space")
    lake.done(lake.database.create_namespace([name]))
    return name


@covers("connection", "create_namespace", "list_namespaces", "describe_namespace")
@covers("connection", "drop_namespace")
def test_namespaces_come_and_go(lake: Lake, space: str) -> None:
    database = lake.database
    lake.done(database.create_namespace([space, "sub"], properties={"a": "b"}))
    assert list(lake.done(database.list_namespaces([space])).namespaces) == ["sub"]
    assert lake.done(database.describe_namespace([space, "sub"])).properties == {"a": "b"}
    lake.done(database.drop_namespace([space, "sub"]))
    assert list(lake.done(database.list_namespaces([space])).namespaces) == []


@covers("connection", "create_table", "open_table", "list_tables", "table_names", "rename_table")
@covers("connection", "drop_table", "drop_table_async")
def test_tables_come_and_go(lake: Lake, space: str) -> None:
    database, at = lake.database, {"namespace_path": [space]}
    for name in ("a", "b", "c"):
        lake.done(database.create_table(name, some_rows(1), **at))
    assert lake.done(database.table_names(**at)) == names(lake, space) == ["a", "b", "c"]
    places = {"cur_namespace_path": [space], "new_namespace_path": [space]}
    lake.done(database.rename_table("a", "z", **places))
    assert lake.done(lake.done(database.open_table("z", **at)).count_rows()) == 1
    lake.done(database.drop_table("b", **at))
    lake.done(lake.done(database.drop_table_async("c", **at)).wait())
    assert names(lake, space) == ["z"]


def test_tables_are_made_in_every_mode(lake: Lake, space: str) -> None:
    make, at = lake.database.create_table, {"namespace_path": [space]}
    empty = lake.done(make("t", schema=some_rows(1).schema, **at))
    assert lake.done(empty.count_rows()) == 0
    lake.done(make("t", some_rows(1, 2), mode="overwrite", **at))
    kept = lake.done(make("t", some_rows(1, 2, 3), exist_ok=True, **at))
    assert lake.done(kept.count_rows()) == 2
    with pytest.raises(Exception, match="exists"):
        lake.done(make("t", some_rows(1), **at))


def test_an_old_version_or_a_branch_is_opened(lake: Lake, table: Any) -> None:
    lake.done(table.add(some_rows(4)))
    lake.done(table.branches.create("dev", from_version=1))
    for choice in ({"version": 1}, {"branch": "dev"}):
        opened = lake.done(lake.database.open_table(table.name, **choice))
        assert lake.done(opened.count_rows()) == 3


@covers("connection", "clone_table")
def test_a_table_is_cloned(lake: Lake, table: Any) -> None:
    lake.done(table.add(some_rows(4)))
    clone, name = lake.database.clone_table, new_name("copy")
    made = lake.done(clone(name, lake.get(table, "uri"), source_version=1))
    lake.done(made.delete("id = 1"))
    counts = [lake.done(each.count_rows()) for each in (made, table)]
    assert counts == [2, 4]


@covers("connection", "list_jobs", "open_job", "cancel_job")
def test_jobs_are_listed_opened_and_canceled(lake: Lake, table: Any) -> None:
    lake.done(table.add_columns(computed={"twice": "id * 2"}))
    id = lake.done(table.refresh_column_async("twice")).id
    assert id in {job.job_id for job in lake.done(lake.database.list_jobs())}
    job = lake.done(lake.database.open_job(id))
    assert job.id == id
    assert lake.done(lake.database.cancel_job(id))


@covers("connection", "pause_job", "resume_job")
def test_jobs_are_paused_and_resumed(lake: Lake, table: Any) -> None:
    lake.done(table.add_columns(computed={"twice": "id * 2"}))
    database, job = lake.database, lake.done(table.refresh_column_async("twice"))
    assert lake.done(database.pause_job(job.id)) == "pausing"
    assert lake.done(database.pause_job(job.id)) == "already_paused"
    assert lake.done(job.status()) == "PAUSED"
    states = {each.job_id: each.state for each in lake.done(database.list_jobs())}
    assert states[job.id] == "paused"
    assert lake.done(database.resume_job(job.id)) == "resumed"
    assert lake.done(database.resume_job(job.id)) == "not_paused"
    assert lake.done(job.status()) == "running"
    lake.done(job.cancel())


@covers("connection", "create_materialized_view", "open_materialized_view")
@covers("connection", "list_materialized_views", "drop_materialized_view")
@covers("connection", "create_materialized_view_async", "drop_materialized_view_async")
def test_views_come_and_go(lake: Lake, table: Any) -> None:
    database, first, second = lake.database, new_name("view"), new_name("view")
    make = database.create_materialized_view
    lake.done(make(first, table.name, select=["id"], where="id > 1", with_no_data=True))
    assert lake.done(database.open_materialized_view(first)).name == first
    job = database.create_materialized_view_async(second, table.name, limit=2)
    lake.done(database.cancel_job(lake.done(job).id))
    assert {first, second} <= set(lake.done(database.list_materialized_views()))
    lake.done(database.drop_materialized_view(first))
    lake.done(lake.done(database.drop_materialized_view_async(second)).wait())
    assert not {first, second} & set(lake.done(database.list_materialized_views()))


@covers("connection", "namespace_client", "close")
def test_a_connection_knows_where_it_leads(lake: Lake, server: Server, table: Any) -> None:
    client = lake.done(lake.database.namespace_client())
    assert server.url in repr(client)
    connect: Any = lancedb.connect if lake.mode == SYNC else lancedb.connect_async
    other = lake.done(connect("db://x", api_key="k", host_override=server.url))
    lake.done(other.close())


def test_what_is_missing_is_named(lake: Lake, table: Any) -> None:
    with pytest.raises(ValueError, match="'none' was not found"):
        lake.done(lake.database.open_table("none"))
    missing: list[Callable[[], Any]] = [
        lambda: table.count_rows("nothing = 1"),
        lambda: table.delete("nothing = 1"),
        lambda: lake.query(table).where("nothing = 1").to_list(),
        lambda: lake.query(table).select(["nothing"]).to_list(),
        lambda: table.drop_columns(["nothing"]),
        lambda: table.tags.get_version("nothing"),
    ]
    for call in missing:
        with pytest.raises(HttpError, match="nothing"):
            lake.done(call())
    with pytest.raises(ValueError, match="version: 99"):
        lake.done(table.checkout(99))
    with pytest.raises(ValueError, match="branch: nothing"):
        lake.done(table.branches.checkout("nothing"))
    with pytest.raises(RuntimeError, match="'nothing' was not found"):
        lake.done(table.drop_index("nothing"))


def test_what_cannot_be_is_the_clients_error(lake: Lake, table: Any) -> None:
    wrong: list[Callable[[], Any]] = [
        lambda: lake.done(table.search([1.0, 2.0])).to_list(),
        lambda: table.count_rows("id >"),
        lambda: table.tags.create("a..b", 1),
        lambda: lake.done(table.search("words", query_type="fts")).to_list(),
    ]
    for call in wrong:
        with pytest.raises((HttpError, ValueError)) as caught:
            lake.done(call())
        assert getattr(caught.value, "status_code", 400) == 400


def test_permutations_are_made_of_remote_tables_which_can_be_pickled(server: Server) -> None:
    database = lancedb.connect("db://x", api_key="k", host_override=server.url)
    table = database.create_table(new_name(), some_rows(1, 2, 3, 4))
    assert Permutation.identity(table)[0][0]["id"] == 1
    shuffled = permutation_builder(table).split_random(ratios=[0.5, 0.5], seed=1).shuffle(seed=2)
    order = shuffled.execute()
    parts = [Permutation.from_tables(table, order, split) for split in (0, 1)]
    seen = [row["id"] for part in parts for n in range(len(part)) for row in part[n]]
    assert sorted(seen) == [1, 2, 3, 4]

    assert pickle.loads(pickle.dumps(table)).count_rows() == 4


def test_a_remote_table_is_a_dataset_of_pyarrow(server: Server) -> None:
    database = lancedb.connect("db://x", api_key="k", host_override=server.url)
    dataset = PyarrowDatasetAdapter(database.create_table(new_name(), some_rows(1, 2, 3)))
    assert (dataset.count_rows(), dataset.head(1)["id"].to_pylist()) == (3, [1])
    assert dataset.to_table()["id"].to_pylist() == [1, 2, 3]
    assert dataset.schema == some_rows(1).schema


def test_what_the_client_measures_is_no_remote_connection(server: Server) -> None:
    # What its bridge to OpenTelemetry reads; in a process of its own, as there is one recorder.
    program = (
        "import sys, lancedb\n"
        "from lancedb import _lancedb as inner\n"
        "assert inner.register_lancedb_metrics_recorder()\n"
        "known = {each.name for each in inner.lancedb_metrics_catalog()}\n"
        "assert known and all('object_store' in name for name in known), known\n"
        "db = lancedb.connect('db://x', api_key='k', host_override=sys.argv[1])\n"
        "table = db.create_table(sys.argv[2], [{'id': 1}])\n"
        "assert table.search().to_list() and not inner.snapshot_lancedb_metrics()\n"
    )
    command = [sys.executable, "-c", program, server.url, new_name()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_headers_retries_and_time_limits_are_the_clients(server: Server) -> None:
    config = ClientConfig(
        user_agent="mine/1",
        retry_config=RetryConfig(retries=1),
        timeout_config=TimeoutConfig(),
        extra_headers={"x-request-id": "given"},
    )
    database = lancedb.connect(
        "db://x", api_key="k", host_override=server.url, client_config=config
    )
    assert database.table_names() is not None
