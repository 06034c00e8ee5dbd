"""Histories of many views on one source, as in `tests/soak`, some of which Spark evaluates."""

from pathlib import Path

import pytest

from penstock.jobs.spark.tasks import Engine
from tests.soak.histories import INGREDIENTS, SPARK_VIEWS, History


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3000, 3003))
def test_histories_with_views_on_spark(tmp_path: Path, engine: Engine, seed: int) -> None:
    history = History(tmp_path, seed, INGREDIENTS, engine, ("groups", "filled", "chunks"))
    history.run()
    assert set(SPARK_VIEWS) <= set(history.views)
