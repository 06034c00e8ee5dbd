"""`penstock runner`: work on the jobs of a server."""

import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock import crash
from penstock.cli.lake import ELSE, find_server
from penstock.cli.unpickling import refuse_pickles
from penstock.errors import InvalidRequest
from penstock.runner.java import find_java
from penstock.sdk.connection.server_choice import ServerChoice
from penstock.settings.load import load
from penstock.settings.sections import Settings, clusters_of

if TYPE_CHECKING:
    from penstock.runner.secrets import SecretStore


@click.command()
@click.option("--url", metavar="URL", help=f"Address of the server; {ELSE}.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with the key that the server knows us by; or set PENSTOCK_TOKEN.",
)
@click.option("--token-stdin", is_flag=True, help="Read the key from the first line of input.")
@click.option("--cluster", metavar="NAME", help="Work for this cluster only.")
@click.option(
    "--metrics-port", metavar="PORT", type=int, default=0, help="Tell Prometheus on this port."
)
@click.option(
    "--data", metavar="DIR", help="Folder that gets `runner` with environments and Spark's log."
)
@click.option("--child", is_flag=True, hidden=True, help="A server started us.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Settings file, instead of penstock.toml in the working directory.",
)
def command(
    *,
    url: str | None,
    token_file: Path | None,
    token_stdin: bool,
    cluster: str | None,
    metrics_port: int,
    data: str | None,
    child: bool,
    config: Path | None,
) -> None:
    """Lease jobs from a server and run them on Spark, until Ctrl-C or SIGTERM.

    The clusters come from the settings; without any, Spark runs on this machine.

    \b
    Examples:
      penstock runner --url http://127.0.0.1:2333
      penstock runner --url https://lake.internal --cluster big --token-file key
    """
    from penstock.server import logs

    server = find_server(url)
    loaded = load(config, os.environ, {"storage.data": data} if data else {})
    settings = loaded.settings
    token = _read_token(token_file, token_stdin)
    logs.configure(settings.log.level, settings.log.format)
    clusters = clusters_of(settings)
    if cluster is not None and cluster not in clusters:
        raise InvalidRequest(
            f"there is no cluster {cluster!r}", detail="the settings have " + ", ".join(clusters)
        )
    if not child:
        # A server's own runner tells its server instead, and waits for a Java.
        find_java(os.environ)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    names = [cluster] if cluster else list(clusters)
    if len(names) > 1:
        from penstock.runner.fleet import run_fleet

        again = [sys.executable, "-m", "penstock", *sys.argv[1:]]
        commands = {name: [*again, "--cluster", name] for name in names}
        if metrics_port:
            # The last option wins: each process gets a port of its own.
            for place, arguments in enumerate(commands.values()):
                arguments += ["--metrics-port", str(metrics_port + place)]
        run_fleet(commands, stop, token if token_stdin else "")
        return
    forget_secrets(os.environ)
    from penstock.runner.secrets import SecretStore

    secrets = SecretStore(settings.secrets.variables, settings.secrets.folder, os.environ)
    secrets.guard_logs()
    refuse_pickles()
    # A remote runner has no data folder, and must not create one in its working directory.
    is_set = loaded.sources["storage.data"] != "default"
    home = Path(settings.storage.data).expanduser().absolute() if is_set else _cache()
    _run(settings, names[0], home / "runner", server, token, metrics_port, stop, secrets)
    # Threads of Spark's libraries may hang on a dead session.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _read_token(file: Path | None, from_input: bool) -> str:
    """Read the key; never from the command line, which every user of the machine can read."""
    if from_input:
        return sys.stdin.readline().strip()
    if file is None:
        return os.environ.get("PENSTOCK_TOKEN", "")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"--token-file {file} cannot be read: {error}") from error


def forget_secrets(environ: MutableMapping[str, str]) -> None:
    """Remove our secrets before Spark and its functions inherit the environment."""
    for name in [name for name in environ if name.startswith("PENSTOCK_")]:
        if name != crash.VARIABLE:
            del environ[name]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def _run(
    settings: Settings,
    name: str,
    folder: Path,
    server: ServerChoice,
    token: str,
    metrics_port: int,
    stop: threading.Event,
    secrets: "SecretStore",
) -> None:
    # Lance warns at every column commit that the operation is new; our tests cover it.
    os.environ.setdefault("LANCE_LOG", "error")
    from penstock.lance.session.remote import RemoteCatalog
    from penstock.runner.client import ServerClient
    from penstock.runner.loop import Runner
    from penstock.runner.metrics import RunnerMetrics
    from penstock.runner.session import Session, hush_spark

    hush_spark()
    metrics = RunnerMetrics()
    if metrics_port:
        metrics.serve("127.0.0.1", metrics_port)
    session = Session(name, clusters_of(settings)[name], folder)
    if settings.runner.warm:
        session.start()
    runner = Runner(
        f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
        ServerClient(server.url, token),
        RemoteCatalog(server.url, token, settings.storage.options),
        session,
        folder,
        settings.runner.jobs,
        metrics,
        secrets,
    )
    click.echo(f"penstock runner of cluster {name} works for {server}")
    runner.run(stop)
