"""Views and what they read: what may not be written, and what may not be dropped alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.harness.clients.pylance import connect
from tests.harness.data.arrow import send
from tests.harness.data.tables import code, open_by_path
from tests.harness.jobs.fake_runner import TEXTS
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, ask_create, commit_rows, head, make_view, tag_of

NEW = pa.table({"__source_row_id": pa.array([9], pa.int64()), "id": [9], "text": ["x"]})


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    return make_view(server, cluster)


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("insert", NEW),
        ("insert?mode=overwrite", NEW),
        ("merge_insert?on=id&when_not_matched_insert_all=true", NEW),
        ("update", {"updates": [["id", "1"]]}),
        ("delete", {"predicate": "true"}),
        ("restore", {"version": 1}),
    ],
)
def test_rows_of_a_view_are_not_written(view: View, operation: str, body: Any) -> None:
    path = f"/v1/table/{view.id}/{operation}"
    is_rows = isinstance(body, pa.Table)
    answer = send(view.server, path, body) if is_rows else view.server.post(path, body)
    assert code(answer) == (400, 19)
    assert "refresh" in answer.json()["detail"]
    assert view.ask_table("version/list").json()["versions"][-1]["version"] == 1


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("drop_columns", {"columns": ["n", "text"]}),
        ("drop_columns", {"columns": ["__source_row_id"]}),
        ("alter_columns", {"alterations": [{"path": "`TEXT`", "rename": "words"}]}),
        ("alter_columns", {"alterations": [{"path": "id", "nullable": False}]}),
    ],
)
def test_columns_that_the_query_gives_stay_as_they_are(
    view: View, operation: str, body: Any
) -> None:
    extra = {"new_columns": [{"name": "n", "expression": "id + 1"}]}
    view.ask_table("add_columns", extra).raise_for_status()
    answer = view.ask_table(operation, body)
    assert code(answer) == (400, 19)
    assert "refresh" in answer.json()["detail"]
    assert head(view.server, view.id) == 2
    rename = {"alterations": [{"path": "n", "rename": "m"}]}
    view.ask_table("alter_columns", rename).raise_for_status()
    view.ask_table("drop_columns", {"columns": ["m"]}).raise_for_status()


def target(view: View) -> dict[str, Any]:
    return {
        "namespace_client": connect(view.server),
        "table_id": view.id.split("$"),
    }


def commit(view: View, **properties: str) -> lance.LanceDataset:
    return commit_rows(target(view)["namespace_client"], view.id, **properties)


@contextmanager
def refused(view: View) -> Iterator[None]:
    """Nothing is committed in here; pylance does not pass on what the server said."""
    before = head(view.server, view.id)
    with pytest.raises(OSError, match=f"version {before + 1}"):
        yield
    assert head(view.server, view.id) == before


def test_other_clients_commit_no_rows_but_indexes_and_compactions(view: View) -> None:
    with refused(view):
        commit(view)
    with refused(view):
        lance.dataset(**target(view)).delete("true")
    view.request()
    job = view.lease()
    for other in ({"penstock.attempt": "7"}, {}):
        with refused(view):
            commit(view, **{"penstock.job": job["id"], **other})
    mine = {"penstock.job": job["id"], "penstock.attempt": "1"}
    assert commit(view, **mine).count_rows() == 1
    commit(view, **mine)
    view.finish(job)
    with refused(view):
        commit(view, **mine)
    dataset = lance.dataset(**target(view))
    dataset.optimize.compact_files()
    dataset.create_scalar_index("id", "BTREE")
    assert lance.dataset(**target(view)).list_indices()
    made = view.ask_table("add_columns", {"new_columns": [{"name": "n", "expression": "id + 1"}]})
    assert made.status_code == 200
    for operation, body in (
        ("tags/create", {"tag": "x", "version": 1}),
        ("branches/create", {"name": "dev"}),
        ("create_scalar_index", {"column": "id", "index_type": "BTREE", "name": "i2"}),
    ):
        view.ask_table(operation, body).raise_for_status()


def test_a_refresh_is_committed_only_on_the_version_that_it_was_made_for(view: View) -> None:
    view.request()
    mine = {"penstock.job": view.lease()["id"], "penstock.attempt": "1", "penstock.base": "1"}
    assert commit(view, **mine).version == 2
    with refused(view):
        commit(view, **mine)


def test_a_table_that_views_read_is_dropped_only_with_them(view: View) -> None:
    server, namespace = view.server, view.namespace
    ask_create(server, f"{namespace}$w", source_query="SELECT id FROM v").raise_for_status()
    for operation in ("drop", "deregister"):
        answer = server.post(f"/v1/table/{view.source}/{operation}")
        assert code(answer) == (409, 19)
        assert view.id in answer.json()["error"]
        assert f"{namespace}$w" in answer.json()["error"]
        assert "?cascade=true" in answer.json()["detail"]
    assert code(view.ask("drop")) == (409, 19)
    refused = server.post(f"/v1/table/{view.source}/drop?cascade=maybe")
    assert code(refused) == (400, 13)
    waiting = view.request()
    server.post(f"/v1/table/{view.source}/drop?cascade=true").raise_for_status()
    assert server.get(f"/v1/namespace/{namespace}/table/list").json()["tables"] == []
    found = server.post(f"/v1/transaction/{waiting}/describe").json()
    assert found["status"] == "CANCELED"


def test_a_view_alone_is_dropped_like_a_table(view: View) -> None:
    view.ask_table("drop").raise_for_status()
    view.server.post(f"/v1/table/{view.source}/drop").raise_for_status()


def test_a_batch_takes_no_table_from_its_views(view: View) -> None:
    operations = [{"deregister_table": {"id": view.source.split("$")}}]
    answer = view.server.post("/v1/table/batch-commit", {"operations": operations})
    assert (code(answer), answer.json()["detail"]) == ((409, 19), "drop these first")
    both = [{"deregister_table": {"id": id.split("$")}} for id in (view.id, view.source)]
    view.server.post("/v1/table/batch-commit", {"operations": both}).raise_for_status()
    assert view.server.get(f"/v1/namespace/{view.namespace}/table/list").json()["tables"] == []


def test_a_registration_replaces_neither_a_view_nor_what_it_reads(view: View) -> None:
    server = view.server
    send(server, f"/v1/table/{view.namespace}$other/create", TEXTS).raise_for_status()
    other = server.post(f"/v1/table/{view.namespace}$other/deregister").json()["location"]
    body = {"location": other, "mode": "overwrite"}
    assert code(server.post(f"/v1/table/{view.id}/register", body)) == (400, 19)
    answer = server.post(f"/v1/table/{view.source}/register", body)
    assert (code(answer), answer.json()["detail"]) == ((409, 19), "drop these first")


def test_a_namespace_goes_with_the_views_elsewhere_that_read_it(view: View) -> None:
    server, namespace = view.server, view.namespace
    elsewhere = f"{namespace}x"
    server.post(f"/v1/namespace/{elsewhere}/create").raise_for_status()
    made = ask_create(server, f"{elsewhere}$far", source_query=f"SELECT id FROM {namespace}.t")
    assert made.status_code == 201, made.text
    path, body = f"/v1/namespace/{namespace}/drop", {"behavior": "Cascade"}
    answer = server.post(path, body)
    assert code(answer) == (409, 19)
    assert f"{elsewhere}$far" in answer.json()["error"]
    overwrite = server.post(f"/v1/namespace/{namespace}/create", {"mode": "Overwrite"})
    assert (code(overwrite), overwrite.json()["detail"]) == ((409, 19), "drop these first")
    server.post(f"{path}?cascade=true", body).raise_for_status()
    assert server.get(f"/v1/namespace/{elsewhere}/table/list").json()["tables"] == []


def test_a_namespace_with_all_that_reads_it_is_dropped_at_once(view: View) -> None:
    path = f"/v1/namespace/{view.namespace}/drop"
    view.server.post(path, {"behavior": "Cascade"}).raise_for_status()
    assert code(view.ask("describe")) in ((404, 1), (404, 4))


def test_versions_that_were_kept_for_a_view_are_let_go_with_it(view: View) -> None:
    source = open_by_path(view.server, view.source)
    source.tags.create(tag_of(view), 1)
    source.tags.create("mine", 1)
    view.ask("drop").raise_for_status()
    assert list(source.tags.list()) == ["mine"]
