"""`penstock rename`: another name for a table or view."""

from collections.abc import Callable

import click

from penstock.cli.catalog.readable import get_readable
from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, dry_run_option, echo_json
from penstock.errors import InvalidRequest
from penstock.sdk.connection.wire import read_id, show_id
from penstock.sdk.lake import Lake
from penstock.sdk.tables.table import Table
from penstock.sdk.views.iceberg_views import IcebergView


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
    echo_rename(get_readable(lake, name), new, **options)


def echo_rename(
    table: Table | IcebergView,
    new: str,
    *,
    cascade: bool,
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Rename a table, and tell its name; a dry run tells what knows it by its old one."""
    wanted = read_id(new)
    shown = show_id(wanted if len(wanted) > 1 else (*table.id[:-1], *wanted))
    if dry_run:
        breaks = [each.name for each in table.dependents() if "rename" in each.breaks_on]
        if as_json:
            echo_json({"name": table.name, "new_name": shown, "breaks": breaks, "renamed": False})
        else:
            broken = f"; it would break {', '.join(breaks)}" if breaks else ""
            click.echo(f"would rename {table.name} to {shown}{broken}")
        return
    if isinstance(table, Table):
        name = table.rename(new, cascade=cascade, force=force).name
    elif cascade or force:
        raise InvalidRequest(
            f"{table.name} is an Iceberg view, of which no others are told its new name",
            detail="leave --cascade and --force out",
        )
    else:
        name = table.rename(new).name
    if as_json:
        echo_json({"name": table.name, "new_name": name, "renamed": True})
    else:
        click.echo(f"renamed {table.name} to {name}")
