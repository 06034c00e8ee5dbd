"""`penstock describe`: what a table or view is."""

from typing import Any

import click

from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, echo_json, echo_pairs, echo_table
from penstock.sdk.lake import Lake
from penstock.sdk.show import show_filler
from penstock.sdk.tables.iceberg_table import IcebergTable
from penstock.sdk.tables.table import Table
from penstock.sdk.views.iceberg_views import IcebergView
from penstock.sdk.views.view import View


@click.command()
@click.argument("name")
@lake_option
@as_json_option
def command(lake: Lake, *, name: str, as_json: bool) -> None:
    """Tell what the table or view NAME is: columns, versions, freshness.

    The rows of computed columns are counted: fresh, stale, unfilled and failed ones.

    \b
    Examples:
      penstock describe shop.items
      penstock describe shop.items --json | jq .schema
    """
    table = lake.open(name)
    if isinstance(table, IcebergTable):
        _echo_iceberg_table(table, as_json)
        return
    if isinstance(table, IcebergView):
        _echo_iceberg_view(table, as_json)
        return
    told = table.describe()
    view = told.get("view")
    if as_json:
        echo_json({**told, "computed": table.computed_columns()})
        return
    pairs = [
        ("name", table.name),
        ("kind", "table" if view is None else f"view ({view['kind']})"),
        ("version", str(table.version())),
        ("rows", f"{table.count():,}"),
        ("location", str(told["location"])),
    ]
    if isinstance(table, View):
        pairs += [("query", table.query()), ("freshness", str(table.freshness()))]
    echo_pairs(pairs)
    click.echo()
    echo_table([("column", "type", "filled by"), *_columns(table)])


def _echo_iceberg_table(table: IcebergTable, as_json: bool) -> None:
    told = table.describe()
    if as_json:
        echo_json(told)
        return
    echo_pairs(
        [
            ("name", table.name),
            ("kind", f"iceberg table (version {told['format_version']} of the format)"),
            ("snapshot", str(told.get("snapshot", "none"))),
            ("rows", f"{told['rows']:,}" if "rows" in told else "not told"),
            ("partitioning", ", ".join(told["partitioning"]) or "none"),
            ("location", str(told["location"])),
        ]
    )
    click.echo()
    _echo_columns(told)


def _echo_columns(told: dict[str, Any]) -> None:
    fields = told["schema"]["fields"]
    echo_table([("column", "type"), *((each["name"], each["type"]["type"]) for each in fields)])


def _echo_iceberg_view(view: IcebergView, as_json: bool) -> None:
    told = view.describe()
    if as_json:
        echo_json(told)
        return
    echo_pairs(
        [
            ("name", view.name),
            ("kind", "iceberg view"),
            ("version", str(told["version"])),
            ("dialects", ", ".join(told["dialects"])),
            ("query", str(told["query"])),
        ]
    )
    click.echo()
    _echo_columns(told)


def _columns(table: Table | View) -> list[tuple[str, ...]]:
    computed = table.computed_columns()
    return [
        (field.name, str(field.type), show_filler(computed.get(field.name)))
        for field in table.schema()
    ]
