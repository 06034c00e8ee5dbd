"""The same tests on a standalone cluster and on a Spark Connect server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.processes.clusters import connect_server, standalone
from tests.harness.root import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TESTS = (
    "spark/gate/test_gate.py",
    "spark/test_cancel_on_cluster.py",
    "backfill/test_backfill.py",
    "functions/test_on_spark.py",
    "refresh/whole/test_sql.py",
    "refresh/keys/test_group_views.py",
    "spark/test_worker_pickles.py",
)


def run_tests(folder: Path, **environ: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"),
            *(str(ROOT / "tests" / "jobs" / name) for name in TESTS),
            f"--basetemp={folder / 'inner'}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environ},
    )
    assert done.returncode == 0, done.stdout[-5000:]


def test_on_a_standalone_master_and_worker(tmp_path: Path) -> None:
    with standalone(tmp_path) as address:
        run_tests(tmp_path, PENSTOCK_TEST_MASTER=address)


def test_on_a_connect_server(tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        run_tests(tmp_path, PENSTOCK_TEST_REMOTE=address)
