"""`penstock doctor` finds what is missing, and says how to mend it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    )
    bad = {part for part, each in found.items() if each["state"] == "bad"}
    assert bad == {"database"}
    assert found["database"]["remedy"]


def test_an_unfit_java_home_is_said_and_another_java_is_found(tmp_path: Path) -> None:
    found = examine(tmp_path, JAVA_HOME=str(tmp_path))["java"]
    assert found["state"] == "ok"
    assert f"JAVA_HOME, {tmp_path}, has no Java that runs" in found["found"]
