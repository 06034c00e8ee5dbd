"""Dependents and new names through the SDK and the command line."""

import json

import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import penstock as command
from penstock.errors import InvalidRequest, NotFound, TableInUse
from tests.harness.processes import nursery
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import make_iceberg_view


def run(server: Server, *arguments: str) -> str:
    done = CliRunner().invoke(command, [*arguments, "--url", server.url], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def view(lake: penstock.Lake, space: str, table: penstock.Table) -> penstock.View:
    # Nothing that queues a job by itself, which another test of this server would be given.
    query = "SELECT id, text FROM docs"
    return lake.create_view(f"{space}.v", query, refresh_schedule="0 0 29 2 *")


def test_a_table_tells_what_depends_on_it(
    server: Server, space: str, table: penstock.Table, view: penstock.View
) -> None:
    table.add_column("size", computed="length(text)")
    make_iceberg_view(server, space, "i", "SELECT id FROM docs")
    found = table.dependents("text")
    assert [each.name for each in found] == [f"{space}.docs.size", f"{space}.v"]
    assert str(found).splitlines()[:2] == [
        f"{space}.docs.text",
        f"  {space}.docs.size (computed column) reads text; breaks on drop, rename, retype",
    ]
    assert f"{space}.i" in table.dependents()._repr_html_()
    assert not view.dependents()
    assert str(view.dependents()) == f"nothing depends on {space}.v"
    with pytest.raises(TableInUse, match=f"{space}\\$v"):
        table.rename_column("text", "words")
    with pytest.raises(TableInUse):
        table.drop_columns("id")
    table.rename_column("text", "words", force=True)
    table.drop_columns("id", cascade=True)
    assert table.schema().names == ["words", "size"]


def test_a_view_keeps_everything_under_another_name(
    server: Server, lake: penstock.Lake, space: str, table: penstock.Table, view: penstock.View
) -> None:
    job = view.refresh(wait=False)
    job.cancel()
    lake.create_namespace(f"{space}x")
    renamed = view.rename("w")
    assert (type(renamed), renamed.name) == (penstock.View, f"{space}.w")
    moved = lake.view(f"{space}.w").rename(f"{space}x.w")
    assert moved.describe()["properties"]["penstock.refresh_schedule"] == "0 0 29 2 *"
    assert [each.id for each in lake.jobs(table=f"{space}x.w")] == [job.id]
    assert lake.views(space) == []
    with pytest.raises(TableInUse):
        lake.drop_table(table.name)
    make_iceberg_view(server, f"{space}x", "i", "SELECT id FROM w")
    with pytest.raises(TableInUse, match=f"{space}x\\$i"):
        moved.rename("v")
    assert moved.rename("v", force=True).name == f"{space}x.v"
    assert table.rename(f"{space}.pages").rename(("top",)).name == "top"
    lake.drop_table("top", cascade=True)


def test_the_command_line_tells_impact_and_renames(
    server: Server, space: str, table: penstock.Table, view: penstock.View
) -> None:
    assert f"  {space}.v (materialized view)" in run(server, "impact", f"{space}.docs.text")
    told = json.loads(run(server, "impact", f"{space}.docs", "--json"))
    assert told["dependents"][0]["id"] == [space, "v"]
    make_iceberg_view(server, space, "i", "SELECT id FROM v")
    planned = run(server, "views", "rename", f"{space}.v", "w", "--force", "--dry-run")
    assert planned == f"would rename {space}.v to {space}.w; it would break {space}.i\n"
    done = run(server, "views", "rename", f"{space}.v", f"{space}.w", "--force")
    assert done == f"renamed {space}.v to {space}.w\n"
    renamed = json.loads(run(server, "rename", table.name, "pages", "--json"))
    assert renamed == {"name": table.name, "new_name": f"{space}.pages", "renamed": True}
    with pytest.raises(NotFound, match="neither a table nor a column"):
        run(server, "impact", f"{space}.absent.text")


def test_a_view_has_a_schedule(server: Server, lake: penstock.Lake, table: penstock.Table) -> None:
    name = f"{table.id[0]}.timed"
    view = lake.create_view(name, "SELECT id FROM docs", refresh_schedule="0 6 * * *")
    assert view.schedule() is not None
    assert str(view.schedule()).startswith("0 6 * * * (UTC), next 20")
    told = run(server, "views", "schedule", name, "30 7 1 * *", "--timezone", "Asia/Tokyo")
    assert told.startswith("30 7 1 * * (Asia/Tokyo), next 20")
    shown = json.loads(run(server, "views", "schedule", name, "--json"))
    assert shown["schedule"]["timezone"] == "Asia/Tokyo"
    assert run(server, "views", "schedule", name, "--off") == "no schedule\n"
    assert lake.view(name).schedule() is None
    with pytest.raises(InvalidRequest, match="refresh_schedule 'daily'"):
        view.alter(refresh_schedule="daily")
    with pytest.raises(InvalidRequest, match="--off"):
        run(server, "views", "schedule", name, "0 6 * * *", "--off")
    made = run(server, "views", "create", f"{name}2", "SELECT id FROM docs")
    assert made.startswith(f"created {name}2")


def test_a_refusal_names_the_arguments_and_options_that_there_are(
    lake: penstock.Lake, space: str, table: penstock.Table, view: penstock.View
) -> None:
    with pytest.raises(TableInUse) as raised:
        table.rename_column("text", "words")
    assert "cascade=True" in raised.value.detail
    assert "force=True" in raised.value.detail
    assert "?" not in raised.value.detail
    lake.create_iceberg_view(f"{space}.i", "SELECT id FROM docs")
    asked = ["rename", table.name, f"{space}.other", "--url", lake.url]
    done = nursery.run(asked)
    assert done.returncode == 2
    assert "use --cascade to let them follow, or --force to let them break" in done.stderr
