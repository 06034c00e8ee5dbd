"""`penstock grant`: give a principal or group a role."""

import click

from penstock.catalog.access import grants
from penstock.cli.access.grant_changes import GrantChange, change_grant, grant_options
from penstock.model.principals import check_grantee
from penstock.model.rights import check_role
from penstock.settings.load import LoadedSettings


@click.command()
@grant_options
def command(loaded: LoadedSettings, grant_change: GrantChange) -> None:
    """Give PRINCIPAL (or group:NAME) the ROLE reader, writer, owner or functions.

    Without an option it is on the whole catalog.

    \b
    Examples:
      penstock grant ada owner --namespace shop
      penstock grant group:readers reader
    """
    check_grantee(grant_change.principal)
    check_role(grant_change.role)
    verb = "would become" if grant_change.dry_run else "is"
    told = f"{grant_change.principal} {verb} {grant_change.role} of {grant_change.target}"
    change_grant(loaded, grant_change, "CreateGrant", grants.create_in, told)
