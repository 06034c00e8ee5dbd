"""Spark clusters from the pip package: a standalone master with a worker, and a Connect server."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark

from penstock.runner.java import find_java, point_spark_at
from tests.harness.processes.servers import free_port

START_SECONDS = 180
HOME = Path(pyspark.__file__).parent
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A master and a worker with two cores; gives the master's address."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    master = ["spark-class", MASTER, "--host", "127.0.0.1", "--port", str(port)]
    worker = ["spark-class", WORKER, "--host", "127.0.0.1", "--cores", "2", "--memory", "2g"]
    with _running(folder, *master, "--webui-port", "0"):
        wait_for_port(port)
        with _running(folder, *worker, "--webui-port", "0", "-d", str(folder), address):
            yield address


@contextlib.contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server on two cores; gives its address."""
    port = free_port()
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    given = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    submit = ["spark-submit", "--master", "local[2,4]", "--class", CONNECT, *given]
    with _running(folder, *submit, "spark-internal"):
        wait_for_port(port)
        yield f"sc://127.0.0.1:{port}"


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert time.monotonic() < deadline, f"nobody listens on {port}"
        time.sleep(0.2)


@contextlib.contextmanager
def _running(folder: Path, program: str, *arguments: str) -> Iterator[None]:
    environ = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_JAVA_OPTS": os.environ["SPARK_SUBMIT_OPTS"],
    }
    point_spark_at(find_java(environ), folder, environ)
    with open(folder / f"{program}-{time.monotonic_ns()}.log", "wb") as output:
        process = subprocess.Popen(
            [str(HOME / "bin" / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environ,
            cwd=folder,
        )
    try:
        yield
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        if process.poll() is None:
            process.kill()
