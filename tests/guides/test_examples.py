"""The examples run, each on a server of the tests, and check their own figures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.docs import ROOT
from tests.harness.processes.runners import Team
from tests.harness.processes.servers import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SCRIPTS = ("rag.py", "images.py", "features.py", "lancedb_only.py")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_runs(server: Server, team: Team, script: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / script), server.url]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PENSTOCK_URL": server.url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_an_example_needs_nothing_of_ours() -> None:
    text = (ROOT / "examples" / "lancedb_only.py").read_text(encoding="utf-8")
    assert "import penstock" not in text
    assert "from penstock" not in text


# As a notebook does it: one shell, and each cell shows its last value, here as HTML if it has that.
NOTEBOOK = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
cells, times = json.load(sys.stdin)
for _ in range(times):
    for cell in cells:
        done = shell.run_cell(cell, store_history=True)
        done.raise_error()
        print(shell.display_formatter.format(done.result)[0].get("text/html", ""))
"""


def test_the_notebook_runs_again_and_again(server: Server, team: Team, tmp_path: Path) -> None:
    cells = json.loads((ROOT / "examples" / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    # All cells twice in one kernel, then once more in a new one.
    for times in (2, 1):
        done = subprocess.run(
            [sys.executable, "-c", NOTEBOOK],
            input=json.dumps([code, times]),
            cwd=tmp_path,
            env={**os.environ, "PENSTOCK_URL": server.url},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        for shown in ("backfill of notebook.words.turned", "what notebook.short is made of"):
            assert done.stdout.count(f"{shown}<") == times
        assert done.stdout.count("Certificate of notebook.short") == times


def test_every_example_is_run() -> None:
    found = {path.name for path in (ROOT / "examples").iterdir() if path.is_file()}
    # embeddings.py is run with the tests of functions.
    assert found == {*SCRIPTS, "tour.ipynb", "embeddings.py"}
