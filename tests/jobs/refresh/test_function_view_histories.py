"""Views that functions make, over sources that random things happen to."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.data.sources import SourceHistory
from tests.harness.views.added_columns import add_vectors, calls_of_fill
from tests.harness.views.function_views import FunctionView, make_view

FEW, MANY = range(4), range(4, 70)
ROUNDS = 4


def repeat(a: int | None, x: str) -> list[dict[str, Any]]:
    return [{"text": f"{x}{n}"} for n in range(a or 0)]


def total(table: pa.Table) -> list[dict[str, Any]]:
    return [{"total": sum(table["id"].to_pylist()), "rows": len(table)}]


def chunked(folder: Path) -> FunctionView:
    return make_view(
        folder,
        None,
        repeat,
        "chunker",
        {"text": pa.string()},
        inputs=("a", "x"),
        columns={"a": "a", "x": "s.x", "id": "id", "b": "b"},
        kinds={"id": pa.int64(), "b": pa.int64()},
        reads=("a", "s.x", "id", "b"),
        where="id % 4 != 1",
        inherited=("id", "b"),
    )


def expected_chunks(view: FunctionView) -> list[tuple[Any, ...]]:
    found = [
        (row["_rowid"], n, row["id"], row["b"], made["text"])
        for row in view.source.to_table(with_row_id=True).to_pylist()
        if row["id"] % 4 != 1
        for n, made in enumerate(repeat(row["a"], row["s"]["x"]))
    ]
    return sorted(found, key=lambda row: row[:2])


def texts_of(view: FunctionView) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for source, text in view.show("__source_row_id", "text"):
        found.setdefault(source, Counter())[text] += 1
    return found


@pytest.mark.parametrize(
    "seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)]
)
def test_chunks_are_what_plain_python_makes(tmp_path: Path, seed: int) -> None:
    view = chunked(tmp_path)
    history = SourceHistory(view.folder / "source", seed)
    inputs: dict[int, tuple[Any, Any]] = {}
    vectors = add_vectors(view, "text")
    for _ in range(ROUNDS):
        limit = history.chance.choice([None, None, 5, 30])
        before = texts_of(view)
        done = view.refresh(output_limit=limit)
        rows = view.show("__source_row_id", "__child_index", "id", "b", "text")
        assert sorted(rows) == expected_chunks(view)[:limit], (seed, history.steps)
        now = {
            row["_rowid"]: (row["a"], row["s"]["x"])
            for row in view.source.to_table(with_row_id=True).to_pylist()
            if row["id"] % 4 != 1
        }
        calls = view.take_calls()
        if limit is None and inputs:
            changed = [each for id, each in now.items() if inputs.get(id) != each]
            assert len(calls) == len(changed), (seed, history.steps)
        # A vector is made only for a text that its source row did not have before.
        known = before if done.mode != "full" else {}
        new = (texts - known.get(source, Counter()) for source, texts in texts_of(view).items())
        assert calls_of_fill(vectors) == sorted(sum(new, Counter[str]()).elements())
        assert view.show("value") == [(f"vector of {text}",) for (text,) in view.show("text")]
        # What a limit left out is not known.
        inputs = now if limit is None else {}
        for _ in range(history.chance.randrange(1, 4)):
            history.step()


@pytest.mark.parametrize(
    "seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)]
)
def test_partitions_are_what_plain_python_makes(tmp_path: Path, seed: int) -> None:
    view = make_view(
        tmp_path,
        None,
        total,
        "udtf",
        {"total": pa.int64(), "rows": pa.int64()},
        inputs=("id",),
        columns={"a": "a", "id": "id"},
        reads=("a", "id"),
        partition_by="a",
        show=len,
    )
    history = SourceHistory(view.folder / "source", seed)
    before: dict[Any, list[tuple[int, int]]] = {}
    for _ in range(ROUNDS):
        view.refresh()
        found: dict[Any, list[tuple[int, int]]] = {}
        for row in view.source.to_table(with_row_id=True).to_pylist():
            found.setdefault(row["a"], []).append((row["_rowid"], row["id"]))
        made = [
            ("null" if a is None else str(a), sum(id for _, id in rows), len(rows))
            for a, rows in found.items()
        ]
        shown = view.show("__partition", "total", "rows")
        assert sorted(shown) == sorted(made), (seed, history.steps)
        changed = [a for a, rows in found.items() if sorted(rows) != sorted(before.get(a, []))]
        assert len(view.take_calls()) == len(changed), (seed, history.steps)
        before = found
        for _ in range(history.chance.randrange(1, 4)):
            history.step()
