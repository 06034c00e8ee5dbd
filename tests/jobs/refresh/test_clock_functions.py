"""Functions over rows that a filter lets in by the clock."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from penstock.jobs.spark.tasks import Engine
from penstock.model.moments import mark_lance, mark_spark
from penstock.model.views import Clock
from tests.harness.views.function_views import FunctionView, make_view
from tests.harness.views.timed_views import NOON, make_events, refresh_at


def timed_chunks(folder: Path, engine: Engine, language: str, *, is_known: bool) -> FunctionView:
    """A chunker over events whose filter reads the clock."""
    by_lance = f"(`at` > {mark_lance('timestamp', ())})"
    where = by_lance if language == "lance" else f"at > {mark_spark('timestamp')}"
    view = make_view(
        folder,
        make_events(0, [NOON + timedelta(hours=n) for n in range(8)]),
        lambda name: [{"word": name}] if name != "n3" else [],
        "chunker",
        {"word": pa.string()},
        inputs=("name",),
        columns={"name": "name", "id": "id"},
        inherited=("id",),
        reads=("name", "id", "at"),
        where=where,
        language=language,
        engine=engine,
    )
    clock = Clock(conditions=(by_lance,) if is_known else None)
    view.definition = msgspec.structs.replace(view.definition, clock=clock)
    return view


@pytest.mark.parametrize(
    "language", ["lance", pytest.param("spark", marks=pytest.mark.slow), "spark only"]
)
def test_a_chunker_is_called_for_rows_that_enter(
    language: str, engine: Engine, tmp_path: Path
) -> None:
    word, _, only = language.partition(" ")
    view = timed_chunks(tmp_path, engine, word, is_known=not only)
    for hours, called in ((3.5, 4), (5.5, 0), (1.5, 4), (1.6, 0)):
        refresh_at(view, NOON + timedelta(hours=hours))
        ids = [n for n in range(8) if n > hours and n % 5 != 3]
        assert [row[0] for row in view.show("id")] == ids
        assert len(view.take_calls()) == called


def test_a_udtf_is_called_for_partitions_whose_rows_change_with_time(tmp_path: Path) -> None:
    where = f"(`at` > {mark_lance('timestamp', ())})"
    view = make_view(
        tmp_path,
        make_events(0, [NOON + timedelta(hours=n) for n in range(10)]),
        lambda table: [{"n": len(table)}],
        "udtf",
        {"n": pa.int64()},
        inputs=("id",),
        columns={"id": "id", "name": "name"},
        reads=("id", "name", "at"),
        partition_by="name",
        where=where,
        show=lambda table: str(table["id"].to_pylist()),
    )
    view.definition = msgspec.structs.replace(view.definition, clock=Clock(conditions=(where,)))
    refresh_at(view, NOON - timedelta(hours=1))
    assert len(view.take_calls()) == 5
    refresh_at(view, NOON + timedelta(hours=1.5))
    assert view.take_calls() == ["[5]", "[6]"]
    assert view.show("__partition", "n") == [(f'"n{n}"', 1 if n < 2 else 2) for n in range(5)]
    refresh_at(view, NOON + timedelta(hours=5.5))
    assert len(view.show("n")) == 4
