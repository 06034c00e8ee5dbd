"""`penstock restore`: make a new catalog and lake of a backup."""

import asyncio

import click

from penstock.backups.restore_backup import Restoration, restore
from penstock.cli.operate.progress import ProgressPrinter, lake_at
from penstock.cli.options import settings_options
from penstock.cli.output import as_json_option, echo_json
from penstock.database.connect import connect
from penstock.lance.storage.lake import Lake
from penstock.settings.load import LoadedSettings
from penstock.settings.places import allowed_roots, database_url, lake_root
from penstock.settings.redact import redact_url


@click.command()
@click.argument("folder", metavar="DIR")
@settings_options
@as_json_option
def command(loaded: LoadedSettings, *, folder: str, as_json: bool) -> None:
    """Make a new catalog, with a lake of its own, of the backup in DIR.

    --data (or storage.root) and --database say where; there must be nothing yet. A backup of a
    SQLite catalog can be restored into PostgreSQL, and the other way round. The old catalog and
    its lake are not touched. Jobs that had not ended at the moment of the backup are canceled.

    \b
    Examples:
      penstock restore /backups/2026-11-17 --data /srv/restored
      penstock restore /backups/2026-11-17 --data /srv/drill --database postgresql://localhost/drill
    """
    made = asyncio.run(_restore(loaded, folder, ProgressPrinter("restored", as_json)))
    page, root = made.page, lake_root(loaded.settings)
    if as_json:
        echo_json(
            {
                "catalog": made.catalog,
                "root": root,
                "was": page.root,
                "tables": len(page.tables),
                "views": made.views,
                "bytes": page.bytes,
                "canceled_jobs": made.canceled_jobs,
            }
        )
        return
    click.echo(f"lake      {root}: {len(page.tables)} tables, {made.views} Iceberg views")
    click.echo(f"database  {redact_url(database_url(loaded.settings))}")
    click.echo(f"catalog   {made.catalog}, in place of {page.catalog}")
    if made.canceled_jobs:
        click.echo(f"canceled  {made.canceled_jobs} jobs that had not ended")
    click.echo("next      penstock doctor --deep, then penstock serve, with the same settings")


async def _restore(loaded: LoadedSettings, folder: str, tell: ProgressPrinter) -> Restoration:
    settings = loaded.settings
    lake = Lake(lake_root(settings), allowed_roots(settings), dict(settings.storage.options))
    source = lake_at(folder, settings)
    database = await connect(database_url(settings), 1)
    try:
        return await restore(database, source, lake, tell)
    finally:
        await database.close()
        lake.close()
        source.close()
