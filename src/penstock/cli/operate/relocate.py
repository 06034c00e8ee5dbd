"""`penstock relocate`: tell a catalog that its lake was moved by hand."""

import asyncio

import click

from penstock.backups.relocate_lake import Relocation, relocate
from penstock.cli.operate.progress import ProgressPrinter
from penstock.cli.options import settings_options
from penstock.cli.output import as_json_option, echo_json
from penstock.database.connect import connect, open_catalog
from penstock.errors import Unavailable
from penstock.lance.storage.lake import Lake
from penstock.settings.load import LoadedSettings
from penstock.settings.places import absolute_place, allowed_roots, database_url, lake_root


@click.command()
@click.option(
    "--was",
    metavar="ROOT",
    default="",
    help="Where the lake was; only for a catalog that no server of this release has opened yet.",
)
@settings_options
@as_json_option
def command(loaded: LoadedSettings, *, was: str, as_json: bool) -> None:
    """Tell a catalog that its lake is where --data or storage.root say now.

    Stop its servers and move, or copy, all of the lake first. Nothing is changed at the old place.

    \b
    Examples:
      penstock relocate --data /mnt/new/penstock-data
      penstock relocate --config penstock.toml --json
    """
    done = asyncio.run(_relocate(loaded, was, ProgressPrinter("relocated", as_json)))
    if as_json:
        echo_json({"was": done.was, "root": done.now, "tables": done.tables, "views": done.views})
    elif done.was == done.now:
        click.echo(f"the lake is at {done.now}, as the catalog knows; nothing to do")
    else:
        click.echo(
            f"the lake is at {done.now} now: {done.tables} tables, {done.views} Iceberg views"
        )


async def _relocate(loaded: LoadedSettings, was: str, tell: ProgressPrinter) -> Relocation:
    settings = loaded.settings
    url = database_url(settings)
    # Otherwise an empty database would become a catalog.
    await (await connect(url, 1, to_write=False)).close()
    lake = Lake(lake_root(settings), allowed_roots(settings), dict(settings.storage.options))

    async def refuse(_: object) -> None:
        raise Unavailable("the database holds no catalog", detail="name the right one")

    database = await open_catalog(url, 1, refuse)
    try:
        return await relocate(database, lake, tell, absolute_place(was) if was else "")
    finally:
        await database.close()
        lake.close()
