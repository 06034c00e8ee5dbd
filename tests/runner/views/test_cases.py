"""Materialized views on a real server and a real runner: what is asked for less often."""

import json
from pathlib import Path
from typing import Any

import httpx
import lancedb
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, send
from tests.harness.data.tables import new_name
from tests.harness.processes.runners import FINISHED, RunnerProcess, Team, wait
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.runner_views import (
    RunnerView,
    Source,
    make_source,
    make_view,
    make_words,
    recording,
    split,
    udtf_spec,
    words_of,
)
from tests.runner.views.test_views import make_counts, sizes_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

COLUMNS = ("id", "title", "__child_index", "word")


@pytest.mark.parametrize("happens", ["restore", "overwrite", "compact", "elsewhere"])
def test_a_chunker_follows_what_happens_to_its_table(
    server: Server, runner: RunnerProcess, tmp_path: Path, happens: str
) -> None:
    source = make_source(server, range(12))
    view = make_words(source, tmp_path / "calls")
    view.refresh()
    version = source.open().version
    source.update("text", "'a b'", "id = 3")
    source.append(12)
    view.refresh()
    view.take_calls()
    calls = {"restore": 1, "overwrite": 3, "compact": 0, "elsewhere": 0}[happens]
    if happens == "restore":
        source.restore(version)
    elif happens == "overwrite":
        source.overwrite(3, 4, 5, word="x")
    elif happens == "compact":
        source.delete("id = 6")
        source.compact()
    else:
        source.update("kind", "'k9'", "id < 5")
    found = view.refresh()
    assert view.show(*COLUMNS) == words_of(source)
    assert (len(view.take_calls()), found["function_calls"]) == (calls, str(calls))


@pytest.mark.parametrize("happens", ["restore", "overwrite", "compact"])
def test_a_udtf_follows_what_happens_to_its_table(
    server: Server, runner: RunnerProcess, tmp_path: Path, happens: str
) -> None:
    source = make_source(server, range(12))
    view = make_counts(source, tmp_path / "calls")
    view.refresh()
    version = source.open().version
    source.update("text", "'a b'", "id = 3")
    view.refresh()
    calls = {"restore": 1, "overwrite": 3, "compact": 0}[happens]
    if happens == "restore":
        source.restore(version)
    elif happens == "overwrite":
        source.overwrite(3, 4, 5, word="x")
    else:
        source.compact()
    found = view.refresh()
    assert view.show("kind", "size") == sizes_of(source)
    assert found["function_calls"] == str(calls)


def test_a_view_of_a_view_follows_it(server: Server, runner: RunnerProcess, tmp_path: Path) -> None:
    source = make_source(server, range(9))
    words = make_words(source, tmp_path / "calls")
    words.refresh()
    long = make_view(source, "SELECT id, word FROM words WHERE __child_index > 0", "later")
    long.refresh()

    def expected() -> list[tuple[Any, ...]]:
        return sorted([(id, word) for id, _, place, word in words_of(source) if place], key=repr)

    assert long.show("id", "word") == expected()
    source.update("text", "'a b c'", "id = 0")
    words.refresh()
    assert long.explain()["mode"] == "incremental"
    found = long.refresh()
    assert long.show("id", "word") == expected()
    assert (found["mode"], found["rows_inserted"]) == ("incremental", "2")


def test_a_view_goes_back_in_time(server: Server, runner: RunnerProcess, tmp_path: Path) -> None:
    source = make_source(server, range(9))
    plain = make_view(source, "SELECT id, text FROM t WHERE id < 5")
    words = make_words(source, tmp_path / "calls")
    version = source.open().version
    before = [(row["id"], row["text"]) for row in source.rows() if row["id"] < 5]
    words_before = words_of(source)
    source.update("text", "'changed'", "id IN (1, 7)")
    source.delete("id = 2")
    plain.refresh()
    words.refresh()
    words.take_calls()
    plain.refresh(src_version=version)
    words.refresh(src_version=version)
    assert plain.show("id", "text") == before
    assert words.show(*COLUMNS) == words_before
    assert len(words.take_calls()) == 3
    plain.refresh()
    words.refresh()
    assert words.show(*COLUMNS) == words_of(source)
    assert [id for id, _ in plain.show("id", "text")] == [0, 1, 3, 4]


def test_an_output_limit_is_kept_exactly(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    source = make_source(server, range(9))
    view = make_words(source, tmp_path / "calls")

    def follow(limit: int) -> None:
        view.refresh(output_limit=limit)
        ids = {row["id"]: row["_rowid"] for row in with_row_ids(source)}
        in_order = sorted(words_of(source), key=lambda row: (ids[row[0]], row[2]))
        assert view.show(*COLUMNS) == sorted(in_order[:limit], key=repr)

    follow(7)
    source.delete("id = 1")
    follow(7)
    source.update("text", "'a b c'", "id = 0")
    follow(7)
    follow(3)
    follow(100)


def with_row_ids(source: Source) -> list[dict[str, Any]]:
    return list(source.open().to_table(columns=["id"], with_row_id=True).to_pylist())


def test_a_view_with_data_is_filled_and_follows_by_itself(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    source = make_source(server, range(6))
    view = make_words(source, tmp_path / "calls", with_no_data=False, auto_refresh=True)

    def is_right() -> bool:
        return view.show(*COLUMNS) == words_of(source)

    until(is_right, "it was never filled")
    source.append(6, 7)
    until(is_right, "it did not follow")
    jobs = server.post("/v1/jobs/list", {"target": view.id}).json()["jobs"]
    assert len(jobs) == 2
    assert len(view.take_calls()) == 8


def test_lancedb_creates_opens_and_refreshes_a_view(server: Server, runner: RunnerProcess) -> None:
    name = new_name()
    send(server, f"/v1/table/{name}/create", people(1, 2, 3)).raise_for_status()
    database: Any = lancedb.connect("db://x", api_key="k", host_override=server.url)
    made = database.create_materialized_view(
        f"{name}_view", name, select={"id": "id", "next": "id + 1"}, where="id > 1"
    )
    assert made.name == f"{name}_view"
    view = database.open_materialized_view(f"{name}_view")
    until(lambda: view.table.count_rows() == 2, "it was never filled")
    send(server, f"/v1/table/{name}/insert", people(4, 5)).raise_for_status()
    done = view.refresh_async().wait()
    assert (done.mode, done.rows_written) == ("incremental", 2)
    rows = database.open_table(f"{name}_view").search().limit(10).to_list()
    assert sorted((row["id"], row["next"]) for row in rows) == [(2, 3), (3, 4), (4, 5), (5, 6)]
    assert view.refresh_async().wait().mode == "no_op"


def test_two_refreshes_of_a_view_do_not_interleave(
    server: Server, team: Team, pair: list[RunnerProcess], tmp_path: Path
) -> None:
    source = make_source(server, range(12))
    view = make_words(source, tmp_path / "calls")
    first, second = view.request(), view.request(mode="full")
    assert [view.finish(job)["status"] for job in (first, second)] == ["SUCCEEDED"] * 2
    assert view.show(*COLUMNS) == words_of(source)
    assert view.open().count_rows() == len(words_of(source))
    assert len(view.take_calls()) == 24


def test_readers_never_see_half_of_a_refresh(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    source = make_source(server, range(12))
    view: RunnerView = make_words(source, tmp_path / "calls")
    view.refresh()
    before = view.open().count_rows()
    source.append(*range(12, 40))
    after = len(words_of(source))
    job = view.request()
    seen = {before}
    while wait(server, job, lambda _: True)["status"] not in FINISHED:
        answer = server.post(f"/v1/table/{view.id}/count_rows", {})
        seen.add(int(answer.raise_for_status().text))
    assert seen <= {before, after}
    assert view.open().count_rows() == after
    watermark = json.loads(view.ask("describe").json()["properties"]["penstock.watermark"])
    assert watermark == {source.id: source.open().version}


def broken(text: str) -> Any:
    raise ValueError(f"no words in {text!r}")


def test_a_view_is_not_altered_by_a_function_that_fails_on_its_rows(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    source = make_source(server, range(12))
    view = make_words(source, tmp_path / "calls")
    view.refresh()
    view.take_calls()
    before = view.show(*COLUMNS)

    def alter(function: Any) -> httpx.Response:
        made = {"word": pa.string()}
        spec = udtf_spec("chunker", recording(view.log, function), ["text"], made)
        # The runner is warm, and the query one that only Spark computes.
        query = "SELECT id, title, concat_ws('-', text, kind) AS text FROM t"
        body = {"udtf_spec": spec | {"udtf_version": "2"}, "source_query": query}
        return server.post(f"/v1/materialized_view/{view.id}/alter", body)

    refused = alter(broken)
    assert refused.status_code == 400, refused.text
    assert "ValueError: no words in 'w0-0-k0'" in refused.json()["error"]
    assert (view.show(*COLUMNS), view.take_calls()) == (before, ["w0-0-k0"])
    answer = alter(split)
    assert (answer.status_code, answer.json().get("not_previewed")) == (202, None), answer.text
    assert len(view.take_calls()) >= 8
    assert view.finish(answer.json()["job_id"])["status"] == "SUCCEEDED"
    assert ("w0-0-k0",) in view.show("word")
