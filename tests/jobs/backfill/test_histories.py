"""Whatever happens to a table: every value is right, and no row is computed without need."""

from pathlib import Path

import pytest

from tests.harness.fuzzing.column_histories import run_history
from tests.harness.jobs.function_tables import make_table

SHORT, LONG = range(15), range(15, 115)


@pytest.mark.parametrize("seed", SHORT)
def test_a_history_ends_right_with_no_call_too_many(tmp_path: Path, seed: int) -> None:
    run_history(make_table(tmp_path), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", LONG)
def test_many_histories(tmp_path: Path, seed: int) -> None:
    run_history(make_table(tmp_path), seed, steps=10)
