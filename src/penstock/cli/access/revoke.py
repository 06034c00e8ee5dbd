"""`penstock revoke`: take a role back."""

import click

from penstock.cli.access.granting import Wish, fulfil, wish_options
from penstock.settings.load import Loaded


@click.command()
@wish_options
def command(loaded: Loaded, wish: Wish) -> None:
    """Take the ROLE back from PRINCIPAL (or group:NAME), at once and on every server.

    Without an option it is the one on the whole catalog.

    \b
    Examples:
      penstock revoke ada owner --namespace shop --dry-run
    """
    from penstock.catalog.access import grants

    verb = "would not be" if wish.dry_run else "is not"
    told = f"{wish.principal} {verb} {wish.role} of {wish.target} any more"
    fulfil(loaded, wish, "RevokeGrant", grants.revoke_in, told)
