"""Histories of a table as in `test_histories.py`, with Spark."""

from pathlib import Path

import pytest

from penstock.jobs.spark.tasks import Engine
from tests.harness.fuzzing.column_histories import run_history
from tests.harness.jobs.function_tables import make_table


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1004))
def test_histories_on_spark(tmp_path: Path, engine: Engine, seed: int) -> None:
    run_history(make_table(tmp_path, engine=engine), seed)
