"""What backfills keep of a column beside the table: it goes with the column, or its branch."""

from pathlib import Path

import lance
import pytest

from penstock.jobs.backfill import watermarks
from penstock.jobs.kept.store import name_column
from penstock.lance import refs
from tests.harness.data.functions import add_function, alter_function, virtual_column
from tests.harness.jobs.fake_runner import Column, make_table
from tests.harness.processes.servers import Server

ON_SQLITE = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def column(server: Server, cluster: str) -> Column:
    """The column `len` of a new table, filled by a function."""
    table = make_table(server)
    new = virtual_column(b"\x80\x05N.", ["text"], {"len": "int32"}, name="length")
    add_function(server, table, new).raise_for_status()
    return Column(server, table, "len", cluster)


def binding_of(column: Column) -> str:
    column.request()
    (job,) = column.runner.lease()
    return str(job["spec"]["binding"])


def kept(column: Column) -> tuple[int, int]:
    """How many tags of backfills and lists of rows a table has."""
    location = Path(column.ask("describe").json()["location"])
    return len(list((location / "_refs/tags").glob("penstock-*"))), len(
        list(location.glob("_backfill/*/*"))
    )


def keep(column: Column, binding: str, branch: str = "") -> None:
    """Leave what a backfill leaves."""
    location = column.ask("describe").json()["location"]
    dataset = lance.dataset(location)
    head = dataset.checkout_version((branch or None, None)).version
    refs.hold_version(dataset, watermarks.tag_of(binding, branch), branch, head)
    folder = Path(location, "_backfill", name_column(binding, branch))
    folder.mkdir(parents=True)
    (folder / "1-a.rows").write_bytes(b"")


@ON_SQLITE
@pytest.mark.parametrize("change", ["drop", "inputs"])
def test_what_backfills_kept_goes_with_the_column(column: Column, change: str) -> None:
    keep(column, binding_of(column))
    assert kept(column) == (1, 1)
    alter_function(column.server, column.table, "len", udf_version="2").raise_for_status()
    assert kept(column) == (1, 1)
    if change == "drop":
        column.ask("drop_columns", {"columns": ["len"]}).raise_for_status()
    else:
        alter_function(column.server, column.table, "len", input_columns=["id"])
    assert kept(column) == (0, 0)


@ON_SQLITE
def test_what_another_branch_compares_with_stays(column: Column) -> None:
    binding = binding_of(column)
    column.ask("branches/create", {"name": "dev"}).raise_for_status()
    keep(column, binding)
    keep(column, binding, "dev")
    column.ask("drop_columns", {"columns": ["len"]}).raise_for_status()
    assert kept(column) == (2, 2)
    column.ask("branches/delete", {"name": "dev"}).raise_for_status()
    assert kept(column) == (0, 0)


@ON_SQLITE
def test_what_backfills_kept_goes_with_the_branch(column: Column) -> None:
    binding = binding_of(column)
    column.ask("branches/create", {"name": "dev"}).raise_for_status()
    keep(column, binding)
    keep(column, binding, "dev")
    column.ask("branches/delete", {"name": "dev"}).raise_for_status()
    assert kept(column) == (1, 1)
