"""The commands that talk to a server, as real processes; the test itself is the runner."""

import json
import os
import subprocess
from pathlib import Path

import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import penstock
from tests.harness.clients import iceberg_tables as tables
from tests.harness.clients.commands import PENSTOCK, ask, run
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import run_here


def test_ls_tells_namespaces_tables_and_views(server: Server, table: penstock.Table) -> None:
    space = table.id[0]
    run(server, "views", "create", f"{space}.ids", "SELECT id FROM docs")
    assert {"kind": "namespace", "name": space} in ask(server, "ls")
    assert ask(server, "ls", space) == [
        {"kind": "table", "name": f"{space}.docs"},
        {"kind": "view", "name": f"{space}.ids"},
    ]
    assert run(server, "ls", space).splitlines()[1].split() == ["table", f"{space}.docs"]


def test_functions_are_listed_shown_disabled_and_dropped(
    server: Server, table: penstock.Table
) -> None:
    space = table.id[0]
    with penstock.connect(server.url) as lake:
        made = lake.create_function(f"{space}.size", penstock.udf(name="size")(_size))
    table.add_column("letters", made)
    name = f"{space}.size"
    assert {"kind": "function", "name": name} in ask(server, "ls", space)
    assert [
        (each["name"], each["version"]) for each in ask(server, "functions", "list", space)
    ] == [("size", "1")]
    shown = run(server, "functions", "show", f"{name}@1")
    assert f"used by      {space}.docs.letters (@1)" in shown
    assert "takes        text utf8" in shown
    assert "is disabled" in run(server, "functions", "disable", name)
    assert ask(server, "functions", "show", name)["disabled"] is True
    assert "is enabled" in run(server, "functions", "enable", name)
    assert "is used by column letters" in run(server, "functions", "drop", name, "-y", code=2)
    table.drop_columns("letters")
    assert "is dropped" in run(server, "functions", "drop", name, "-y")
    assert "does not exist" in run(server, "functions", "show", name, code=2)
    assert run(server, "functions", "list", space) == ""


def _size(text: str) -> int:
    return len(text)


def test_describe_tells_columns_and_what_fills_them(server: Server, table: penstock.Table) -> None:
    shown = run(server, "describe", table.name)
    assert "rows      3\n" in shown
    assert shown.splitlines()[-1].split() == ["size", "int32", "SQL", "(3", "unfilled)"]
    told = ask(server, "describe", table.name)
    assert told["version"] == table.version()
    states = {"fresh": 0, "stale": 0, "unfilled": 3, "failed": 0}
    assert told["computed"]["size"]["rows_by_state"] == states
    assert "penstock describe" not in run(server, "describe", f"{table.name}x", code=2)


def test_sql_prints_and_saves_rows(server: Server, table: penstock.Table, tmp_path: Path) -> None:
    space = table.id[0]
    sql = "SELECT id, text FROM docs WHERE id < 3"
    lines = run(server, "sql", sql, "--namespace", space).splitlines()
    assert lines == ["id  text", "1   a", "2   bb"]
    found = run(server, "sql", sql, "--namespace", space, "--format", "json", "--limit", "1")
    assert [json.loads(line) for line in found.splitlines()] == [{"id": 1, "text": "a"}]
    full = f"SELECT text, id FROM {space}.docs LIMIT 1"
    assert run(server, "sql", full, "--format", "csv").splitlines() == ['"text","id"', '"a",1']
    for format in ("parquet", "arrow"):
        path = tmp_path / f"rows.{format}"
        run(server, "sql", full, "--format", format, "-o", str(path))
        read = pq.read_table if format == "parquet" else feather.read_table
        assert read(path).to_pylist() == [{"text": "a", "id": 1}]
    assert "nope" in run(server, "sql", "SELECT nope FROM docs", "--namespace", space, code=2)


def test_query_prints_rows(server: Server, table: penstock.Table) -> None:
    name = table.name
    lines = run(server, "query", name, "--where", "id > 1", "--select", "id,text").splitlines()
    assert lines[0].split() == ["id", "text"]
    assert lines[1].split() == ["2", "bb"]
    assert lines[2].endswith("…")
    rows = run(server, "query", name, "--limit", "1", "--offset", "2", "--json").splitlines()
    assert [json.loads(row)["id"] for row in rows] == [3]
    assert "no list of numbers" in run(server, "query", name, "--vector", "x", code=2)


def test_status_tells_what_there_is(server: Server, table: penstock.Table) -> None:
    found = ask(server, "status")
    assert found["ready"] is True
    assert found["tables"] >= 1
    assert found["jobs"].keys() == {"QUEUED", "RUNNING", "PAUSED"}
    told = f"server   {server.url} is ready\nbecause  PENSTOCK_URL names it\n"
    assert run(server, "status").startswith(told)


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [PENSTOCK, "ls", "--url", "http://127.0.0.1:9"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("penstock: no answer from http://127.0.0.1:9")
    assert done.stderr.count("\n") == 1


def test_views_are_altered_and_tell_what_they_were(server: Server, table: penstock.Table) -> None:
    name = f"{table.id[0]}.ids"
    run(server, "views", "create", name, "SELECT id FROM docs")
    wider = ("--query", "SELECT id, text FROM docs")
    plan = ask(server, "views", "alter", name, *wider, "--explain")
    assert (plan["columns_computed"], plan["columns_kept"]) == (["text"], ["id"])
    assert "text computed; id kept" in run(server, "views", "alter", name, *wider, "--explain")
    settings = ("--target-lag", "60", "--property", "team=search", "--no-auto-refresh")
    assert ask(server, "views", "alter", name, *settings) == {"name": name, "altered": True}
    job = ask(server, "views", "alter", name, *wider, "--no-wait", "--no-preview")
    (leased,) = Runner(server).lease()
    assert leased["id"] == job["job_id"]
    run_here(server, leased)
    new, old = ask(server, "views", "history", name)
    assert (new["changed"], new["version"], old["version"]) == (["source_query"], 2, 1)
    assert "SELECT id, text FROM docs" in run(server, "views", "history", name)
    run(server, "views", "alter", name, "--query", "SELEC", code=2)


def test_views_are_made_explained_and_dropped(server: Server, table: penstock.Table) -> None:
    name, sql = f"{table.id[0]}.ids", "SELECT id FROM docs"
    assert "would create" in run(server, "views", "create", name, sql, "--dry-run")
    assert ask(server, "views", "create", name, sql)["name"] == name
    (listed,) = ask(server, "views", "list", table.id[0])
    assert (listed["name"], listed["kind"], listed["stale"]) == (name, "query", True)
    plan = ask(server, "views", "refresh", name, "--dry-run")
    assert (plan["mode"], plan["rows_to_insert"]) == ("full", 3)
    assert ask(server, "views", "explain", name) == plan == ask(server, "explain", name)
    assert "would drop" in run(server, "views", "drop", name, "--dry-run")
    assert ask(server, "views", "drop", name, "-y") == {"name": name, "dropped": True}
    assert ask(server, "views", "list", table.id[0]) == []
    assert "no materialized view" in run(server, "views", "explain", table.name, code=2)


def test_dry_runs_refuse_what_is_refused_and_name_what_goes_along(
    server: Server, table: penstock.Table
) -> None:
    space = table.id[0]
    first, second, third = (f"{space}.{name}" for name in ("first", "second", "third"))
    run(server, "views", "create", first, "SELECT id, text FROM docs")
    run(server, "views", "create", second, "SELECT id FROM first")
    run(server, "views", "create", third, "SELECT id FROM second", "--kind", "iceberg")
    for arguments, told in (
        (("views", "drop", first), f"read by {second}"),
        (("rename", table.name, first), "already exists"),
        (("rename", table.name, f"{space}nope.x"), f"{space}nope"),
        (("views", "rename", second, "fourth"), f"under this name by {third}"),
        (("views", "create", first, "SELECT id FROM docs"), "already exists"),
        (("views", "create", f"{space}nope.x", "SELECT 1"), f"{space}nope"),
    ):
        assert told in run(server, *arguments, "--dry-run", code=2)
        yes = ("-y",) if "drop" in arguments else ()
        run(server, *arguments, *yes, code=2)
    assert "not checked" in run(server, "views", "create", f"{space}.x", "SELECT no", "--dry-run")
    planned = run(server, "views", "rename", second, "fourth", "--cascade", "--dry-run")
    assert planned.endswith(f"; {third} would follow\n")
    cascade = ("views", "drop", first, "--cascade")
    assert run(server, *cascade, "--dry-run") == f"would drop {first}, {second}, {third}\n"
    assert ask(server, *cascade, "-y")["along"] == [second, third]
    assert ask(server, "ls", space) == [{"kind": "table", "name": table.name}]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_our_commands(shell: str) -> None:
    script = subprocess.run(
        [PENSTOCK, "completion", shell], capture_output=True, text=True, check=True
    )
    assert "_PENSTOCK_COMPLETE" in script.stdout


def test_completion_offers_commands_of_groups() -> None:
    environ = {
        **os.environ,
        "_PENSTOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": "penstock jobs w",
        "COMP_CWORD": "2",
    }
    shown = subprocess.run([PENSTOCK], env=environ, capture_output=True, text=True, check=False)
    assert shown.stdout.strip() == "plain,watch"


def test_iceberg_tables_are_listed_and_told(server: Server, table: penstock.Table) -> None:
    space = table.id[0]
    made = tables.make(server, space, "i")
    assert {"kind": "iceberg table", "name": f"{space}.i"} in ask(server, "ls", space)
    shown = run(server, "describe", f"{space}.i")
    assert "iceberg table (version 2 of the format)\n" in shown
    assert made["metadata"]["location"] in shown
    assert shown.splitlines()[-1].split() == ["b", "int64"]
    told = ask(server, "describe", f"{space}.i")
    assert told["metadata_location"] == made["metadata-location"]
    assert "nothing depends on" in run(server, "impact", f"{space}.i")


def test_iceberg_views_are_made_told_altered_and_dropped(
    server: Server, table: penstock.Table
) -> None:
    space = table.id[0]
    name, sql = f"{space}.long", "SELECT id FROM docs WHERE size > 1"
    made = run(server, "views", "create", name, "SELECT id, text FROM docs", "--kind", "iceberg")
    assert made == f"created {name}\n"
    shown = run(server, "describe", name)
    assert "iceberg view\n" in shown
    assert shown.splitlines()[-1].split() == ["text", "utf8"]
    assert len(run(server, "query", name).splitlines()) == 4
    assert ask(server, "views", "alter", name, "--query", sql)["version"] == 2
    assert [each["version"] for each in ask(server, "views", "history", name)] == [2, 1]
    assert ask(server, "views", "list", space, "--kind", "iceberg") == [
        {"name": name, "kind": "iceberg", "query": sql}
    ]
    assert {"kind": "iceberg view", "name": name} in ask(server, "ls", space)
    assert name in run(server, "impact", table.name)
    run(server, "views", "rename", name, "short")
    assert "nothing depends on" in run(server, "impact", f"{space}.short")
    run(server, "views", "create", f"{space}.over", "SELECT id FROM short", "--kind", "iceberg")
    for refused in (("rename", f"{space}.short", "x"), ("views", "drop", f"{space}.short", "-y")):
        assert f"{space}.over" in run(server, *refused, code=2).replace("$", ".")
    run(server, "rename", f"{space}.short", "brief", "--cascade")
    assert "brief" in run(server, "describe", f"{space}.over")
    run(server, "views", "rename", f"{space}.brief", "short", "--force")
    for wrong in (
        ("views", "alter", f"{space}.short", "--auto-refresh"),
        ("views", "create", f"{space}.x", sql, "--kind", "iceberg", "--with-data"),
        ("views", "refresh", f"{space}.short"),
    ):
        assert "view" in run(server, *wrong, code=2)
    assert run(server, "views", "drop", f"{space}.short", "-y") == f"dropped {space}.short\n"
