"""Flags for settings, shared by every command that reads settings."""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from penstock.settings.keys import list_keys
from penstock.settings.load import LoadedSettings, load

# The `--help` text of each flag; every setting with a flag has an entry here.
_SHAPES: dict[str, dict[str, Any]] = {
    "--host": {"metavar": "HOST"},
    "--port": {"metavar": "PORT"},
    "--data": {"metavar": "DIR"},
    "--database": {"metavar": "URL"},
    "--insecure": {
        "flag_value": "true",
        "help": "Listen beyond this machine without authentication.",
    },
    "--begin-anew": {
        "flag_value": "true",
        "help": "Take a lake over that belongs to another catalog; its tables are not known then.",
    },
    "--no-runner": {"flag_value": "false", "help": "Do not start a runner."},
}


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the settings flags; the command gets a `LoadedSettings` as its first argument."""
    flagged = {key.dotted.replace(".", "_"): key for key in list_keys() if key.flag}

    @wraps(command)
    def with_settings(*, config: Path | None, **given: Any) -> None:
        rest = {name: value for name, value in given.items() if name not in flagged}
        flags = {
            key.dotted: given[name] for name, key in flagged.items() if given[name] is not None
        }
        loaded: LoadedSettings = load(config, os.environ, flags)
        command(loaded, **rest)

    decorated = click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="Settings file, instead of penstock.toml in the working directory.",
    )(with_settings)
    for name, key in reversed(flagged.items()):
        # Values stay text here: the loader checks them, so errors read the same everywhere.
        shape = {"help": key.description.replace("`", ""), **_SHAPES[key.flag]}
        decorated = click.option(key.flag, name, **shape)(decorated)
    return decorated
