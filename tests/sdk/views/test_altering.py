"""Views altered through the SDK; the test is their runner."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import InvalidFunction, InvalidRequest, TableInUse
from penstock.sdk.views.altering import alteration_body
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes import servers
from tests.harness.processes.servers import Server
from tests.harness.views import server_views
from tests.harness.views.server_views import run_here


@penstock.chunker(outputs={"word": str})
def words(text: str) -> Iterator[dict[str, Any]]:
    for word in text.split():
        yield {"word": word}


@penstock.chunker(outputs={"word": str}, version="2")
def letters(text: str) -> Iterator[dict[str, Any]]:
    for letter in text:
        yield {"word": letter}


@penstock.chunker(outputs={"word": str}, version="3")
def broken(text: str) -> Iterator[dict[str, Any]]:
    raise ValueError("no words")


@penstock.udtf(outputs={"total": int}, inputs=["id"], version="1")
def total(rows: pa.Table) -> pa.Table:
    return pa.table({"total": [sum(rows["id"].to_pylist())]})


@penstock.udtf(outputs={"total": int}, inputs=["id"], version="2")
def other_total(rows: pa.Table) -> pa.Table:
    return pa.table({"total": [-sum(rows["id"].to_pylist())]})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this module's own: no other test's jobs wait in its queue."""
    with servers.running(tmp_path_factory.mktemp("data")) as started:
        yield started


@pytest.fixture(scope="module")
def lake(server: Server) -> Iterator[penstock.Lake]:
    with penstock.connect(server.url) as found:
        yield found


def work(server: Server) -> None:
    """Carry out the next job."""
    (job,) = Runner(server).lease(wait_seconds=20)
    run_here(server, job)


@pytest.fixture
def view(lake: penstock.Lake, space: str, table: penstock.Table, server: Server) -> penstock.View:
    made = lake.create_view(f"{space}.v", "SELECT id FROM docs WHERE id > 1")
    made.refresh(wait=False)
    work(server)
    return made


def test_a_view_is_altered_while_its_caller_waits(view: penstock.View, server: Server) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(view.alter, "SELECT id, text FROM docs")
        work(server)
        job = waiting.result()
    assert job is not None
    assert view.to_arrow().num_rows == 3
    new, old = view.history()
    assert (new.job_id, new.changed, old.version) == (job.id, ["source_query"], 1)
    assert "changed source_query" in str(new)
    assert view.at(new.version - 1).count() == 2


def test_a_plan_tells_what_stays(view: penstock.View, table: penstock.Table) -> None:
    plan = view.explain_alter(table.select("id", "text"))
    assert (plan.mode, plan["rows_staying"], plan.function_calls) == ("incremental", 2, 0)
    assert "stay       2 rows" in str(plan)
    assert "text computed; id kept" in str(plan)
    assert view.explain_alter("SELECT id FROM docs WHERE id > 1").mode == "none"


GROUPED = "SELECT id, max(text) AS text FROM docs GROUP BY id"


@pytest.mark.parametrize(
    ("query", "function", "reason"),
    [
        (None, other_total, "the function is another one"),
        (GROUPED.replace("max", "min"), None, "the query changed"),
        (GROUPED.replace("max", "min"), other_total, "the query changed"),
    ],
)
def test_a_plan_says_what_changed_of_a_function_over_groups(
    lake: penstock.Lake, space: str, table: penstock.Table, query: Any, function: Any, reason: str,
    server: Server,
) -> None:  # fmt: skip
    grouped = lake.create_view(f"{space}.grouped", GROUPED, udtf=total)
    grouped.refresh(wait=False)
    # As a runner with Spark would end it.
    filled = server_views.View(server, f"{space}$docs", f"{space}$grouped", "local")
    job = filled.lease()
    made_by = job["spec"]["definition"]
    versions = {made_by["sources"][0]["id"]: table.version()}
    mark = {"versions": versions, "digest": made_by["digest"], "view_version": 2}
    filled.finish(job, watermark=mark)
    plan = grouped.explain_alter(query, function=function)
    assert plan["reason"].startswith(reason)


def test_a_view_is_replaced_only_if_it_is_another(
    lake: penstock.Lake, view: penstock.View, server: Server
) -> None:
    same = lake.create_view(view.name, "SELECT id FROM docs WHERE id > 1", if_exists="replace")
    assert len(same.history()) == 1
    lake.create_view(view.name, "SELECT id FROM docs", if_exists="replace", wait=False)
    work(server)
    assert view.count() == 3
    with pytest.raises(InvalidRequest, match="kind"):
        lake.create_view(view.name, "SELECT * FROM docs", chunker=words, if_exists="replace")
    with pytest.raises(penstock.errors.TableAlreadyExists):
        lake.create_view(view.name, "SELECT id FROM docs")


def test_settings_need_no_job(view: penstock.View) -> None:
    assert view.alter(target_lag_seconds=60, properties={"team": "search"}) is None
    told = view.describe()["properties"]
    assert (told["penstock.target_lag_seconds"], told["team"]) == ("60", "search")
    assert view.alter(target_lag_seconds=None, properties={"team": None}) is None
    assert "team" not in view.describe()["properties"]
    with pytest.raises(InvalidRequest, match="nothing is to be altered"):
        view.alter()


def test_of_two_alterations_one_wins(view: penstock.View, server: Server) -> None:
    job = view.alter("SELECT id, text FROM docs", wait=False)
    assert job is not None
    with pytest.raises(TableInUse, match=job.id):
        view.alter("SELECT text FROM docs")
    job.cancel()
    assert view.query() == "SELECT id FROM docs WHERE id > 1"


def test_a_chunker_and_its_inherited_columns_are_altered(
    lake: penstock.Lake, space: str, table: penstock.Table, server: Server
) -> None:
    view = lake.create_view(f"{space}.chunks", table.select("text"), chunker=words)
    view.refresh(wait=False)
    work(server)
    view.alter(table.select("id", "text"), inherited=["id"], wait=False)
    work(server)
    assert sorted(view.to_arrow()["id"].to_pylist()) == [1, 2, 3]
    view.add_column("tag", computed="concat('tag of ', word)").backfill("tag", wait=False)
    work(server)
    plan = view.explain_alter(function=letters)
    assert (plan.mode, plan.function_calls, plan["rows_staying"]) == ("incremental", 3, None)
    assert "stay       unknown, because the function decides" in str(plan)
    view.alter(function=letters, preview=False, wait=False)
    work(server)
    assert view.count() == 6
    # Both make `a` of the first row; all else is new.
    assert [tag for tag in view.to_arrow()["tag"].to_pylist() if tag] == ["tag of a"]
    assert view.history()[0].function == "letters@2"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(view.alter, function=broken)
        # The preview.
        work(server)
        with pytest.raises(InvalidRequest, match="ValueError: no words") as refused:
            waiting.result()
        assert "broken" in refused.value.detail
        waiting = pool.submit(view.alter, function=words, wait=False)
        work(server)
        job = waiting.result()
    assert job is not None
    assert (job.not_previewed, view.history()[0].function) == ("", "letters@2")
    job.cancel()
    with pytest.raises(InvalidRequest, match="inherits column title"):
        view.alter(inherited=["title"])
    with pytest.raises((InvalidFunction, InvalidRequest)):
        view.alter(function=len)  # type: ignore[arg-type]


def test_one_inherited_column_may_be_given_by_its_name() -> None:
    for given in ("id", ["id"]):
        body = alteration_body(("v",), None, None, given, None, "spark")
        assert body == {"inherited": ["id"]}
