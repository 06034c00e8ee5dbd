"""`penstock demo`: a server, a table and a view made and read through it, told line by line."""

import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import lance
import pyarrow as pa
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest, ListTableVersionsRequest

from penstock.cli import demo_view

TABLE = ["demo", "people"]
STOP_SECONDS = 20


@click.command()
def command() -> None:
    """Start a server, use a table and a view through it, and say what happened."""
    # pylance remarks on its own experimental parts; that is not for this audience.
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
        with _server(Path(folder)) as url:
            _tell("server", f"started on {url}, SQLite and files in {folder}")
            connect: Any = RestNamespace
            _write_and_read(connect(uri=url))
            demo_view.show(url, _tell)
        _tell("server", "stopped; the demo's files are deleted")


def _write_and_read(catalog: RestNamespace) -> None:
    catalog.create_namespace(CreateNamespaceRequest(id=TABLE[:1]))
    _tell("namespace", f"{TABLE[0]} created")
    dataset = lance.write_dataset(
        _people(0, 1000), namespace_client=catalog, table_id=TABLE, mode="create"
    )
    _tell("write", f"1,000 rows -> {'$'.join(TABLE)}, version {dataset.version}")
    dataset.delete("id < 10")
    _tell("delete", f"10 rows, version {dataset.version}")
    _race(catalog)
    dataset = lance.dataset(namespace_client=catalog, table_id=TABLE)
    listed = catalog.list_table_versions(ListTableVersionsRequest(id=TABLE)).versions
    _tell("versions", f"the catalog lists {', '.join(str(v.version) for v in listed)}")
    rows = dataset.count_rows()
    by_path = lance.dataset(dataset.uri).count_rows()
    _tell("read", f"{rows:,} rows through the catalog, {by_path:,} by path")
    first = dataset.to_table(limit=2, filter="id >= 10").to_pylist()
    _tell("read", f"the first ones: {first}")
    if not rows == by_path == 1000 - 10 + 2 * 100:
        raise click.ClickException(f"expected 1,190 rows, found {rows} and {by_path}")


def _race(catalog: RestNamespace) -> None:
    """Two writers start from the same version; the catalog lets both in, one after the other."""
    stale = [lance.dataset(namespace_client=catalog, table_id=TABLE) for _ in range(2)]
    writers = [
        threading.Thread(target=dataset.insert, args=(_people(1000 + 100 * n, 100),))
        for n, dataset in enumerate(stale)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    reached = sorted(dataset.version for dataset in stale)
    _tell(
        "race", f"two writers appended 100 rows each at once, versions {reached[0]}, {reached[1]}"
    )


def _people(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table({"id": ids, "name": [f"person {n}" for n in ids]})


def _tell(what: str, text: str) -> None:
    click.echo(f"{what:<10} {text}")


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """A server of its own process, stopped with the block."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "penstock",
            "serve",
            "--port",
            "0",
            "--data",
            str(folder),
            "--no-runner",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        if "serves" not in first:
            raise click.ClickException("the server did not start; its lines above say why")
        yield first.rpartition(" ")[2].strip()
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)
