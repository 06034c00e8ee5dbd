"""Environments: built once for each manifest, with pip's own words when that fails."""

import json
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.runner.environments import READY, prepare
from tests.harness.processes.runners import RunnerProcess, make_filled
from tests.harness.processes.servers import Server


def manifest(**values: Any) -> str:
    return json.dumps({"name": "test", **values})


def run(python: str, code: str) -> str:
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout


def wheel(folder: Path, name: str = "tinymod", version: str = "1.0") -> Path:
    """A package that pip can install without a network."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    parts = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for part, text in parts.items():
            archive.writestr(part, text)
    return path


def test_an_environment_has_all_of_its_manifest_and_is_built_once_whoever_asks(
    tmp_path: Path,
) -> None:
    (tmp_path / "one.py").write_text("NAME = 'one'\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("NAME = 'pack'\n")
    modules = [str(tmp_path / "one.py"), str(tmp_path / "pack")]
    pip = [str(wheel(tmp_path))]
    text = manifest(pip=pip, py_modules=modules, env_vars={"COLOR": "blue"})
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: prepare(text, tmp_path / "envs"), range(4)))
    assert [each.variables for each in made] == [{"COLOR": "blue"}] * 4
    (python,) = {each.executable for each in made}
    shown = run(python, "import one, pack, tinymod; print(one.NAME, pack.NAME, tinymod.VERSION)")
    assert shown == "one pack 1.0\n"
    assert "penstock" in run(python, "import penstock, lance, pyspark; print(penstock)")
    stamp = Path(python).parent.parent / READY
    before = stamp.stat().st_mtime_ns
    prepare(text, tmp_path / "envs")
    assert stamp.stat().st_mtime_ns == before


def test_a_failure_of_pip_is_told_in_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no-such-file"):
        prepare(manifest(pip=["/no-such-file-1.0-py3-none-any.whl"]), tmp_path)
    with pytest.raises(InvalidRequest, match="not on the runner's machine"):
        prepare(manifest(py_modules=["/nowhere/at/all"]), tmp_path)
    with pytest.raises(InvalidRequest, match="cannot be read"):
        prepare("not json", tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_job_runs_in_its_environment(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    table = make_filled(server)
    found = table.fill(manifest=manifest(pip=[str(wheel(tmp_path))]))
    assert found["status"] == "SUCCEEDED", found
    assert table.is_right()


@pytest.mark.timeout(400)
def test_a_job_whose_environment_cannot_be_built_fails_at_once(
    server: Server, runner: RunnerProcess
) -> None:
    table = make_filled(server)
    found = table.fill(manifest=manifest(pip=["/no-such-file-1.0-py3-none-any.whl"]))
    assert (found["status"], found["attempt"]) == ("FAILED", "1")
    assert "no-such-file" in found["error"]
