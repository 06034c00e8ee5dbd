"""`penstock config`: each setting, its value and where the value comes from."""

import json

import click

from penstock.cli.options import settings_options
from penstock.cli.output import as_json_option
from penstock.settings.keys import list_keys
from penstock.settings.load import LoadedSettings
from penstock.settings.redact import redact


@click.command()
@settings_options
@as_json_option
def command(loaded: LoadedSettings, *, as_json: bool) -> None:
    """Print each setting and where its value comes from.

    \b
    Examples:
      penstock config
      penstock config --json | jq '."server.port"'
    """
    values = shown_values(loaded)
    click.echo(json_text(loaded, values) if as_json else columns(loaded, values))


def shown_values(loaded: LoadedSettings) -> dict[str, object]:
    """The value of each dotted key, without secrets."""
    return {key.dotted: redact(key.dotted, key.read(loaded.settings)) for key in list_keys()}


def json_text(loaded: LoadedSettings, values: dict[str, object]) -> str:
    entries = {
        key: {"value": value, "source": loaded.sources[key]} for key, value in values.items()
    }
    return json.dumps(entries, indent=2)


def columns(loaded: LoadedSettings, values: dict[str, object]) -> str:
    shown = {key: json.dumps(value) for key, value in values.items()}
    key_width = max(map(len, shown))
    value_width = max(map(len, shown.values()))
    return "\n".join(
        f"{key:{key_width}}  {value:{value_width}}  {loaded.sources[key]}"
        for key, value in shown.items()
    )
