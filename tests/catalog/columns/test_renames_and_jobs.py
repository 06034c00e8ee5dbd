"""Backfills that wait, run or have failed while what their columns read gets other names."""

import json
from pathlib import Path

import pytest

from penstock.errors import ConcurrentCommit, LeaseLost
from tests.harness.data.calls import take_calls
from tests.harness.data.tables import metadata, open_by_path
from tests.harness.jobs.fake_runner import Column, add_computed, describe, make_table
from tests.harness.jobs.held_attempt import once
from tests.harness.jobs.renamed_columns import ROWS, bind, explain, fill, rename, update, values
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import run_here

ON_SQLITE = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def table(server: Server) -> str:
    return make_table(server, ROWS)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls"


@ON_SQLITE
def test_a_job_that_waits_fills_by_the_new_name(
    server: Server, cluster: str, table: str, log: Path
) -> None:
    add_computed(server, table, sql="length(text)").raise_for_status()
    column, sql = Column(server, table, "made", cluster), Column(server, table, "sql", cluster)
    bind(column, log, lambda text, n: f"{text}{n}")
    jobs = [column.request(), sql.request()]
    rename(server, table, "text", "words").raise_for_status()
    for job in [*column.runner.lease(2)]:
        run_here(server, job)
    assert [describe(server, job)["status"] for job in jobs] == ["SUCCEEDED"] * 2
    assert (values(column), values(sql)) == (["a0", "bb1", "ccc2"], [1, 2, 3])


@ON_SQLITE
@pytest.mark.parametrize("is_swap", [False, True], ids=["renamed", "swapped"])
def test_a_rename_while_a_job_runs_leaves_its_values_right(
    server: Server, cluster: str, table: str, log: Path, is_swap: bool
) -> None:
    add = {"new_columns": [{"name": "other", "expression": "concat('other', id)"}]}
    server.post(f"/v1/table/{table}/add_columns", add).raise_for_status()
    add_computed(server, table, sql="concat(text, id)").raise_for_status()
    column, sql = Column(server, table, "made", cluster), Column(server, table, "sql", cluster)
    bind(column, log, lambda text, n: f"{text}{n}")

    def change() -> None:
        for old, new in (("text", "words"), ("other", "text"))[: 1 + is_swap]:
            rename(server, table, old, new).raise_for_status()
        # All rows go to another fragment, so that there is another round.
        update(server, table, "true", words="concat(words, '+')")

    def back() -> None:
        for old, new in (("text", "other"), ("words", "text"))[1 - is_swap :]:
            rename(server, table, old, new).raise_for_status()
        update(server, table, "true", text="concat(text, '-')")

    column.request()
    (job,) = column.runner.lease()
    assert run_here(server, job, once(change))["function_calls"] == 6
    assert values(column) == ["a+0", "bb+1", "ccc+2"]
    sql.request()
    (job,) = sql.runner.lease()
    run_here(server, job, once(back))
    assert values(sql) == ["a+-1", "bb+-2", "ccc+-3"]
    assert explain(sql)["function_calls"] == 0
    assert explain(column)["function_calls"] == 3


def test_a_job_takes_other_names_of_its_inputs_and_no_other_inputs(
    server: Server, cluster: str, table: str, log: Path
) -> None:
    column = Column(server, table, "made", cluster)
    bind(column, log, lambda text, n: f"{text}{n}")
    column.request()
    (job,) = column.runner.lease()
    told = json.loads(metadata(server, table, "made")["penstock.function"])
    forged = json.dumps(told | {"inputs": ["id", "doc.n"]})

    def forge() -> None:
        open_by_path(server, table).update_field_metadata({"made": {"penstock.function": forged}})
        update(server, table, "id = 2", text="'new'")

    with pytest.raises(ConcurrentCommit, match="not those of its declaration"):
        run_here(server, job, once(forge))
    assert values(column) == [None] * 3


@ON_SQLITE
def test_values_that_a_failed_job_kept_are_of_the_same_inputs(
    server: Server, cluster: str, table: str, log: Path
) -> None:
    """Two inputs swap names, and a row's new input is what the other one was."""
    add = {"new_columns": [{"name": "other", "expression": "concat(text, '')"}]}
    server.post(f"/v1/table/{table}/add_columns", add).raise_for_status()
    update(server, table, "true", other="'o'")
    column = Column(server, table, "made", cluster)
    bind(column, log, lambda text: f"{text}!", inputs=["text"])
    column.request()
    (job,) = column.runner.lease()
    with pytest.raises(LeaseLost):
        run_here(server, job, lose)
    column.runner.finish(job, "FAILED", error="lost").raise_for_status()
    for old, new in (("text", "tmp"), ("other", "text"), ("tmp", "other")):
        rename(server, table, old, new).raise_for_status()
    update(server, table, "id = 1", other="'o'")
    take_calls(log)
    assert fill(column) == 1
    assert values(column) == ["o!", "bb!", "ccc!"]


def lose() -> None:
    raise LeaseLost("lost")
