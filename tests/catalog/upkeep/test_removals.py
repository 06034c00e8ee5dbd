"""Clean-ups over HTTP: old versions go, those that somebody needs stay, whatever dies meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.catalog.upkeep.test_compactions import ask, grow, insert, read
from tests.harness.data.tables import code, get_table, open_by_path
from tests.harness.jobs.fake_runner import Column
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, database_of
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import head, make_view

NOW = {"older_than_seconds": 0}


def clean(server: Server, table: str, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask(server, table, "cleanup", {**NOW, **body})
    return found


def data_files(server: Server, table: str) -> int:
    location = Path(get_table(server, table).location)
    return len(list((location / "data").iterdir()))


def test_old_versions_go_with_the_files_that_only_they_had(server: Server) -> None:
    table = grow(server, 5)
    ask(server, table, "compact")
    before = read(server, table)
    versions = get_table(server, table).listed()
    told = clean(server, table, dry_run=True)
    assert (told["versions_removed"], told["versions_kept"]) == (len(versions) - 1, {"newest": 1})
    assert get_table(server, table).listed() == versions
    done = clean(server, table)
    assert (done["versions_removed"], done["versions_left"]) == (len(versions) - 1, 0)
    assert done["files_removed"] >= 6
    assert done["bytes_removed"] > 0
    assert get_table(server, table).listed() == [done["version"]] == [max(versions)]
    assert (read(server, table), data_files(server, table)) == (before, 1)
    insert(server, table, 99)
    assert len(read(server, table)) == 9
    assert code(server.post(f"/v1/table/{table}/describe", {"version": 2})) == (404, 11)


def test_young_and_newest_versions_stay(server: Server) -> None:
    table = grow(server, 5)
    assert clean(server, table, older_than_seconds=3600)["versions_kept"] == {
        "newest": 1,
        "recent": 5,
    }
    assert clean(server, table, keep_versions=4)["versions_removed"] == 2
    assert get_table(server, table).listed() == [3, 4, 5, 6]


def test_tags_and_branches_keep_their_versions(server: Server) -> None:
    table = grow(server, 5)
    ask(server, table, "tags/create", {"tag": "two", "version": 2})
    ask(server, table, "branches/create", {"name": "dev", "from_version": 3})
    insert(server, table, 70, "dev")
    ask(server, table, "compact")
    done = clean(server, table)
    assert done["versions_kept"] == {"newest": 1, "tag": 1, "branch": 1}
    assert get_table(server, table).listed() == [2, 3, done["version"]]
    dataset = open_by_path(server, table)
    assert dataset.checkout_version(2).count_rows() == 4
    assert [row["id"] for row in read(server, table, "dev")] == [1, 2, 3, 10, 11, 70]
    # The branch has a history of its own.
    assert clean(server, table, branch="dev")["versions_removed"] == 1
    assert len(read(server, table, "dev")) == 6
    ask(server, table, "branches/delete", {"name": "dev"})
    ask(server, table, "tags/delete", {"tag": "two"})
    assert clean(server, table)["versions_removed"] == 2


def test_what_columns_and_their_jobs_need_stays(column: Column) -> None:
    """Without a tag, which anybody may remove, the record alone keeps a version."""
    server, table = column.server, column.table
    for n in range(2):
        insert(server, table, 20 + n)
    old = head(server, table)
    column.request()
    (job,) = column.runner.lease()
    for n in range(3):
        insert(server, table, 30 + n)
    # What was the newest when the job was requested, and all since then.
    kept = clean(server, table)
    assert (kept["versions_kept"], kept["versions_removed"]) == ({"newest": 1, "job": 3}, old - 1)
    mark = {"version": old, "function": None, "branch": ""}
    result = {"version": old, "committed_versions": [], "watermark": mark, "rows_done": 0}
    column.runner.finish(job, result=result).raise_for_status()
    assert clean(server, table)["versions_kept"] == {"newest": 1, "column": 1}
    assert get_table(server, table).listed()[0] == old


def test_what_views_and_their_jobs_need_stays(server: Server, cluster: str) -> None:
    view = make_view(server, cluster)
    view.insert()
    seen = head(server, view.source)
    view.request()
    job = view.lease()
    for _ in range(3):
        view.insert()
    assert clean(server, view.source)["versions_kept"] == {"newest": 1, "job": 3}
    source = job["spec"]["definition"]["sources"][0]["id"]
    mark = {"versions": {source: seen}, "digest": "d", "view_version": head(server, view.id)}
    view.finish(job, watermark=mark)
    assert clean(server, view.source)["versions_kept"] == {"newest": 1, "view": 1}
    assert get_table(server, view.source).listed()[0] == seen


def test_a_version_that_is_removed_is_neither_restored_nor_tagged(server: Server) -> None:
    """At the same time: whoever is first decides, and the table stays whole."""
    for _ in range(5):
        table = grow(server, 4)
        ask(server, table, "compact")
        with ThreadPoolExecutor(4) as pool:
            cleaning = pool.submit(clean, server, table)
            restored = pool.submit(server.post, f"/v1/table/{table}/restore", {"version": 2})
            tagged = pool.submit(
                server.post, f"/v1/table/{table}/tags/create", {"tag": "t", "version": 3}
            )
            made = pool.submit(
                server.post,
                f"/v1/table/{table}/branches/create",
                {"name": "b", "from_version": 4},
            )
            cleaning.exception()
            assert restored.result().status_code in (200, 404, 409)
        dataset = open_by_path(server, table)
        assert dataset.to_table().num_rows == (4 if restored.result().is_success else 7)
        if tagged.result().is_success:
            assert dataset.checkout_version("t").to_table().num_rows == 5
            assert 3 in get_table(server, table).listed()
        if made.result().is_success:
            assert open_by_path(server, table, "b").to_table().num_rows == 6


@pytest.mark.parametrize("database", EITHER, indirect=True)
@pytest.mark.parametrize("point", ["versions forgotten", "versions removed"])
def test_a_server_that_dies_leaves_what_the_next_clean_up_finds(
    database: str, point: str, tmp_path: Path
) -> None:
    with servers.running(tmp_path, database=database) as server:
        table = grow(server, 4)
        ask(server, table, "compact")
        before = read(server, table)
    environ = {"PENSTOCK_CRASH_AT": point}
    dying = servers.start(tmp_path, database=database, environ=environ)
    with pytest.raises(httpx.HTTPError):
        dying.post(f"/v1/table/{table}/cleanup", NOW)
    dying.process.wait(60)
    with servers.running(tmp_path, database=database) as server:
        assert read(server, table) == before
        clean(server, table)
        assert (len(get_table(server, table).listed()), data_files(server, table)) == (1, 1)
        assert read(server, table) == before
        insert(server, table, 50)


def test_what_cannot_be_right_is_refused(server: Server) -> None:
    table = grow(server, 1)
    for body in ({"older_than_seconds": -1}, {"keep_versions": 0}, {"dry_run": "yes"}):
        assert code(server.post(f"/v1/table/{table}/cleanup", body)) == (400, 13)
    assert code(server.post(f"/v1/table/{table}/cleanup", {"branch": "none"})) == (404, 22)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    return database_of(request)
