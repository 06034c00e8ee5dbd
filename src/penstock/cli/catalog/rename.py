"""`penstock rename`: another name for a table or view."""

from collections.abc import Callable

import click

from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, dry_run_option, echo_json
from penstock.sdk.connection.wire import read_id, show_id
from penstock.sdk.lake import Lake
from penstock.sdk.tables.table import Table


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
    echo_rename(lake.table(name), new, **options)


def echo_rename(
    table: Table, new: str, *, cascade: bool, force: bool, dry_run: bool, as_json: bool
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
    renamed = table.rename(new, cascade=cascade, force=force)
    if as_json:
        echo_json({"name": table.name, "new_name": renamed.name, "renamed": True})
    else:
        click.echo(f"renamed {table.name} to {renamed.name}")
