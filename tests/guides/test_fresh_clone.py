"""README and quickstart to the letter: a fresh clone, a fresh virtualenv, a server of its own."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.docs import ROOT
from tests.guides.test_pages import BLOCK

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fresh") / "penstock"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    return folder


def run(clone: Path, *command: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if "PENSTOCK" not in name}
    done = subprocess.run(
        command, cwd=clone, env=inherited, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def address(clone: Path) -> Iterator[str]:
    """The server of the quickstart; at a free port, because 2333 may be somebody's."""
    command = [".venv/bin/penstock", "serve", "--port", "0"]
    process = subprocess.Popen(command, cwd=clone, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().split()[-1]
    process.terminate()
    process.wait(60)


def test_make_demo_sets_up_and_ends_well(clone: Path) -> None:
    assert not (clone / ".venv").exists()
    shown = run(clone, "make", "demo")
    assert "3 rows changed, 3 calls, 40 of 48 chunks reused; 9 new vectors" in shown
    assert "another runner finished it: 49 rows right" in shown
    assert "ok: 18 of 18 figures are right" in shown


def test_the_quickstart_ends_well(clone: Path, address: str) -> None:
    assert "ok    java" in run(clone, ".venv/bin/penstock", "doctor")
    text = (clone / "docs" / "quickstart.md").read_text(encoding="utf-8")
    code = "\n".join(body for kind, body in BLOCK.findall(text) if kind == "python")
    run(clone, ".venv/bin/python", "-c", code.replace("http://127.0.0.1:2333", address))
    commands = next(body for kind, body in BLOCK.findall(text) if "penstock ls quick" in body)
    for line in commands.splitlines():
        # It finds the server by ./penstock-data.
        assert run(clone, ".venv/bin/" + line.split()[0], *line.split()[1:])
