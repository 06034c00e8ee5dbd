"""`penstock impact`: what depends on a table or a column, before somebody changes it."""

import contextlib

import click

from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, echo_json
from penstock.errors import NotFound
from penstock.sdk.connection.names import read_id, show_id
from penstock.sdk.lake import Lake
from penstock.sdk.tables.iceberg_table import IcebergTable
from penstock.sdk.tables.table import Table
from penstock.sdk.views.iceberg_views import IcebergView
from penstock.sdk.views.view import View

Target = Table | View | IcebergView | IcebergTable


@click.command()
@click.argument("name")
@lake_option
@as_json_option
def command(lake: Lake, *, name: str, as_json: bool) -> None:
    """Tell what depends on NAME, a table, a view, or a column of one.

    Each view or computed column is told with the columns that it reads, and with the changes that
    it would not survive: a drop, another name, another type.

    \b
    Examples:
      penstock impact shop.pages
      penstock impact shop.pages.text --json
    """
    target, column = find_target(lake, name)
    found = target.dependents(column)
    if as_json:
        echo_json({"name": found.name, **found.told})
    else:
        click.echo(str(found))


def find_target(lake: Lake, name: str) -> tuple[Target, str | None]:
    """What a name, or the longest beginning of it, stands for; the rest is a column."""
    parts = read_id(name)
    for cut in range(len(parts), 0, -1):
        with contextlib.suppress(NotFound):
            column = show_id(parts[cut:]) if parts[cut:] else None
            return lake.open(parts[:cut]), column
    raise NotFound(
        f"neither a table nor a column of one is called {name}",
        detail="write it as namespace.table or namespace.table.column",
    )
