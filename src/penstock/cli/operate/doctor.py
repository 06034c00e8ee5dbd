"""`penstock doctor`: whether this machine has what is needed, and how to mend what is missing."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import click
import msgspec

from penstock.cli.options import settings_options
from penstock.cli.output import as_json_option, echo_json
from penstock.errors import PenstockError, Unavailable
from penstock.extras import list_missing, show_install, show_some
from penstock.runner.java import find_java
from penstock.sdk.connection.connect import API_KEY
from penstock.sdk.connection.optional_libraries import check_extras
from penstock.sdk.connection.server_choice import URL, choose_server, find_folder
from penstock.sdk.connection.server_note import answers
from penstock.sdk.connection.wire import Wire
from penstock.settings.load import LoadedSettings
from penstock.settings.places import allowed_roots, database_url, lake_root
from penstock.settings.redact import redact_url
from penstock.settings.sections import clusters_of

PYTHON = (3, 11)
FREE_GB = 1
MEND = (
    "bring the files back, from a backup or the store's own versioning; old versions that were "
    "cleaned up on purpose are forgotten when the table's versions are listed"
)
OK, WARN, BAD = "ok", "warn", "bad"
COLOURS = {OK: "green", WARN: "yellow", BAD: "red"}


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a check found, and how to fix it."""

    part: str
    state: str
    found: str
    remedy: str = ""


Check = Callable[[LoadedSettings], Finding]


@click.command()
@click.option(
    "--deep",
    is_flag=True,
    help="Also look at the manifest and the files of every version that the catalog knows.",
)
@settings_options
@as_json_option
@click.pass_context
def command(context: click.Context, loaded: LoadedSettings, *, deep: bool, as_json: bool) -> None:
    """Check Python, Java, Spark, database, storage, server and runner.

    The exit code is 1 when something that is needed is missing.

    \b
    Examples:
      penstock doctor
      penstock doctor --deep --data /srv/penstock
      penstock doctor --json | jq '.[] | select(.state != "ok")'
    """
    found = list(examine(loaded))
    if deep:
        check_extras("`penstock doctor --deep`", "server")
        found += asyncio.run(look_deep(loaded, as_json=as_json))
    if as_json:
        echo_json(found)
    else:
        for each in found:
            mark = click.style(f"{each.state:<4}", fg=COLOURS[each.state])
            click.echo(f"{mark}  {each.part:<9} {each.found}")
            if each.remedy:
                click.echo(f"{'':<16} to mend it: {each.remedy}")
    if any(each.state == BAD for each in found):
        context.exit(1)


def examine(loaded: LoadedSettings) -> Iterator[Finding]:
    """One finding per part, in the order in which they depend on each other."""
    for check in CHECKS:
        yield check(loaded)


async def look_deep(loaded: LoadedSettings, *, as_json: bool) -> list[Finding]:
    """What is wrong with the lake's contents, and how much was checked."""
    from penstock.backups.inspection import inspect_catalog
    from penstock.cli.operate.progress import ProgressPrinter
    from penstock.database.connect import connect
    from penstock.lance.storage.lake import Lake

    settings = loaded.settings
    lake = Lake(lake_root(settings), allowed_roots(settings), dict(settings.storage.options))
    try:
        database = await connect(database_url(settings), 1, to_write=False)
        try:
            seen = await inspect_catalog(database, lake, ProgressPrinter("looked at", as_json))
        finally:
            await database.close()
    except PenstockError as error:
        return [Finding("lake", BAD, error.message, error.detail)]
    finally:
        lake.close()
    counts = (
        f"{seen.tables} tables with {seen.versions} versions and {seen.files} files, "
        f"{seen.views} Iceberg views, {seen.iceberg_tables} Iceberg tables"
    )
    if not seen.missing:
        return [Finding("lake", OK, f"{counts}; everything is there")]
    summary = Finding("lake", BAD, f"{counts}; {len(seen.missing)} things are missing", MEND)
    return [summary, *(Finding("missing", BAD, f"{m.what}: {m.wrong}") for m in seen.missing)]


def check_python(loaded: LoadedSettings) -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < PYTHON:
        wanted = ".".join(map(str, PYTHON))
        return Finding("python", BAD, version, f"install Python {wanted} or newer")
    return Finding("python", OK, f"{version}, {sys.executable}")


def check_packages(loaded: LoadedSettings) -> Finding:
    wanted = ["client", "server", "runner"]
    if loaded.settings.server.flight_port:
        wanted.append("flight")
    missing = {extra: names for extra in wanted if (names := list_missing(extra))}
    if missing:
        told = "; ".join(f"{extra} lacks {show_some(names)}" for extra, names in missing.items())
        return Finding("packages", BAD, told, show_install(*missing))
    return Finding("packages", OK, "all that client, server and runner need")


def check_java(loaded: LoadedSettings) -> Finding:
    try:
        return Finding("java", OK, str(find_java(os.environ)))
    except Unavailable as error:
        return Finding("java", BAD, error.message, error.detail)


def check_spark(loaded: LoadedSettings) -> Finding:
    if find_spec("pyspark") is None:
        return Finding("spark", BAD, "pyspark is missing", show_install("runner"))
    clusters = clusters_of(loaded.settings)
    shown = ", ".join(f"{name} ({c.remote or c.master})" for name, c in clusters.items())
    return Finding("spark", OK, f"PySpark {version('pyspark')}; clusters: {shown}")


def check_database(loaded: LoadedSettings) -> Finding:
    url = database_url(loaded.settings)
    shown = redact_url(url)
    if url.startswith("sqlite") and not _sqlite_file(url).exists():
        return Finding("database", OK, f"{shown} is made at the first start")
    if list_missing("server"):
        return Finding("database", WARN, f"{shown} is not looked at without the server's packages")
    try:
        pending = asyncio.run(_read_pending(url))
    except PenstockError as error:
        return Finding("database", BAD, f"{shown}: {error.message}", error.detail or "start it")
    if pending:
        return Finding("database", WARN, f"{shown} is older", "penstock db upgrade")
    return Finding("database", OK, shown)


def check_storage(loaded: LoadedSettings) -> Finding:
    folder = Path(loaded.settings.storage.data).expanduser().absolute()
    parent = next(each for each in (folder, *folder.parents) if each.exists())
    if not os.access(parent, os.W_OK):
        return Finding(
            "storage", BAD, f"{parent} cannot be written", "choose another folder with --data"
        )
    free = shutil.disk_usage(parent).free / 1e9
    if free < FREE_GB:
        return Finding("storage", WARN, f"{free:.1f} GB free at {parent}", "free some space")
    return Finding("storage", OK, f"{folder}, {free:.0f} GB free")


def check_server(loaded: LoadedSettings) -> Finding:
    """Whether there is one that commands and the SDK would ask."""
    chosen = choose_server(data=None if os.environ.get(URL) else loaded.settings.storage.data)
    if chosen is None:
        folder = find_folder(loaded.settings.storage.data)
        return Finding("server", WARN, f"none works on {folder}", "penstock serve")
    if answers(chosen.url):
        return Finding("server", OK, str(chosen))
    mend = f"penstock serve there, or name another in {URL}"
    return Finding("server", BAD, f"{chosen} does not answer", mend)


def check_runner(loaded: LoadedSettings) -> Finding:
    """Whether one works for that server, or would once there is a server."""
    running = choose_server(data=None if os.environ.get(URL) else loaded.settings.storage.data)
    if running is None:
        if not loaded.settings.runner.start:
            told = "the server will start none (runner.start is off)"
            return Finding("runner", WARN, told, "penstock runner --url URL")
        return Finding("runner", OK, "`penstock serve` starts one with the server")
    wire = Wire(running, os.environ.get(API_KEY) or None, retry_seconds=0, verify=False)
    try:
        runners = wire.read("/v1/overview")["runners"]
    except PenstockError as error:
        told = f"{running.url} does not tell of runners: {error.message}"
        return Finding("runner", WARN, told, f"set {API_KEY} to a key of the server")
    finally:
        wire.close()
    away = [each for each in runners if not each["alive"]]
    if not away:
        clusters = ", ".join(each["cluster"] for each in runners)
        return Finding("runner", OK, f"one asks {running.url} for jobs of cluster {clusters}")
    why, mend = [], f"penstock runner --url {running.url}"
    for each in away:
        trouble, _, remedy = (each["trouble"] or "").partition("; ")
        mend = remedy or mend
        why.append(
            f"that of cluster {each['cluster']} cannot work: {trouble}"
            if trouble
            else f"none asks {running.url} for jobs of cluster {each['cluster']}"
        )
    return Finding("runner", WARN, "; ".join(why), mend)


CHECKS: tuple[Check, ...] = (
    check_python,
    check_packages,
    check_java,
    check_spark,
    check_database,
    check_storage,
    check_server,
    check_runner,
)


def _sqlite_file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


async def _read_pending(url: str) -> bool:
    from penstock.database.connect import connect
    from penstock.database.schema import get_status

    database = await connect(url, to_write=False)
    try:
        return not (await get_status(database)).is_current
    finally:
        await database.close()
