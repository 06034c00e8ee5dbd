"""scripts/setup on a machine without the right Python: one line says what to do."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("sh", "cat", "cksum", "dirname", "grep", "sed", "cp", "mkdir")

# Says yes to all that setup asks, and makes an environment that is only a copy of itself.
OBLIGING_PYTHON = """\
case "$*" in
    *version_info*) echo 3.12 ;;
    --version) echo Python 3.12.1 ;;
    "-m venv"*)
        mkdir -p .venv/bin
        cp "$0" .venv/bin/python
        echo "VIRTUAL_ENV=$PWD/.venv" >.venv/bin/activate ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what setup reads, beside a `bin` with the plain tools and no Python."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("scripts/setup", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, f"{tool} is missing on this machine"
        (tmp_path / "bin" / tool).symlink_to(found)
    return tmp_path


def fake(checkout: Path, name: str, script: str) -> None:
    path = checkout / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def setup(checkout: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(checkout / "scripts" / "setup")],
        env={"PATH": str(checkout / "bin"), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def remedy(checkout: Path, **environ: str) -> str:
    done = setup(checkout, **environ)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert not (checkout / ".venv").exists()
    return line


def test_a_missing_python_gets_one_line(checkout: Path) -> None:
    line = remedy(checkout)
    assert line.startswith("setup: Python 3.11 or newer is needed (none found); install one")


def test_a_too_old_python_gets_one_line_that_names_it(checkout: Path) -> None:
    fake(checkout, "python3", "echo 3.9")
    assert "Python 3.11 or newer is needed (python3 is 3.9)" in remedy(checkout)


def test_a_python_that_does_not_run_is_passed_over(checkout: Path) -> None:
    fake(checkout, "python3.13", "echo 'python3.13: command not found' >&2; exit 127")
    fake(checkout, "python3", "echo 3.10")
    assert "(python3 is 3.10)" in remedy(checkout)


def test_a_python_without_venv_gets_one_line(checkout: Path) -> None:
    fake(checkout, "python3", 'case "$2" in *version_info*) echo 3.12 ;; *) exit 1 ;; esac')
    assert remedy(checkout).startswith("setup: python3 cannot make virtual environments; install")


def test_python_can_be_named(checkout: Path) -> None:
    fake(checkout, "mine", "echo 3.9")
    assert "(mine is 3.9)" in remedy(checkout, PYTHON="mine")


def test_a_finished_setup_is_repeated_only_when_something_changed(checkout: Path) -> None:
    fake(checkout, "python3", OBLIGING_PYTHON)
    first, second = setup(checkout), setup(checkout)
    assert first.stdout.splitlines()[0] == "setup: making .venv with Python 3.12.1"
    assert (second.returncode, second.stdout) == (0, "")

    with (checkout / "constraints.txt").open("a") as constraints:
        constraints.write("# changed\n")
    assert setup(checkout).stdout.splitlines()[0].startswith("setup: installing packages")


@pytest.mark.slow
def test_a_moved_checkout_gets_a_new_environment(checkout: Path) -> None:
    fake(checkout, "python3", OBLIGING_PYTHON)
    setup(checkout)
    moved = checkout.rename(checkout.with_name("moved"))
    assert setup(moved).stdout.splitlines()[0] == "setup: making .venv with Python 3.12.1"
