"""`penstock grant`: give a principal or group a role."""

import click

from penstock.cli.access.granting import Wish, fulfil, wish_options
from penstock.settings.load import Loaded


@click.command()
@wish_options
def command(loaded: Loaded, wish: Wish) -> None:
    """Give PRINCIPAL (or group:NAME) the ROLE reader, writer, owner or functions.

    Without an option it is on the whole catalog.

    \b
    Examples:
      penstock grant ada owner --namespace shop
      penstock grant group:readers reader
    """
    from penstock.catalog.access import grants
    from penstock.model.principals import check_grantee
    from penstock.model.rights import check_role

    check_grantee(wish.principal)
    check_role(wish.role)
    verb = "would become" if wish.dry_run else "is"
    told = f"{wish.principal} {verb} {wish.role} of {wish.target}"
    fulfil(loaded, wish, "CreateGrant", grants.create_in, told)
