"""Build a virtualenv from a job's manifest, once, and keep it.

It also sees the runner's own packages, so that penstock, pylance and PySpark need no installation.
"""

import fcntl
import hashlib
import shutil
import site
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import msgspec

import penstock
from penstock.errors import InvalidRequest
from penstock.jobs.spark.tasks import WorkerPython

READY = "penstock-ready"
PIP_LINES = 8


class EnvironmentManifest(msgspec.Struct, frozen=True):
    """What a job's Python workers need; other keys are for other programs."""

    name: str = ""
    pip: tuple[str, ...] = ()
    py_modules: tuple[str, ...] = ()
    env_vars: dict[str, str] = {}


def prepare(text: str, folder: Path) -> WorkerPython:
    """The Python of a manifest; builds it the first time, which may take minutes."""
    manifest = read_manifest(text)
    checksum = hashlib.sha256(f"{sys.version}\n{text}".encode()).hexdigest()[:24]
    home = folder / checksum
    folder.mkdir(parents=True, exist_ok=True)
    # Runners may share the folder: one builds, the others wait.
    with open(folder / f"{checksum}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / READY).exists():
            _build(manifest, home)
    return WorkerPython(str(home / "bin" / "python"), manifest.env_vars)


def read_manifest(text: str) -> EnvironmentManifest:
    try:
        return msgspec.json.decode(text, type=EnvironmentManifest)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"the manifest cannot be read: {error}",
            detail="send a JSON object with pip, py_modules and env_vars",
        ) from error


def _build(manifest: EnvironmentManifest, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    venv.EnvBuilder(symlinks=True).create(home)
    packages = _packages(home)
    # Behind the installed packages, so that the manifest's versions win.
    behind = [*site.getsitepackages(), *_editable()]
    (packages / "penstock-runner.pth").write_text("\n".join(behind) + "\n")
    _add_modules(manifest, packages)
    if manifest.pip:
        _install(manifest, home)
    (home / READY).touch()


def _install(manifest: EnvironmentManifest, home: Path) -> None:
    python = home / "bin" / "python"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", str(python), "install"),
            *("--disable-pip-version-check", "--no-input", *manifest.pip),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()][-PIP_LINES:]
        raise InvalidRequest(
            f"pip could not install the environment {manifest.name or 'of this job'}:\n"
            + "\n".join(lines),
            detail="correct the manifest's pip requirements",
        )


def _add_modules(manifest: EnvironmentManifest, packages: Path) -> None:
    for entry in manifest.py_modules:
        source = Path(entry)
        if not source.exists():
            raise InvalidRequest(
                f"py_modules names {entry!r}, which is not on the runner's machine",
                detail="use the path of a module, a package's folder, or a zip of either",
            )
        if source.is_dir():
            shutil.copytree(source, packages / source.name, dirs_exist_ok=True)
        elif source.suffix == ".py":
            shutil.copy(source, packages)
        else:
            copied = shutil.copy(source, packages)
            (packages / f"{source.stem}.pth").write_text(f"{copied}\n")


def _packages(home: Path) -> Path:
    paths = sysconfig.get_paths("venv", vars={"base": str(home), "platbase": str(home)})
    return Path(paths["purelib"])


def _editable() -> list[str]:
    """The source folder of an editable penstock, which is outside site-packages."""
    return [str(Path(path).parent) for path in penstock.__path__]
