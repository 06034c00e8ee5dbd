"""Columns that users add to a view: one that a function fills, as embeddings of chunks."""

from tests.harness.jobs.function_tables import FunctionTable, bound_field, store
from tests.harness.jobs.local_engine import LOCAL_ENGINE, FolderLake
from tests.harness.views.local_views import LocalView


def show(*values: object) -> str:
    return "vector of " + " ".join(map(str, values))


def add_vectors(view: LocalView, *inputs: str) -> FunctionTable:
    """Add a column `value` to a view and fill it; later calls leave lines."""
    log = view.folder / f"{view.name}.vectors"
    function = store(view.path, log, show, "1", inputs=inputs)
    view.open().add_columns(bound_field("value", function))
    vectors = FunctionTable(view.path, FolderLake(view.folder), LOCAL_ENGINE, function, log)
    vectors.fill()
    vectors.take_calls()
    return vectors


def calls_of_fill(vectors: FunctionTable) -> list[str]:
    """Fill what is not fresh; returns what the function was given."""
    done = vectors.fill()
    calls = sorted(vectors.take_calls())
    assert done.function_calls == len(calls)
    return calls
