"""`penstock rename`: another name for a table or view."""

from collections.abc import Callable

import click

from penstock.cli.catalog.dry_runs import check_free, find_renamed
from penstock.cli.catalog.readable import get_readable
from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, dry_run_option, echo_json
from penstock.sdk.connection.names import read_new_id, show_id
from penstock.sdk.lake import Lake
from penstock.sdk.tables.table import Table
from penstock.sdk.views.iceberg_views import IcebergView
from penstock.sdk.views.view import View


def rename_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what a rename may do to Iceberg views that know the old name."""
    follow = click.option("--cascade", is_flag=True, help="Let Iceberg views that name it follow.")
    force = click.option("--force", is_flag=True, help="Let Iceberg views that name it break.")
    return follow(force(dry_run_option(lake_option(as_json_option(command)))))


@click.command()
@click.argument("name")
@click.argument("new")
@rename_options
def command(lake: Lake, *, name: str, new: str, **options: bool) -> None:
    """Give the table or view NAME the name NEW; one without a namespace stays where it is.

    \b
    Examples:
      penstock rename shop.pages shop.documents
      penstock rename shop.pages archive.pages --dry-run
    """
    echo_rename(lake, get_readable(lake, name), new, **options)


def echo_rename(
    lake: Lake,
    table: Table | View | IcebergView,
    new: str,
    *,
    cascade: bool,
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Rename a table, and tell its name; a dry run tells what knows it by its old one."""
    wanted = read_new_id(new, table.id)
    if dry_run:
        check_free(lake, wanted)
        _tell_plan(table, show_id(wanted), cascade=cascade, force=force, as_json=as_json)
        return
    name = table.rename(new, cascade=cascade, force=force).name
    if as_json:
        echo_json({"name": table.name, "new_name": name, "renamed": True})
    else:
        click.echo(f"renamed {table.name} to {name}")


def _tell_plan(
    table: Table | View | IcebergView, new: str, *, cascade: bool, force: bool, as_json: bool
) -> None:
    knowing = find_renamed(table, cascade=cascade, force=force)
    breaks, follow = ([], knowing) if cascade else (knowing, [])
    if as_json:
        told = {"name": table.name, "new_name": new, "breaks": breaks, "follow": follow}
        echo_json({**told, "renamed": False})
        return
    more = f"; it would break {', '.join(breaks)}" if breaks else ""
    more += f"; {', '.join(follow)} would follow" if follow else ""
    click.echo(f"would rename {table.name} to {new}{more}")
