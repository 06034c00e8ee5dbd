"""Backfills of virtual columns: what a runner gets, and what is recorded when it is done."""

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

import lance
import pytest

from tests.harness.data.arrow import send
from tests.harness.data.functions import add_function, alter_function, envelope, virtual_column
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import TEXTS, Column, describe, make_table
from tests.harness.processes.servers import Server

# Those without it are about what is on record, and so about both databases.
ON_SQLITE = pytest.mark.parametrize("server", ["sqlite"], indirect=True)
PAYLOAD, OTHER = b"\x80\x05N.", b"\x80\x05K\x01."
SIZES = {
    "intra_applier_concurrency": 4,
    "checkpoint_size": 100,
    "min_checkpoint_size": 10,
    "max_checkpoint_size": 1000,
    "batch_checkpoint_flush_interval_seconds": 0.5,
}


@pytest.fixture
def column(server: Server, cluster: str) -> Column:
    """The column `len` of a new table with three texts, filled by a function."""
    table = make_table(server)
    knobs = {"needs": {"num_cpus": 2, "memory": 5}}
    new = virtual_column(
        PAYLOAD, ["text"], {"len": "int32"}, name="length", knobs=knobs, auto_backfill=True
    )
    add_function(server, table, new).raise_for_status()
    return Column(server, table, "len", cluster)


@pytest.fixture
def pair(server: Server, cluster: str) -> Column:
    """The column `a` of a new table, which one function fills together with `b`."""
    table = make_table(server)
    new = virtual_column(PAYLOAD, ["text"], {"a": "int32", "b": "utf8"}, "batch", name="pair")
    add_function(server, table, new).raise_for_status()
    return Column(server, table, "a", cluster)


def lease(column: Column, **options: Any) -> dict[str, Any]:
    column.request(**options)
    (job,) = column.runner.lease()
    return job


def described(column: Column, **body: Any) -> dict[str, Any]:
    answer = column.ask("describe", body).raise_for_status().json()
    found: dict[str, Any] = json.loads(answer["properties"]["penstock.columns"])
    return found


@ON_SQLITE
def test_the_spec_says_what_the_function_is(column: Column) -> None:
    spec = lease(column, force=True, **SIZES)["spec"]
    assert (spec["column"], spec["columns"], spec["inputs"]) == ("len", ["len"], ["text"])
    assert spec["expression"] is None
    assert (spec["data_type"], spec["errors_only"]) == ({"type": "int32"}, False)
    assert spec["function"]["name"] == "length"
    assert spec["function"]["version"] == "1"
    assert spec["resources"] == {"num_cpus": 2, "num_gpus": None, "memory": 5}
    assert {key: spec[key] for key in SIZES} == SIZES
    assert (spec["watermark"], spec["watermarks"]) == (None, [])


@ON_SQLITE
@pytest.mark.parametrize("where", ["errors", " ERRORS "])
def test_rows_that_failed_can_be_asked_for(column: Column, where: str) -> None:
    spec = lease(column, where=where)["spec"]
    assert (spec["where"], spec["errors_only"]) == (None, True)


@ON_SQLITE
def test_of_the_rows_that_failed_some(column: Column) -> None:
    spec = lease(column, where="id > 1", errors_only=True)["spec"]
    assert (spec["where"], spec["errors_only"]) == ("id > 1", True)


@ON_SQLITE
@pytest.mark.parametrize(
    "body",
    [
        {"min_checkpoint_size": 11, "max_checkpoint_size": 10},
        {"intra_applier_concurrency": 0},
        {"intra_applier_concurrency": 5000},
        {"checkpoint_size": -1},
        {"min_checkpoint_size": "x"},
        {"max_checkpoint_size": 1.5},
        {"batch_checkpoint_flush_interval_seconds": -1},
        {"batch_checkpoint_flush_interval_seconds": 1e9},
        {"errors_only": "yes"},
    ],
)
def test_options_out_of_range_are_refused(column: Column, body: dict[str, Any]) -> None:
    answer = column.ask_backfill(**body)
    assert code(answer) == (400, 13)
    assert next(iter(body)) in answer.json()["error"]


@ON_SQLITE
def test_sql_has_no_rows_that_failed(column: Column) -> None:
    new = {"new_columns": [{"name": "twice", "computed": "id * 2"}]}
    column.ask("add_columns", new).raise_for_status()
    assert code(column.ask_backfill(column="twice", errors_only=True)) == (400, 13)


@ON_SQLITE
@pytest.mark.parametrize(("given", "kept"), [(None, '{"pip": ["a"]}'), ("{}", "{}")])
def test_the_environment_is_the_requests_or_the_functions(
    column: Column, given: str | None, kept: str
) -> None:
    alter_function(column.server, column.table, "len", manifest='{"pip": ["a"]}').raise_for_status()
    assert lease(column, manifest=given)["manifest"] == kept


def test_the_columns_of_a_function_are_one_job(pair: Column) -> None:
    first = pair.request(column="b")
    assert pair.request(column="a") == first
    (job,) = pair.runner.lease()
    assert (job["spec"]["column"], job["spec"]["columns"]) == ("a", ["a", "b"])
    other = pair.request(column="b", force=True)
    assert other != first
    assert pair.runner.lease() == []
    pair.runner.finish(job, result={"watermark": {"version": 4, "function": "1"}})
    (behind,) = pair.runner.lease()
    assert behind["spec"]["watermark"].items() >= {"version": 4, "function": "1"}.items()


def test_three_watermarks_are_kept_the_newest_first(column: Column) -> None:
    for version in range(2, 7):
        job = lease(column)
        mark = {"version": version, "function": "1", "unfilled": None, "unfilled_rows": 0}
        column.runner.finish(job, result={"watermark": mark}).raise_for_status()
    spec = lease(column)["spec"]
    assert [mark["version"] for mark in spec["watermarks"]] == [6, 5, 4]
    assert spec["watermark"] == spec["watermarks"][0]


@ON_SQLITE
@pytest.mark.parametrize("result", [{"watermark": 5}, {"watermark": {"version": "x"}}, {}])
def test_what_is_no_watermark_moves_none(column: Column, result: dict[str, Any]) -> None:
    column.runner.finish(lease(column), result=result).raise_for_status()
    assert lease(column)["spec"]["watermarks"] == []


def test_a_job_gets_what_the_function_is_when_it_begins(pair: Column) -> None:
    pair.request()
    alter_function(
        pair.server, pair.table, "b", udf=envelope(OTHER, "batch"), udf_version="2"
    ).raise_for_status()
    rename = {"alterations": [{"path": "a", "rename": "c"}]}
    pair.ask("alter_columns", rename).raise_for_status()
    (job,) = pair.runner.lease()
    assert job["spec"]["function"]["version"] == "2"
    assert (job["spec"]["column"], job["spec"]["columns"]) == ("c", ["c", "b"])


def test_a_new_version_keeps_the_watermark_and_other_inputs_lose_it(column: Column) -> None:
    mark = {"version": 2, "function": "1"}
    column.runner.finish(lease(column), result={"watermark": mark}).raise_for_status()
    alter_function(column.server, column.table, "len", udf_version="2").raise_for_status()
    job = lease(column)
    assert job["spec"]["watermark"].items() >= mark.items()
    column.runner.finish(job, "CANCELED").raise_for_status()
    alter_function(column.server, column.table, "len", input_columns=["id"]).raise_for_status()
    assert lease(column)["spec"]["watermark"] is None


def test_a_description_tells_of_bound_columns(column: Column) -> None:
    new = {"new_columns": [{"name": "twice", "computed": "id * 2"}]}
    column.ask("add_columns", new).raise_for_status()
    assert described(column) == {
        "len": {
            "kind": "function",
            "function": "length",
            "version": "1",
            "inputs": ["text"],
            "auto_backfill": True,
            "watermark": None,
            "stale": None,
            "rows_by_state": None,
            "stale_by_reason": None,
        },
        "twice": {
            "kind": "sql",
            "function": None,
            "version": None,
            "inputs": ["id"],
            "auto_backfill": False,
            "watermark": None,
            "stale": None,
            "rows_by_state": None,
            "stale_by_reason": None,
        },
    }
    column.ask("drop_columns", {"columns": ["len", "twice"]}).raise_for_status()
    assert "penstock.columns" not in column.ask("describe").json()["properties"]


def finish(column: Column, counts: dict[str, int] | None, function: str = "length@1") -> None:
    """End the job as a runner would that left so many rows in each state of the newest version."""
    version = column.ask("describe", {"load_detailed_metadata": True}).json()["version"]
    mark = {"version": version, "function": function, "counts": counts}
    column.runner.finish(lease(column), result={"watermark": mark}).raise_for_status()


@ON_SQLITE
def test_a_description_tells_what_the_last_backfill_left(column: Column) -> None:
    finish(column, {"fresh": 1, "stale": 9})
    found = described(column)["len"]
    assert found["rows_by_state"] == {"fresh": 1, "stale": 9, "unfilled": 0, "failed": 0}
    assert found["stale"] is True


@ON_SQLITE
def test_a_description_tells_nothing_of_rows_that_it_would_have_to_look_at(column: Column) -> None:
    finish(column, {"fresh": 2})
    assert described(column)["len"]["stale"] is False
    send(column.server, f"/v1/table/{column.table}/insert", TEXTS).raise_for_status()
    found = described(column, load_detailed_metadata=True)["len"]
    assert (found["stale"], found["rows_by_state"]) == (None, None)


@ON_SQLITE
def test_counts_of_another_function_or_version_are_not_told(column: Column) -> None:
    finish(column, {"fresh": 2}, function="length@2")
    assert described(column)["len"]["rows_by_state"] is None
    finish(column, None)
    assert described(column)["len"]["rows_by_state"] is None


def test_rows_are_counted_when_that_is_asked_for(column: Column) -> None:
    new = {"new_columns": [{"name": "twice", "computed": "id * 2"}]}
    column.ask("add_columns", new).raise_for_status()
    send(column.server, f"/v1/table/{column.table}/insert", TEXTS).raise_for_status()
    for found in described(column, count_rows=True).values():
        rows = column.ask("count_rows", {}).json()
        assert found["rows_by_state"] == {"fresh": 0, "stale": 0, "unfilled": rows, "failed": 0}
        assert found["stale"] is False


@ON_SQLITE
def test_the_columns_of_a_function_have_the_same_states(pair: Column) -> None:
    found = described(pair, count_rows=True)
    states = {"fresh": 0, "stale": 0, "unfilled": 3, "failed": 0}
    assert found["a"]["rows_by_state"] == found["b"]["rows_by_state"] == states


@ON_SQLITE
def test_a_description_follows_the_branch(column: Column) -> None:
    column.ask("branches/create", {"name": "dev"}).raise_for_status()
    alter_function(
        column.server, column.table, "len", udf_version="9", branch="dev"
    ).raise_for_status()
    assert described(column)["len"]["version"] == "1"
    assert described(column, branch="dev")["len"]["version"] == "9"


@ON_SQLITE
def test_a_table_without_bound_columns_does_not_tell_of_any(server: Server) -> None:
    table = make_table(server)
    properties = server.post(f"/v1/table/{table}/describe").json()["properties"]
    assert "penstock.columns" not in properties


def test_a_description_follows_restores_and_other_rows_for_all(column: Column) -> None:
    column.ask("restore", {"version": 1}).raise_for_status()
    assert "penstock.columns" not in column.ask("describe").json()["properties"]
    column.ask("restore", {"version": 2}).raise_for_status()
    assert described(column)["len"]["version"] == "1"
    path = f"/v1/table/{column.table}/insert"
    send(column.server, path, TEXTS, mode="overwrite").raise_for_status()
    assert "penstock.columns" not in column.ask("describe").json()["properties"]


@ON_SQLITE
def test_a_new_branch_has_the_columns_of_its_start(column: Column) -> None:
    column.ask("branches/create", {"name": "dev"}).raise_for_status()
    assert described(column, branch="dev")["len"]["auto_backfill"] is True
    body = {"name": "old", "from_version": 1}
    column.ask("branches/create", body).raise_for_status()
    properties = column.ask("describe", {"branch": "old"}).json()["properties"]
    assert "penstock.columns" not in properties


def test_code_that_was_lost_is_brought_back_from_the_catalog(column: Column) -> None:
    location = Path(column.ask("describe").json()["location"])
    (path,) = (location / "_udfs").iterdir()
    content = path.read_bytes()
    path.unlink()
    column.request()
    assert path.read_bytes() == content


def bind_by_path(column: Column, **metadata: str | None) -> int:
    """Change what binds the column as somebody does who can write to the table's folder."""
    dataset = lance.dataset(column.ask("describe").json()["location"])
    dataset.update_field_metadata({"len": metadata})
    return int(dataset.version)


def bring_beside(column: Column) -> dict[str, Any]:
    """The column's function with other code, which lies in the table's folder and nowhere else."""
    location = Path(column.ask("describe").json()["location"])
    found = lance.dataset(str(location)).schema.field("len").metadata[b"penstock.function"]
    content = uuid.uuid4().bytes
    sha256 = hashlib.sha256(content).hexdigest()
    (location / "_udfs" / sha256).write_bytes(content)
    return {**json.loads(found), "sha256": sha256}


@ON_SQLITE
@pytest.mark.parametrize("operation", ["backfill_column", "preview_column"])
def test_code_that_nobody_declared_is_not_run(column: Column, operation: str) -> None:
    function = bring_beside(column)
    bind_by_path(column, **{"penstock.function": json.dumps(function)})
    answer = column.ask(operation, {"column": "len", "timeout_seconds": 0})
    assert code(answer) == (400, 19)
    assert function["sha256"] in answer.json()["error"]


def test_a_queued_job_takes_no_code_that_nobody_declared(column: Column) -> None:
    id = column.request()
    function = bring_beside(column)
    version = bind_by_path(column, **{"penstock.function": json.dumps(function)})
    # The catalog's mirror would tell of it now.
    column.ask("restore", {"version": version}).raise_for_status()
    assert column.runner.lease() == []
    assert describe(column.server, id)["status"] == "FAILED"


def test_an_environment_that_nobody_declared_is_not_built(column: Column) -> None:
    mine = '{"pip": ["mine"]}'
    alter_function(column.server, column.table, "len", manifest=mine).raise_for_status()
    assert lease(column)["manifest"] == mine
    bind_by_path(column, **{"virtual_column.manifest": '{"pip": ["theirs"]}'})
    answer = column.ask_backfill(force=True)
    assert code(answer) == (400, 19)
    assert "manifest" in answer.json()["error"]


@ON_SQLITE
def test_a_job_whose_column_is_another_one_by_now_ends(column: Column) -> None:
    id = column.request()
    column.ask("drop_columns", {"columns": ["len"]}).raise_for_status()
    new = virtual_column(OTHER, ["text"], {"len": "int32"}, name="length")
    add_function(column.server, column.table, new).raise_for_status()
    assert column.runner.lease() == []
    found = describe(column.server, id)
    assert found["status"] == "FAILED"
    assert "dropped or declared anew" in found["error"]
    assert lease(column)["spec"]["columns"] == ["len"]


@ON_SQLITE
def test_a_job_for_inputs_that_are_others_by_now_ends(column: Column) -> None:
    id = column.request()
    alter_function(column.server, column.table, "len", input_columns=["id"]).raise_for_status()
    assert column.runner.lease() == []
    assert describe(column.server, id)["status"] == "FAILED"
