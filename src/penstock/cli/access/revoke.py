"""`penstock revoke`: take a role back."""

import click

from penstock.catalog.access import grants
from penstock.cli.access.grant_changes import GrantChange, change_grant, grant_options
from penstock.settings.load import LoadedSettings


@click.command()
@grant_options
def command(loaded: LoadedSettings, grant_change: GrantChange) -> None:
    """Take the ROLE back from PRINCIPAL (or group:NAME), at once and on every server.

    Without an option it is the one on the whole catalog.

    \b
    Examples:
      penstock revoke ada owner --namespace shop --dry-run
    """
    verb = "would not be" if grant_change.dry_run else "is not"
    told = f"{grant_change.principal} {verb} {grant_change.role} of {grant_change.target} any more"
    change_grant(loaded, grant_change, "RevokeGrant", grants.revoke_in, told)
