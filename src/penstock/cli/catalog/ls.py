"""`penstock ls`: the namespaces, tables, views and functions below a name."""

import click

from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, echo_json, echo_table
from penstock.sdk.lake import Lake


@click.command()
@click.argument("namespace", default="")
@lake_option
@as_json_option
def command(lake: Lake, *, namespace: str, as_json: bool) -> None:
    """List what is in NAMESPACE, or at the root.

    \b
    Examples:
      penstock ls
      penstock ls shop
      penstock ls shop --json | jq -r '.[].name'
    """
    found = [("namespace", name) for name in lake.namespaces(namespace)]
    found += [("table", name) for name in lake.tables(namespace)]
    found += [("view", name) for name in lake.views(namespace)]
    found += [("iceberg table", name) for name in lake.tables(namespace, kind="iceberg")]
    found += [("iceberg view", name) for name in lake.views(namespace, kind="iceberg")]
    found += [("function", name) for name in lake.functions(namespace)]
    if as_json:
        echo_json([{"kind": kind, "name": name} for kind, name in found])
    elif found:
        echo_table([("kind", "name"), *found])
    else:
        click.echo(f"nothing in {namespace or 'the lake'} yet", err=True)
