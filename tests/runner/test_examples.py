"""The examples run as they are, against a real server and runner."""

import subprocess
import sys

import pytest

from tests.harness.processes.runners import RunnerProcess
from tests.harness.processes.servers import Server
from tests.harness.root import ROOT

EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.timeout(400)


def test_embeddings(server: Server, runner: RunnerProcess) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "embeddings.py"), "--url", server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert "filled: 8 calls for 8 documents" in lines
    assert "again:  0 calls" in lines
    assert "edited: 1 call for one changed document" in lines
    assert "  Turbines turn falling water into electricity." in lines
