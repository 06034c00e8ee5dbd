"""`penstock backup`: copy the catalog and its lake as they are at this moment."""

import asyncio

import click

from penstock.backups.archive import BackupInfo
from penstock.backups.make_backup import make
from penstock.cli.operate.progress import ProgressPrinter, lake_at
from penstock.cli.options import settings_options
from penstock.cli.output import as_json_option, echo_json
from penstock.database.connect import connect
from penstock.lance.storage.lake import Lake
from penstock.settings.load import LoadedSettings
from penstock.settings.places import allowed_roots, database_url, lake_root


@click.command()
@click.argument("folder", metavar="DIR")
@settings_options
@as_json_option
@click.pass_context
def command(context: click.Context, loaded: LoadedSettings, *, folder: str, as_json: bool) -> None:
    """Copy the catalog and its lake, as they are at this moment, into DIR.

    Servers may run and writers write. DIR is a new folder, or an s3://, gs:// or az:// URI that is
    reached with storage.options. The exit code is 1 when the newest version of a table could not
    be read, and so is not in the backup.

    \b
    Examples:
      penstock backup /backups/2026-11-17
      penstock backup s3://backups/penstock/2026-11-17 --config penstock.toml --json
    """
    page = asyncio.run(_make(loaded, folder, ProgressPrinter("copied", as_json)))
    lost = [each for each in page.left_out if each.is_newest]
    if as_json:
        echo_json(
            {
                "catalog": page.catalog,
                "root": page.root,
                "at_millis": page.at_millis,
                "tables": len(page.tables),
                "files": page.files,
                "bytes": page.bytes,
                "rows": sum(page.rows.values()),
                "left_out": page.left_out,
                "iceberg_tables": page.iceberg_tables,
            }
        )
    else:
        click.echo(f"{folder}: {len(page.tables)} tables, {page.files} files, {page.bytes} bytes")
        for each in page.left_out:
            branch = each.branch or "main"
            click.echo(
                f"not in it: {each.table}, branch {branch}, version {each.version}: {each.why}"
            )
        if page.iceberg_tables:
            click.echo(
                f"not in it: {len(page.iceberg_tables)} Iceberg tables; backup.json names them and "
                "their metadata files, by which they can be registered"
            )
    if lost:
        context.exit(1)


async def _make(loaded: LoadedSettings, folder: str, tell: ProgressPrinter) -> BackupInfo:
    settings = loaded.settings
    lake = Lake(lake_root(settings), allowed_roots(settings), dict(settings.storage.options))
    target = lake_at(folder, settings)
    # Two connections: one renews the hold while the other reads.
    database = await connect(database_url(settings), 2, beside=True)
    try:
        return await make(database, lake, target, tell)
    finally:
        await database.close()
        lake.close()
        target.close()
