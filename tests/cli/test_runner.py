"""`penstock runner`, before it has anything to do."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.harness.processes.servers import free_port


def run(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "penstock", "runner", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={**os.environ, **environ},
    )


def test_the_address_of_the_server_is_needed() -> None:
    done = run()
    assert done.returncode == 2
    assert "--url" in done.stderr


def test_an_unknown_cluster_is_named_with_those_there_are() -> None:
    done = run("--url", "http://127.0.0.1:1", "--cluster", "prod")
    assert done.returncode == 2
    assert done.stderr == "penstock: there is no cluster 'prod'; the settings have local\n"


def test_a_runner_waits_for_its_server_tells_prometheus_and_stops_when_asked(
    tmp_path: Path,
) -> None:
    port = free_port()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "penstock", "runner", "--url", "http://127.0.0.1:1"),
            *("--data", str(tmp_path), "--metrics-port", str(port)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PENSTOCK__RUNNER__WARM": "false", "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    assert re.match("penstock runner of cluster local works", process.stdout.readline())
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert b"penstock_runner_jobs_running 0.0" in answer.read()
    assert "no jobs: the server does not answer" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert process.stdout.read() == ""


@pytest.mark.slow
def test_each_cluster_gets_a_process_which_is_replaced_when_it_dies(tmp_path: Path) -> None:
    clusters = '{"local": {"master": "local[1]"}, "other": {"master": "local[1]"}}'
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "penstock", "runner", "--url", "http://127.0.0.1:1"),
            *("--data", str(tmp_path)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={
            **os.environ,
            "PENSTOCK__CLUSTERS": clusters,
            "PENSTOCK__RUNNER__WARM": "false",
            "PYTHONUNBUFFERED": "1",
        },
    )
    assert process.stdout is not None
    # The lines of its processes come in any order, among others about the server that is not there.
    told = (line for line in process.stdout if "no jobs" not in line)
    assert {next(told).split()[4], next(told).split()[4]} == {"local", "other"}
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    assert "ended with -9" in next(told)
    assert "works for" in next(told)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert list(told) == []
