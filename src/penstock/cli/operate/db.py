"""`penstock db`: look at the catalog's database, and bring it up to this release."""

import asyncio
from collections.abc import Awaitable, Callable

import click

from penstock.cli.options import settings_options
from penstock.cli.output import as_json_option, dry_run_option, echo_json
from penstock.database.connect import connect
from penstock.database.interface import Database
from penstock.database.schema import SchemaStatus, get_status
from penstock.database.schema import upgrade as upgrade_schema
from penstock.settings.load import LoadedSettings
from penstock.settings.places import database_url
from penstock.settings.redact import redact_url


@click.group()
def command() -> None:
    """Show or upgrade the catalog's database."""


@command.command()
@settings_options
@as_json_option
def status(loaded: LoadedSettings, *, as_json: bool) -> None:
    """Tell which migrations the database has and which it lacks.

    \b
    Examples:
      penstock db status --json
    """
    found = asyncio.run(_with_database(loaded, get_status, to_write=False))
    if as_json:
        body = {"applied": found.applied, "pending": [m.number for m in found.pending]}
        echo_json(body)
        return
    click.echo(f"database  {redact_url(database_url(loaded.settings))}")
    click.echo(f"applied   {', '.join(map(str, found.applied)) or 'none: no catalog yet'}")
    pending = ", ".join(f"{m.number} ({m.name})" for m in found.pending)
    click.echo(f"pending   {pending or 'none: up to date'}")


@command.command()
@dry_run_option
@settings_options
@as_json_option
def upgrade(loaded: LoadedSettings, *, dry_run: bool, as_json: bool) -> None:
    """Apply the migrations that the database lacks.

    \b
    Examples:
      penstock db upgrade --dry-run
      penstock db upgrade
    """
    work = get_status if dry_run else upgrade_schema
    found = asyncio.run(_with_database(loaded, work, to_write=not dry_run))
    if as_json:
        key = "pending" if dry_run else "applied"
        echo_json({key: [migration.number for migration in found.pending]})
        return
    if found.is_current:
        click.echo("up to date, nothing to do")
    verb = "would apply" if dry_run else "applied"
    for migration in found.pending:
        click.echo(f"{verb} {migration.number} ({migration.name})")


async def _with_database(
    loaded: LoadedSettings, work: Callable[[Database], Awaitable[SchemaStatus]], *, to_write: bool
) -> SchemaStatus:
    database = await connect(database_url(loaded.settings), to_write=to_write)
    try:
        return await work(database)
    finally:
        await database.close()
