"""`penstock serve`: run the server."""

from importlib.metadata import version
from pathlib import Path

import click

from penstock.cli.options import settings_options
from penstock.cli.unpickling import refuse_pickles
from penstock.sdk.connection import server_note
from penstock.server import logs
from penstock.server.serve import serve
from penstock.settings.load import LoadedSettings
from penstock.settings.places import database_url, lake_root
from penstock.settings.redact import redact_url
from penstock.settings.server_sections import AuthSettings


@click.command()
@settings_options
def command(loaded: LoadedSettings) -> None:
    """Serve the catalog until Ctrl-C or SIGTERM.

    Without any option the catalog and the lake are kept in ./penstock-data.

    \b
    Examples:
      penstock serve
      penstock serve --data ./lake --port 8080 --no-runner
    """
    settings = loaded.settings
    folder = Path(settings.storage.data).expanduser()
    logs.configure(settings.log.level, settings.log.format)
    refuse_pickles()

    def tell(url: str) -> None:
        server_note.remember(folder, url)
        click.echo(f"Penstock {version('penstock')} serves {url}")
        click.echo(f"  catalog  {redact_url(database_url(settings))}")
        click.echo(f"  lake     {lake_root(settings)}")
        if settings.server.console:
            click.echo(f"  console  {url}/console")
        click.echo(f"  access   {_access(settings.auth)}")

    try:
        serve(settings, tell, loaded.file)
    finally:
        server_note.forget(folder)


def _access(auth: AuthSettings) -> str:
    if not auth.enabled:
        return (
            "everybody who reaches this address: there is no authentication (auth.enabled = true "
            "switches it on)"
        )
    return "with a key" + (f", or a token of {auth.oidc_issuer}" if auth.oidc_issuer else "")
