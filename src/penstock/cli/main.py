"""The `penstock` command: finds the sub-command, and prints our errors as lines on stderr.

A sub-command's module is imported only when it is called, so that `--help` and `config` are quick
and work without the server's libraries. Each module calls its click command `command`.
"""

import re
import sys
from importlib import import_module
from typing import NoReturn

import click

from penstock.errors import PenstockError
from penstock.extras import find_extra
from penstock.sdk.connection.optional_libraries import check_extras, explain_missing

# Where each sub-command lives below `penstock.cli`, and its one line of help.
COMMANDS = {
    "serve": ("operate.serve", "Start the server."),
    "runner": ("operate.runner", "Work on the jobs of a server, on Spark."),
    "demo": ("demo", "See all of it work in a minute, on a server of its own."),
    "doctor": (
        "operate.doctor",
        "Check Python, Java, Spark, database, storage, server and runner.",
    ),
    "status": (
        "operate.status",
        "Tell how the server is: ready or not, what it holds, which jobs it has.",
    ),
    "ls": ("catalog.ls", "List namespaces, tables, views and functions."),
    "describe": ("catalog.describe", "Tell what a table or view is."),
    "impact": ("catalog.impact", "Tell what depends on a table or column, and would break."),
    "rename": ("catalog.rename", "Give a table or view another name."),
    "query": ("catalog.query", "Print rows of a table or view."),
    "sql": ("catalog.sql", "Run a query over tables and views, and print or save its rows."),
    "views": (
        "catalog.views",
        "List, make, refresh, explain, verify, rename and drop materialized views.",
    ),
    "functions": (
        "catalog.functions",
        "List, show, disable, enable and drop functions that have a name.",
    ),
    "backfill": ("jobs.backfill", "Fill a computed column where it needs it."),
    "explain": ("jobs.explain", "Tell what a refresh or a backfill would do."),
    "jobs": ("jobs.jobs", "List, show, watch and cancel jobs; read their logs and errors."),
    "token": ("access.token", "Make, list and revoke keys."),
    "grant": ("access.grant", "Give a principal or group a role."),
    "grants": ("access.grants", "List who holds which role on what."),
    "revoke": ("access.revoke", "Take a role back."),
    "config": ("operate.config", "Print each setting and where its value comes from."),
    "backup": ("operate.backup", "Copy the catalog and its lake as they are at this moment."),
    "restore": ("operate.restore", "Make a new catalog and lake of a backup."),
    "relocate": ("operate.relocate", "Tell a catalog that its lake was moved."),
    "db": ("operate.db", "Show or upgrade the catalog's database."),
    "completion": ("completion", "Print the script with which a shell completes our commands."),
}

# What commands need that do their work themselves; the others ask a server.
EXTRAS = {
    **dict.fromkeys(("serve", "backup", "restore", "relocate", "db"), ("server",)),
    **dict.fromkeys(("token", "grant", "grants", "revoke"), ("server",)),
    "runner": ("runner",),
    "demo": ("server", "runner"),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and one line of help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def load_command(name: str) -> click.Command:
    """Import the module of a sub-command."""
    check_extras(f"`penstock {name}`", *EXTRAS.get(name, ()))
    command: click.Command = import_module(f"penstock.cli.{COMMANDS[name][0]}").command
    return command


# How errors name the options that calls have as well.
ARGUMENT = re.compile(r"\b(cascade|force)=True")
EPILOG = """\b
Exit codes: 0 done; 1 done, and the answer is no (a job failed, a view differs);
2 the request was wrong or could not be carried out; 3 a job is done, but for rows
that its function failed on."""


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="penstock", message="penstock %(version)s")
def penstock() -> None:
    """A catalog server and data pipeline for Lance tables and Iceberg views."""


def main() -> None:
    """Run the command line; our own errors exit with code 2."""
    try:
        penstock(prog_name="penstock")
    except PenstockError as error:
        _fail(error)
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if not (extra := find_extra(module)):
            raise
        _fail(explain_missing("this", [module], extra))


def _fail(error: PenstockError) -> NoReturn:
    lines = error.message.splitlines()
    if error.detail:
        lines[-1] += "; " + ARGUMENT.sub(r"--\1", error.detail)
    for line in lines:
        click.echo(f"penstock: {line}", err=True)
    sys.exit(2)
