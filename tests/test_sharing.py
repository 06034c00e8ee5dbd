"""How processes share the tests, when one of them is ended by its test."""

import subprocess
import sys
from pathlib import Path

from tests.harness.root import ROOT

CONFTEST = """
import pytest
from tests.harness.sharing import Sharing

@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Sharing(config, log)
"""
TESTS = """
import os
import pytest

@pytest.mark.parametrize("n", range(4))
def test_one(n):
    if __name__ == "test_1" and n == 2:
        os._exit(9)
"""


def test_a_test_that_ends_its_process_fails_alone_and_all_others_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for module in range(4):
        (tmp_path / f"test_{module}.py").write_text(TESTS)

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", "2", tmp_path],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert "1 failed, 15 passed" in run.stdout
