"""The same tests on a standalone cluster and on a Spark Connect server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.clusters import connect_server, standalone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TESTS = (
    "test_gate.py",
    "test_cancel_on_cluster.py",
    "test_backfill.py",
    "test_interference.py",
    "test_functions_spark.py",
    "test_refresh_sql.py",
    "test_refresh_sql_groups.py",
    "test_worker_pickles.py",
)


def run_tests(folder: Path, **environ: str) -> None:
    here = Path(__file__).parent
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"),
            *(str(here / name) for name in TESTS),
            f"--basetemp={folder / 'inner'}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=here.parent.parent,
        env={**os.environ, **environ},
    )
    assert done.returncode == 0, done.stdout[-5000:]


def test_on_a_standalone_master_and_worker(tmp_path: Path) -> None:
    with standalone(tmp_path) as address:
        run_tests(tmp_path, PENSTOCK_TEST_MASTER=address)


def test_on_a_connect_server(tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        run_tests(tmp_path, PENSTOCK_TEST_REMOTE=address)
