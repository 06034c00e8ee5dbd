"""What authentication and grants cost: describe with and without, in one run.

The goal is at least 0.7 of the rate without. docs/explanation/benchmarks.md tells what came out.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import servers
from benchmarks.load import Job, measure, prepare
from benchmarks.servers import Server

GOAL = 0.7
TABLES = 100
CONNECTIONS = (1, 16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    rounds, seconds = (1, 0.5) if parser.parse_args().quick else (5, 1.5)
    with tempfile.TemporaryDirectory() as folder:
        ratios = run(Path(folder), rounds, seconds)
    for connections, found in ratios.items():
        ratio = statistics.median(found)
        mark = "reached" if ratio >= GOAL else "missed"
        print(f"describe, {connections} connections: {ratio:.2f} of without, goal {GOAL} {mark}")


def run(folder: Path, rounds: int, seconds: float) -> dict[int, list[float]]:
    """The rate with authentication as a part of that without, of each round."""
    key = make_key(folder / "on")
    ratios: dict[int, list[float]] = {connections: [] for connections in CONNECTIONS}
    with servers.penstock(folder / "off") as plain, guarded(folder / "on") as strict:
        fill(plain, "")
        fill(strict, key)
        for _ in range(rounds):
            for connections in CONNECTIONS:
                rates = {}
                for server, credential in ((plain, ""), (strict, key)):
                    requests = [
                        request(f"/v1/table/n$t{number}/describe", credential, b"{}")
                        for number in range(TABLES)
                    ]
                    job = Job(server.port, connections, requests, seconds, repeat=True)
                    rates[credential] = measure(job).rate
                ratios[connections].append(rates[key] / rates[""])
                print(
                    f"{connections:3} connections: {rates['']:7.0f} /s without, {rates[key]:7.0f}"
                )
    return ratios


@contextlib.contextmanager
def guarded(data: Path) -> Iterator[Server]:
    # In a file: servers that are measured see no settings of the environment.
    data.mkdir(exist_ok=True)
    file = data / "penstock.toml"
    file.write_text("[auth]\nenabled = true\n")
    with servers.penstock(data, "--config", str(file)) as server:
        yield server


def make_key(data: Path) -> str:
    command = [sys.executable, "-m", "penstock", "token", "create", "ann", "--role", "owner"]
    made = subprocess.run(
        [*command, "--json", "--data", str(data)], capture_output=True, check=True
    )
    return str(json.loads(made.stdout)["key"])


def fill(server: Server, key: str) -> None:
    paths = ["/v1/namespace/n/create", *(f"/v1/table/n$t{n}/declare" for n in range(TABLES))]
    requests = [request(path, key, b"{}") for path in paths]
    measure(Job(server.port, 1, requests, 60))


def request(path: str, key: str, body: bytes = b"") -> bytes:
    head, _, rest = prepare("POST", path, body).partition(b"\r\n\r\n")
    shown = f"\r\nx-api-key: {key}".encode() if key else b""
    return head + shown + b"\r\n\r\n" + rest


if __name__ == "__main__":
    main()
