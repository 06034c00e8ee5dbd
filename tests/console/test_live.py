"""Jobs as the console shows them while they run; the test plays their runner, step by step."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import penstock
from tests.harness.clients.browser import Page, broken_rules
from tests.harness.jobs.fake_runner import Column, describe, make_column
from tests.harness.processes import servers
from tests.harness.processes.servers import Server

CLUSTERS = {"PENSTOCK__CLUSTERS": '{"local": {"master": "local[1]"}}'}
ROW = {
    "row_id": 7,
    "fragment": 0,
    "offset": 7,
    "inputs": '{"text": "<b>seven</b>"}',
    "exception": "ValueError",
    "message": "seven is <unlucky>",
    "traceback": "Traceback (most recent call last):\n  in words\nValueError: seven is <unlucky>",
    "tries": 3,
    "at": 1_700_000_000_000,
}


@penstock.udf
def words(text: str) -> int:
    return len(text.split())


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.running(tmp_path_factory.mktemp("data"), environ=CLUSTERS) as found:
        yield found


@pytest.fixture
def column(page: Page, worked: Server) -> Iterator[Column]:
    """A column to fill, on the server that the page shows."""
    page.url = worked.url
    made = make_column(worked, "local")
    yield made
    # What a test left queued would be leased by the next one.
    for job in worked.post("/v1/jobs/list", {"state": "in_progress"}).json()["jobs"]:
        worked.post("/v1/jobs/cancel", {"job_id": job["job_id"]}).raise_for_status()


def progress(done: int, total: int = 1000, **more: Any) -> dict[str, Any]:
    return {"progress": {"rows_total": total, "rows_done": done, "mode": "full", **more}}


def test_a_running_job_is_followed_live_to_its_end(page: Page, column: Column) -> None:
    id = column.request()
    page.open(f"/job/{id}")
    page.see("It waits for a runner")
    [job] = column.runner.lease()
    page.see("running", "h1 ~ .marks .state")
    log = [{"at": 1_700_000_000_000, "level": "info", "text": "computing <i>rows</i>"}]
    column.runner.report(job, **progress(250), logs=log).raise_for_status()
    page.see("250 / 1,000", ".figure")
    page.see("computing <i>rows</i>", ".log > div")
    bar = page.driver.execute_script("return document.querySelector('progress').position")
    assert bar == pytest.approx(0.25)
    pace: dict[str, Any] = {"phase": "computing", "rows_per_second": 12.5, "seconds_left": 40}
    begun = [{"name": name} for name in ("planning", "starting", "computing")]
    told = progress(500, function_calls=400, **pace)
    column.runner.report(job, **told, phases=begun).raise_for_status()
    page.see("50 %", ".figure")
    assert "12.5" in page.see("rows a second", ".figure").text
    assert "40 s" in page.see("left, about", ".figure").text
    page.see("calls made", ".figure")
    page.see("starting Spark", ".phase-label")
    page.see("Now: computing", ".live p")
    assert broken_rules(page) == []
    at_end: dict[str, Any] = {"calls_saved": 100, "phase": None, "seconds_left": None}
    last = progress(1000, function_calls=900, **at_end)
    column.runner.finish(job, result={"version": 3}, **last).raise_for_status()
    page.see("succeeded", ".marks .state")
    page.see("took", ".figure")
    assert "100" in page.see("calls saved", ".figure").text
    page.miss("left, about", ".figure")
    assert page.count(".phases li") == 4
    assert not page.offers("Cancel")


def test_the_overview_and_the_list_have_live_bars(page: Page, column: Column) -> None:
    column.request()
    [job] = column.runner.lease()
    column.runner.report(job, **progress(100)).raise_for_status()
    page.open()
    page.see("10 %", ".running-job")
    page.open("/jobs")
    page.see("10 % of 1,000 rows", "td")
    column.runner.report(job, **progress(900)).raise_for_status()
    page.see("90 % of 1,000 rows", "td")
    column.runner.finish(job, result={"version": 3}).raise_for_status()
    page.see("succeeded", "td .state")


def test_a_job_is_canceled_after_a_question(page: Page, column: Column) -> None:
    id = column.request()
    [job] = column.runner.lease()
    page.open(f"/job/{id}").press("Cancel")
    page.see("What it has not committed", "dialog p")
    page.press("Keep")
    assert not column.runner.report(job).json()["cancel"]
    page.press("Cancel").press("Cancel the job")
    page.see("cancel requested", ".state")
    assert column.runner.report(job).json()["cancel"]
    column.runner.finish(job, "CANCELED").raise_for_status()
    page.see("canceled", ".marks .state")
    assert describe(column.server, id)["status"] == "CANCELED"
    page.press("Request again")
    page.see("It waits for a runner")
    assert page.address() != f"/job/{id}"


def test_a_job_is_paused_and_resumed(page: Page, column: Column) -> None:
    id = column.request()
    page.open(f"/job/{id}").press("Pause")
    page.see("paused", ".marks .state")
    assert column.runner.lease() == []
    page.press("Resume")
    page.see("queued", ".marks .state")
    assert [job["id"] for job in column.runner.lease()] == [id]


def test_rows_that_failed_are_told_with_inputs_and_traceback_and_tried_again(
    page: Page, column: Column
) -> None:
    lake = penstock.connect(column.server.url)
    lake.table(column.table.replace("$", ".")).add_column("words", words)
    column = replace(column, name="words")
    id = column.request()
    [job] = column.runner.lease()
    page.open(f"/job/{id}")
    column.runner.report_errors(job, ROW).raise_for_status()
    column.runner.report(job, **progress(1000, rows_failed=1)).raise_for_status()
    page.see("ValueError seven is <unlucky>", "summary")
    column.runner.finish(job, result={"version": 3}).raise_for_status()
    page.press("row 7")
    assert broken_rules(page) == []
    page.see("<b>seven</b>", "details pre")
    page.see("Traceback (most recent call last)", "details pre")
    page.press("Retry only failed")
    page.see("It waits for a runner")
    again = page.address().removeprefix("/job/")
    assert again != id
    spec = column.server.post("/v1/jobs/describe", {"job_id": again}).json()["spec"]
    assert '"errors_only": true' in str(spec).replace("'", '"').replace("True", "true")


def test_a_failed_job_tells_why(page: Page, column: Column) -> None:
    id = column.request()
    [job] = column.runner.lease()
    error = "column len cannot be computed in fragment 0: <script>x</script>"
    column.runner.finish(job, "FAILED", error=error).raise_for_status()
    page.open(f"/job/{id}")
    page.see(error, "[role=alert]")
    page.open()
    page.see("cannot be computed", ".failed-job")


def test_a_page_goes_on_when_its_server_was_restarted(page: Page, tmp_path: Path) -> None:
    port = str(servers.free_port())
    data = tmp_path / "data"
    with servers.running(data, "--port", port, environ=CLUSTERS) as server:
        page.url = server.url
        column = make_column(server, "local")
        id = column.request()
        [job] = column.runner.lease()
        page.open(f"/job/{id}")
        column.runner.report(job, **progress(100)).raise_for_status()
        page.see("100 / 1,000", ".figure")
        server.kill()
        page.see("The server does not answer", ".banner")
    with servers.running(data, "--port", port, environ=CLUSTERS) as server:
        again = Column(server, column.table, column.name, "local").runner
        again.report(job, **progress(700)).raise_for_status()
        page.see("700 / 1,000", ".figure")
        page.miss("The server does not answer")
        server.kill()
        # A page whose module cannot come now.
        page.press("SQL").see("goes on by itself", "[role=alert]")
    with servers.running(data, "--port", port, environ=CLUSTERS):
        page.see("Statement", "h2")
        page.open("/jobs")
        page.see("70 %", "td")
    page.complaints()


def test_two_tabs_show_the_same_job(page: Page, column: Column) -> None:
    id = column.request()
    page.open(f"/job/{id}")
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    page.open(f"/job/{id}").press("Cancel").press("Cancel the job")
    page.see("canceled", ".marks .state")
    page.driver.close()
    page.driver.switch_to.window(first)
    page.see("canceled", ".marks .state")


def test_a_job_leads_to_its_table_whatever_signs_that_has_in_its_name(
    page: Page, column: Column
) -> None:
    lake = penstock.connect(column.server.url)
    namespace = column.table.partition("$")[0]
    odd = [namespace, "a.b$c"]
    made = lake.create_table(odd, [{"id": 1, "text": "x y"}])
    made.add_column("n", computed="length(text)")
    at = f"/v1/table/{namespace}%1Fa.b%24c/backfill_column?delimiter=%1F"
    id = column.server.post(at, {"column": "n", "where": "id > 0"}).json()["job_id"]
    page.open(f"/job/{id}")
    way = str(page.see("a.b$c", "dd a").get_dom_attribute("href"))
    assert way == f"/console/table/{namespace}/a.b%24c"
    page.press("Cancel").press("Cancel the job").see("canceled", ".marks .state")
    page.press("Request again").see("It waits for a runner")
    again = page.address().removeprefix("/job/")
    spec = column.server.post("/v1/jobs/describe", {"job_id": again}).json()["spec"]
    assert (again != id, spec["table"], spec["where"]) == (True, odd, "id > 0")


def test_backfills_begin_at_the_table(page: Page, column: Column) -> None:
    lake = penstock.connect(column.server.url)
    assert lake.table(column.table.replace("$", ".")).count() == 3
    page.open(f"/table/{column.table.replace('$', '/')}?tab=columns")
    page.see("3 unfilled", ".state")
    page.press("Backfill")
    page.see("3 rows to compute", "dialog")
    page.press("Backfill")
    page.see("It waits for a runner")
    assert re.fullmatch(r"/job/[\w-]+", page.address())
