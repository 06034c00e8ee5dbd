"""`penstock demo`, from its first line to its verdict."""

import subprocess
import sys
from pathlib import Path

import pytest

PENSTOCK = Path(sys.executable).parent / "penstock"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_demo_checks_its_figures_and_they_are_right(tmp_path: Path) -> None:
    done = subprocess.run(
        [PENSTOCK, "demo", "--keep", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 rows changed, 3 calls, 40 of 48 chunks reused; 9 new vectors" in done.stdout
    assert "another runner finished it: 47 rows right" in done.stdout
    assert "ok: 18 of 18 figures are right" in done.stdout
