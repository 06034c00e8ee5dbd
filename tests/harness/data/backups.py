"""A catalog worth backing up: tables with branches, tags and indexes, views, jobs; and writers."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import lance
import pyarrow as pa
from click.testing import CliRunner

from penstock.cli.main import penstock
from penstock.errors import PenstockError
from tests.harness.clients.iceberg import Iceberg
from tests.harness.clients.iceberg_views import create_body
from tests.harness.data.arrow import HEADERS, people, send, to_stream
from tests.harness.data.functions import envelope
from tests.harness.processes.servers import Server

NAMESPACE = "shop"
TABLES = ("people", "orders", "loose")


def run(*arguments: object, code: int = 0) -> Any:
    """Run a command with `--json` in this process; returns what it printed, or its error."""
    done = CliRunner().invoke(penstock, [*map(str, arguments), "--json"])
    if isinstance(error := done.exception, PenstockError):
        assert code == 2, f"{error.message}; {error.detail}"
        return f"{error.message}; {error.detail}"
    assert done.exit_code == code, f"{done.output}{done.exception!r}"
    return json.loads(done.stdout)


def look_deep(*arguments: object, code: int = 0) -> list[str]:
    """What `doctor --deep` says of the lake."""
    found = run("doctor", "--deep", *arguments, code=code)
    return [each["found"] for each in found if each["part"] in ("lake", "missing")]


def fill(server: Server) -> None:
    """Make namespaces, tables of each kind, views, a function and a job that waits."""
    post = _poster(server)
    post(f"namespace/{NAMESPACE}/create")
    for name in TABLES:
        id = f"{NAMESPACE}${name}"
        if name == "loose":
            # Its versions are not the catalog's: others write it by path.
            post(f"table/{id}/declare", {"properties": {"penstock.managed_versioning": "false"}})
            location = post(f"table/{id}/describe")["location"]
            lance.write_dataset(people(0, 1), location)
            continue
        send(server, f"/v1/table/{id}/create", people(*range(10))).raise_for_status()
        post(f"table/{id}/branches/create", {"name": "dev"})
        send(server, f"/v1/table/{id}/insert", people(100), branch="dev").raise_for_status()
        post(f"table/{id}/tags/create", {"tag": "first", "version": 1})
        post(f"table/{id}/create_scalar_index", {"column": "id", "index_type": "BTREE"})
        post(f"table/{id}/delete", {"predicate": "id = 3"})
    computed = {"new_columns": [{"name": "length", "computed": "length(name)"}]}
    post(f"table/{NAMESPACE}$orders/add_columns", computed)
    post(f"table/{NAMESPACE}$orders/backfill_column", {"column": "length"})
    made = {"udf": envelope(b"\x80\x05N."), "inputs": [{"name": "id"}]}
    post(f"function/{NAMESPACE}$same/create", made | {"outputs": [{"data_type": "int64"}]})
    named = {"name": "same", "function": {"name": [NAMESPACE, "same"]}}
    post(f"table/{NAMESPACE}$orders/add_columns", {"new_columns": [named]})
    Iceberg(server).post(f"namespaces/{NAMESPACE}/views", create_body("seen")).ok()


def _poster(server: Server) -> Any:
    def post(path: str, body: Any = None) -> Any:
        answer = server.post(f"/v1/{path}", body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else {}

    return post


@dataclass
class Writers:
    """Threads that append one row after the other to tables, and make and drop others."""

    server: Server
    acknowledged: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def write(self, name: str) -> None:
        with httpx.Client(base_url=self.server.url, timeout=60, trust_env=False) as client:
            number = 1_000
            while not self._stop.is_set():
                path = f"/v1/table/{NAMESPACE}${name}/insert"
                answer = client.post(path, content=to_stream(people(number)), headers=HEADERS)
                if answer.status_code >= 300:
                    self.failures.append(answer.text)
                number += 1
                self.acknowledged[name] = number
                # As many versions as a test has time to read, however slow the machine is.
                self._stop.wait(0.05)

    def churn(self) -> None:
        with httpx.Client(base_url=self.server.url, timeout=60, trust_env=False) as client:
            while not self._stop.is_set():
                path = f"/v1/table/{NAMESPACE}$passing"
                client.post(f"{path}/create", content=to_stream(people(1)), headers=HEADERS)
                client.post(f"{path}/drop", json={})
                self._stop.wait(0.05)

    def stop(self) -> None:
        self._stop.set()


@contextlib.contextmanager
def writing(server: Server) -> Iterator[Writers]:
    """Writers for the length of a block; none of what they send may be refused."""
    writers = Writers(server)
    threads = [threading.Thread(target=writers.write, args=(name,)) for name in TABLES[:2]]
    threads.append(threading.Thread(target=writers.churn))
    for thread in threads:
        thread.start()
    try:
        yield writers
    finally:
        writers.stop()
        for thread in threads:
            thread.join()
    assert writers.failures == []


def read_all(server: Server) -> dict[tuple[str, str, int], pa.Table]:
    """Every version of every table that a server lists, read whole by its location."""
    found = {}
    for name in (*TABLES, "passing"):
        id = f"{NAMESPACE}${name}"
        described = server.post(f"/v1/table/{id}/describe")
        if described.status_code == 404:
            continue
        location = described.json()["location"]
        for branch in ("", "dev") if name in TABLES[:2] else ("",):
            body = {"branch": branch} if branch else {}
            listed = server.post(f"/v1/table/{id}/version/list", **body).raise_for_status()
            for version in listed.json()["versions"]:
                number = version["version"]
                dataset = lance.dataset(location).checkout_version((branch or None, number))
                found[name, branch, number] = dataset.to_table()
    return found


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder, with its size and time."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }
