"""Names of any kind: shown so that they can be read again, by the SDK and by commands."""

import json

import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import penstock as command
from penstock.errors import InvalidRequest
from penstock.sdk.connection.names import read_id, show_id
from tests.harness.processes.servers import Server

ODD = ["a.b", "a$b", "a`b", "`", "``", "`a.b`", ".a", "a`.`b", "ü b", "a@2", 'a"b']


def run(server: Server, *arguments: str) -> str:
    done = CliRunner().invoke(command, [*arguments, "--url", server.url], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("odd", ODD)
def test_what_is_shown_is_read_again(odd: str) -> None:
    for id in [(odd,), ("h", odd), (odd, "t"), (odd, odd, odd)]:
        assert read_id(show_id(id)) == id
    assert (show_id(("h", "t")), show_id(("h", "a.b"))) == ("h.t", "h.`a.b`")
    assert read_id("h$t") == read_id("h.t") == read_id("`h`.t") == ("h", "t")


@pytest.mark.parametrize("wrong", ["h.`a", "`a`b", "h.`a.b", "h..t", "h.", "``"])
def test_a_name_that_cannot_be_split_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidRequest):
        read_id(wrong)


def test_a_name_with_a_dot_or_a_dollar_is_listed_and_used(
    server: Server, lake: penstock.Lake, space: str
) -> None:
    lake.create_namespace((space, "n.m"))
    for name in ("a.b", "a$b"):
        made = lake.create_table((space, name), [{"id": 1}])
        assert lake.table(made.name).id == (space, name)
    view = lake.create_view((space, "n.m", "v"), f"SELECT id FROM {space}.`a.b`")
    assert lake.tables(space) == [f"{space}.`a$b`", f"{space}.`a.b`"]
    assert {*lake.tables(space)} <= {*lake.tables()}
    assert view.name in lake.views()
    assert lake.views(lake.namespaces(space)[0]) == [view.name]
    assert all(name in lake for name in lake.tables())
    assert view.name in json.loads(run(server, "status", "--json"))["stale_views"]
    assert view.name in run(server, "views", "list", f"{space}.`n.m`")
    assert f"{space}.`a$b`" in run(server, "describe", f"{space}.`a$b`")
    run(server, "rename", f"{space}.`a.b`", f"{space}.plain")
    assert f"{space}.plain" in lake


def test_an_empty_new_name_is_refused(lake: penstock.Lake, space: str) -> None:
    table = lake.create_table(f"{space}.t", [{"id": 1}])
    view = lake.create_iceberg_view(f"{space}.v", "SELECT id FROM t")
    for rename in (table.rename, view.rename):
        for name in ("", ()):
            with pytest.raises(InvalidRequest, match="new name is empty"):
                rename(name)
    done = CliRunner().invoke(command, ["rename", table.name, "", "--url", lake.url])
    assert isinstance(done.exception, InvalidRequest)
