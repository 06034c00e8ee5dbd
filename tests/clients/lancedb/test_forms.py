"""lancedb's remote client: what only one of its two forms has, its jobs and its views."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from lancedb.index import FTS
from lancedb.pydantic import LanceModel
from lancedb.query import LanceQueryBuilder

from tests.harness.clients.lancedb_modes import (
    ASYNC,
    SYNC,
    Lake,
    covers,
    event_loop,
    some_rows,
)
from tests.harness.data.tables import new_name
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

NEAR_ONE = [1.0, 0.0, 0.0, 0.0]


class Numbered(LanceModel):
    id: int


@pytest.fixture(scope="module")
def forms(server: Server) -> Iterator[dict[str, Lake]]:
    with event_loop() as runner:
        yield {mode: Lake(mode, server.url, runner) for mode in (SYNC, ASYNC)}


@pytest.fixture
def sync(forms: dict[str, Lake]) -> Any:
    """A table of the sync form, with an index of its texts."""
    table = forms[SYNC].database.create_table(new_name(), some_rows(1, 2, 3))
    table.create_index("text", config=FTS(with_position=True))
    return table


@pytest.fixture
def other(forms: dict[str, Lake], sync: Any) -> Any:
    """The same table in the async form."""
    return forms[ASYNC].done(forms[ASYNC].database.open_table(sync.name))


@contextmanager
def failing(server: Server, view: str) -> Iterator[None]:
    """A runner that fails the next refresh of a view."""

    def work() -> None:
        runner = Runner(server)

        def found() -> bool:
            jobs = [job for job in runner.lease(free=64) if view in str(job["spec"])]
            for job in jobs:
                runner.finish(job, "FAILED", error="it rained").raise_for_status()
            return bool(jobs)

        until(found, "there was no refresh")

    thread = Thread(target=work)
    thread.start()
    yield
    thread.join()


def ids(query: Any) -> list[int]:
    return [row["id"] for row in query.to_list()]


@covers("table", "create_scalar_index", "create_fts_index", "optimize", "compact_files")
@covers("table", "cleanup_old_versions")
def test_old_words_still_work(sync: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sync.create_scalar_index("id")
        sync.create_fts_index("text", replace=True)
        for hint in (sync.optimize, sync.compact_files, sync.cleanup_old_versions):
            hint()
    assert {index.index_type for index in sync.list_indices()} == {"BTree", "FTS"}


@covers("plain", "to_df", "create", "use_lsm")
@covers("vector", "metric", "to_df", "create", "use_lsm")
@covers("text", "phrase_query", "to_df", "create", "use_lsm", "to_query_object")
@covers("hybrid", "metric", "vector", "text", "phrase_query", "to_df", "create", "use_lsm")
@covers("take", "use_lsm")
def test_the_builders_of_the_sync_form(sync: Any) -> None:
    assert ids(sync.search(NEAR_ONE).metric("l2").use_lsm(False).limit(1)) == [1]
    assert ids(sync.search("hello number", query_type="fts").phrase_query().limit(1)) == [1]
    assert sync.search("hello", query_type="fts").to_query_object().full_text_query
    both = sync.search(query_type="hybrid").vector(NEAR_ONE).text("hello number")
    assert ids(both.phrase_query().metric("l2").limit(1)) == [1]
    made = LanceQueryBuilder.create(sync, None, "vector", "vector")
    assert len(made.use_lsm(False).to_list()) == 3
    assert sync.take_offsets([0]).use_lsm(False).to_list()[0]["id"] == 1
    assert len(sync.search().to_df()) == 3


@covers("connection", "serialize")
def test_a_connection_becomes_text(forms: dict[str, Lake]) -> None:
    assert "host_override" in forms[SYNC].database.serialize()


@covers("connection", "is_open")
@covers("table", "is_open", "close", "initial_storage_options", "latest_storage_options")
def test_what_is_open_can_be_closed(forms: dict[str, Lake], other: Any) -> None:
    lake = forms[ASYNC]
    assert lake.database.is_open()
    assert lake.done(other.initial_storage_options()) is None
    assert lake.done(other.latest_storage_options()) is None
    assert other.is_open()
    other.close()
    assert not other.is_open()


@covers("table", "query", "vector_search", "to_arrow", "to_pandas", "to_lance")
@covers("plain", "nearest_to", "nearest_to_text", "postfilter", "fast_search")
@covers("vector", "column", "postfilter", "nearest_to_text")
@covers("text", "nearest_to", "postfilter", "get_query", "to_batches")
@covers("hybrid", "postfilter", "fast_search", "column")
@covers("take", "to_pydantic")
def test_the_builders_of_the_async_form(forms: dict[str, Lake], other: Any) -> None:
    done = forms[ASYNC].done
    assert done(other.to_arrow()).num_rows == len(done(other.to_pandas())) == 3
    assert done(other.to_lance()).count_rows() == 3
    near = other.vector_search(NEAR_ONE).column("vector").where("id > 1").postfilter().limit(2)
    assert [row["id"] for row in done(near.to_list())] == [2]
    words = other.query().nearest_to_text("hello")
    assert words.get_query() == "hello"
    assert done(other.query().nearest_to_text("hello").to_batches()) is not None
    late = words.where("id > 1").postfilter().limit(2)
    assert [row["id"] for row in done(late.to_list())] == [3]
    both = other.query().nearest_to_text("hello").nearest_to(NEAR_ONE).column("vector")
    assert done(both.postfilter().limit(1).to_list())[0]["id"] == 1
    again = other.query().nearest_to(NEAR_ONE).nearest_to_text("hello").fast_search().limit(1)
    assert done(again.to_list())[0]["id"] == 1
    rows = other.query().fast_search().postfilter().limit(1)
    assert len(done(rows.to_list())) == 1
    taken = other.take_offsets([0]).select(["id"]).to_pydantic(Numbered)
    assert [one.id for one in done(taken)] == [1]


@covers("table", "replace_field_metadata")
def test_metadata_is_replaced(forms: dict[str, Lake], other: Any) -> None:
    lake = forms[ASYNC]
    lake.done(other.update_field_metadata({"path": "id", "metadata": {"old": "x"}}))
    lake.done(other.replace_field_metadata("id", {"unit": "m"}))
    assert lake.done(other.schema()).field("id").metadata == {b"unit": b"m"}


@covers("table", "blob_columns")
def test_a_table_knows_its_blobs(lake: Lake, table: Any) -> None:
    assert lake.done(table.blob_columns()) == []


@covers("job", "id", "status", "state", "cancel", "refresh", "events", "job_type", "spec")
@covers("job", "creation_ms", "failure", "result")
def test_a_job_tells_of_itself(lake: Lake, table: Any) -> None:
    lake.done(table.add_columns(computed={"twice": "id * 2"}))
    queued = lake.done(table.refresh_column_async("twice"))
    job = lake.done(lake.database.open_job(queued.id))
    lake.done(job.refresh())
    assert job.id == queued.id
    assert lake.done(job.status()) == job.state
    assert job.creation_ms > 0
    assert job.job_type
    assert job.spec is not None
    assert lake.done(job.events()) is not None
    lake.done(job.cancel())
    lake.done(job.refresh())
    assert (job.failure, job.result) == (None, None)


@covers("job", "wait")
@covers("view", "name", "definition", "table", "refresh_async", "refresh")
def test_a_view_is_refreshed(lake: Lake, server: Server, table: Any) -> None:
    name = new_name("view")
    make = lake.database.create_materialized_view(name, table.name, with_no_data=True)
    view = lake.done(make)
    assert view.name == name
    assert table.name in lake.get(view, "definition").query
    assert lake.done(lake.get(view, "table").count_rows()) == 0
    job = lake.done(view.refresh_async())
    leased = next(one for one in Runner(server).lease(free=64) if one["id"] == job.id)
    Runner(server).finish(leased, "FAILED", error="it rained").raise_for_status()
    with pytest.raises(Exception, match="it rained"):
        lake.done(job.wait())
    with failing(server, name), pytest.raises(Exception, match="it rained"):
        lake.done(view.refresh())


# What the client refuses by itself, whatever the server: the form, the object, the method.
REFUSED = [
    (SYNC, "connection", "namespace_exists", (["x"],)),
    (SYNC, "connection", "table_exists", (["x"],)),
    (SYNC, "connection", "drop_all_tables", ()),
    (ASYNC, "connection", "drop_all_tables", ()),
    (ASYNC, "connection", "drop_database", ()),
    (ASYNC, "connection", "get_read_consistency_interval", ()),
    (SYNC, "table", "to_arrow", ()),
    (SYNC, "table", "to_polars", ()),
    (SYNC, "table", "uses_v2_manifest_paths", ()),
    (SYNC, "table", "migrate_v2_manifest_paths", ()),
    (ASYNC, "table", "migrate_manifest_paths_v2", ()),
    (ASYNC, "table", "set_unenforced_primary_key", ("id",)),
    (ASYNC, "table", "fetch_blob_ranges", ("b", [(1, 0, 1)])),
]


def test_what_the_client_refuses_by_itself(forms: dict[str, Lake], sync: Any, other: Any) -> None:
    for mode, kind, name, arguments in REFUSED:
        table = sync if mode == SYNC else other
        thing = table if kind == "table" else forms[mode].database
        with pytest.raises((NotImplementedError, ValueError)):
            forms[mode].done(getattr(thing, name)(*arguments))
