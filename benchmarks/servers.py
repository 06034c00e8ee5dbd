"""The servers that are measured, each a process of its own on a free port of the loopback."""

import contextlib
import http.client
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.processes import ROOT, start_command, start_module

START_SECONDS = 60
STOP_SECONDS = 30


@dataclass(frozen=True)
class Server:
    """A running server, and how long it took from its start to its first answer."""

    name: str
    port: int
    pid: int
    start_seconds: float

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One request that must succeed; returns the decoded JSON of its answer."""
        text = self.fetch(method, path, b"" if body is None else msgspec.json.encode(body))
        return msgspec.json.decode(text) if text else None

    def fetch(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The same, undecoded."""
        status, text = _ask(self.port, method, path, body)
        if status != 200:
            raise RuntimeError(f"{self.name} answered {method} {path} with {status}: {text!r}")
        return text

    def resident_mb(self) -> float:
        """Memory that the process holds now, in MB of 10^6 bytes."""
        return self._memory_mb("VmRSS")

    def peak_mb(self) -> float:
        """The most memory that the process ever held, likewise."""
        return self._memory_mb("VmHWM")

    def _memory_mb(self, field: str) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"{field}:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024 / 1e6


@contextlib.contextmanager
def penstock(data: Path, *more: str) -> Iterator[Server]:
    """`penstock serve` on SQLite, as it is without any setting but these arguments."""
    command = ["penstock", "serve", "--port", "0", "--data", str(data), "--no-runner", *more]
    with _running("penstock", command, "/healthz") as server:
        yield server


@contextlib.contextmanager
def reference(root: Path) -> Iterator[Server]:
    """pylance's own server over a folder, with its manifest and managed versions."""
    with _running(
        "reference", ["benchmarks.reference", str(root)], "/v1/namespace/%24/list"
    ) as server:
        yield server


@contextlib.contextmanager
def ceiling(body: bytes) -> Iterator[Server]:
    """The most that uvicorn can do: it always gives the same answer."""
    with _running("ceiling", ["benchmarks.ceiling", body.decode()], "/") as server:
        yield server


@contextlib.contextmanager
def receiver(folder: Path) -> Iterator[Server]:
    """pylance behind a bare socket, which writes what it gets there."""
    with _running("receiver", ["benchmarks.receiving", str(folder)], "/") as server:
        yield server


@contextlib.contextmanager
def fixture(jars: Path, warehouse: Path) -> Iterator[Server]:
    """The REST catalog that Iceberg tests its clients with; its records are in memory only."""
    source = ROOT / "benchmarks" / "iceberg" / "Fixture.java"
    command = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command += ["-cp", f"{jars.resolve()}/*", str(source), str(warehouse)]
    with _running("fixture", command, "/v1/config", start_command) as server:
        yield server


def _start_module(command: list[str], *, stderr: int) -> "subprocess.Popen[bytes]":
    return start_module(*command, stderr=stderr)


@contextlib.contextmanager
def _running(
    name: str,
    command: list[str],
    probe: str,
    start: Callable[..., "subprocess.Popen[bytes]"] = _start_module,
) -> Iterator[Server]:
    """Start a program that prints its address; it is asked to stop at the end of the block."""
    with tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        process = start(command, stderr=errors.fileno())
        try:
            port = _read_port(process)
            if port is None:
                errors.seek(0)
                raise RuntimeError(f"{name} did not start:\n{errors.read().decode()}")
            if _ask(port, "GET", probe)[0] != 200:
                raise RuntimeError(f"{name} does not answer at {probe}")
            yield Server(name, port, process.pid, time.perf_counter() - started)
        finally:
            _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.communicate(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _read_port(process: "subprocess.Popen[bytes]") -> int | None:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(rb"http://127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    return None


def _ask(port: int, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()
