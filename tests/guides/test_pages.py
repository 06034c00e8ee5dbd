"""Every block of code in README and docs runs: Python as it stands, and our own commands."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from scripts.docs import ROOT
from tests.guides.blocks import BLOCK, MARK, as_program, check_outputs, list_blocks, matches
from tests.harness.processes.runners import Team
from tests.harness.processes.servers import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ADDRESS = "http://127.0.0.1:2333"
# Set-up, and servers that would not end; what they promise is tested elsewhere.
NOT_HERE = (
    "make",
    "git",
    "pip install",
    "python3 -m venv",
    ". .venv/bin/activate",
    "penstock doctor",
    "penstock serve",
    "penstock token",
    "penstock grant",
)


def list_pages() -> Iterator[str]:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        kinds = {kind for kind, _ in BLOCK.findall(page.read_text(encoding="utf-8"))}
        if kinds & {"python", "sh"}:
            yield page.relative_to(ROOT).as_posix()


@pytest.fixture(autouse=True)
def empty(server: Server) -> Iterator[None]:
    """A page starts with nothing, as its reader does."""
    yield
    with penstock.connect(server.url) as lake:
        # Those of the server itself, such as the ledger's, stay.
        for name in lake.namespaces(""):
            if not name.startswith("__"):
                lake.drop_namespace(name, cascade=True)


@pytest.mark.parametrize("page", list(list_pages()))
def test_the_code_of_a_page_runs(server: Server, team: Team, page: str, tmp_path: Path) -> None:
    code = list_blocks(page, "python")
    if code:
        # As a file: lancedb reads the source of functions.
        (tmp_path / "page.py").write_text(here(as_program(code), server), encoding="utf-8")
        check_outputs(code, run([sys.executable, "page.py"], server, tmp_path))
    for block in list_blocks(page, "sh"):
        lines = [line for line in block.code.splitlines() if not line.startswith(NOT_HERE)]
        script = here("\n".join(lines), server)
        if "curl " in script and shutil.which("curl") is None:
            pytest.skip("there is no curl")
        printed = run(["bash", "-euc", script], server, tmp_path)
        check_outputs([block], MARK + printed)


def test_there_are_pages_with_code() -> None:
    pages = {*list_pages()}
    assert {"README.md", "docs/tutorial/quickstart.md", "docs/guides/views/query.md"} <= pages


def test_an_output_that_differs_is_found() -> None:
    assert matches("1 call\n… rows\n", "1 call  \n17 rows\n")
    assert not matches("1 call\n", "2 calls\n")
    assert not matches("a.c", "abc")


def here(code: str, server: Server) -> str:
    """The same code against the server of the test, which PENSTOCK_URL names as well."""
    return code.replace(ADDRESS, server.url)


def run(command: list[str], server: Server, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PENSTOCK_URL": server.url, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
