"""`penstock doctor` finds what is missing, and says how to mend it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.doctor import read_java_version

PENSTOCK = Path(sys.executable).parent / "penstock"


def examine(folder: Path, *arguments: str, code: int = 0, **environ: str) -> dict[str, Any]:
    done = subprocess.run(
        [PENSTOCK, "doctor", "--json", "--data", str(folder), *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return {each["part"]: each for each in json.loads(done.stdout)}


def test_a_machine_that_has_everything(tmp_path: Path) -> None:
    found = examine(tmp_path)
    assert {part for part, each in found.items() if each["state"] != "ok"} == {"server"}
    assert found["server"]["remedy"] == "penstock serve"


def test_what_is_missing_has_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = examine(
        tmp_path,
        "--database",
        "postgresql://postgres@127.0.0.1:9/nothing",
        code=1,
        JAVA_HOME=str(tmp_path),
    )
    bad = {part for part, each in found.items() if each["state"] == "bad"}
    assert bad == {"java", "database"}
    assert "JAVA_HOME" in found["java"]["found"]
    assert all(found[part]["remedy"] for part in bad)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("no version", None),
    ],
)
def test_the_version_of_java(text: str, version: int | None) -> None:
    assert read_java_version(text) == version
