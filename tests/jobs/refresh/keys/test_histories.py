"""A few random histories of joined tables; `make joins` runs many."""

from pathlib import Path

import pytest

from penstock.jobs.spark.tasks import Engine
from tests.soak.joins import QUERIES, run_history

# One for each way in which rows of one table lead to others.
SOME = ("many", "chain", "groups of the other side", "window of a join", "not exists", "union all",
        "left of a subquery, and one of that")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_views_follow_whatever_happens_to_their_tables(
    engine: Engine, tmp_path: Path, name: str
) -> None:
    modes = run_history(tmp_path, engine, 7 + list(QUERIES).index(name), name)
    assert modes["full"] >= 1
