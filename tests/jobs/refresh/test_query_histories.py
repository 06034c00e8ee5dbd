"""Random histories of a table, and views of it that Spark SQL computes.

After each refresh a view is what plain Python makes of the table's rows.
"""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.jobs.spark.tasks import Engine
from tests.harness.data.sources import SourceHistory
from tests.harness.views.local_views import LocalView
from tests.harness.views.sql_views import define_query, recompute, rows_of

Row = dict[str, Any]

GROUPED = (
    "SELECT a, count(*) AS n, sum(id) AS total, min(id) AS low, max(b) AS high, avg(id) AS mean "
    "FROM t WHERE id % 4 <> 1 GROUP BY a HAVING count(*) > 1"
)
JOINED = "SELECT x.id, count(*) AS n FROM t x JOIN t y ON x.a = y.a GROUP BY x.id"


def group(rows: list[Row]) -> list[tuple[Any, ...]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row["id"] % 4 != 1:
            found[row["a"]].append(row)
    made = []
    for key, members in found.items():
        ids = [row["id"] for row in members]
        high = max((row["b"] for row in members if row["b"] is not None), default=None)
        if len(ids) > 1:
            made.append((key, len(ids), sum(ids), min(ids), high, sum(ids) / len(ids)))
    return made


def join(rows: list[Row]) -> list[tuple[Any, ...]]:
    pairs: dict[int, int] = defaultdict(int)
    for row in rows:
        pairs[row["id"]] += sum(row["a"] is not None and row["a"] == each["a"] for each in rows)
    return [(id, n) for id, n in pairs.items() if n]


def grouped_view(folder: Path, engine: Engine) -> LocalView:
    kinds = dict.fromkeys(("a", "n", "total", "low", "high"), pa.int64()) | {"mean": pa.float64()}
    definition = define_query(GROUPED, kinds, {"t": ("a", "b", "id")}, {"a": "a"})
    return LocalView(folder, definition, engine, "grouped").create()


def joined_view(folder: Path, engine: Engine) -> LocalView:
    kinds = {"id": pa.int64(), "n": pa.int64()}
    definition = define_query(JOINED, kinds, {"t": ("a", "id")})
    return LocalView(folder, definition, engine, "joined").create()


def check(
    view: LocalView, history: SourceHistory, expect: Callable[[list[Row]], list[tuple[Any, ...]]]
) -> str:
    """Refresh the view, which must be right then; returns the mode."""
    done = view.refresh()
    rows = history.open().to_table(columns=["id", "a", "b"]).to_pylist()
    assert rows_of(view) == sorted(map(repr, expect(rows))), (history.steps, done.reason)
    return done.mode


def run(folder: Path, engine: Engine, seed: int, steps: int, *, with_join: bool) -> list[str]:
    """Let things happen to a table and its views; returns the modes of the grouped one."""
    history = SourceHistory(folder / "t", seed)
    grouped = grouped_view(folder, engine)
    joined = joined_view(folder, engine) if with_join else None
    modes = []
    for _ in range(steps):
        modes.append(check(grouped, history, group))
        if joined is not None:
            check(joined, history, join)
        for _ in range(history.chance.randrange(1, 3)):
            history.step()
    check(grouped, history, group)
    followed = rows_of(grouped)
    assert grouped.refresh(mode="full").mode == "full"
    assert followed == rows_of(grouped) == recompute(grouped, engine)
    return modes


def test_groups_follow_whatever_happens(engine: Engine, tmp_path: Path) -> None:
    modes = run(tmp_path, engine, 3, 3, with_join=False)
    assert modes[0] == "full"
    assert "incremental" in modes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1004))
def test_queries_follow_whatever_happens(engine: Engine, tmp_path: Path, seed: int) -> None:
    run(tmp_path, engine, seed, 8, with_join=seed % 3 == 0)
