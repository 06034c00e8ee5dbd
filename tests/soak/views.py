"""The views of a history, of every kind, all over one source and behind one filter."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.jobs.spark.tasks import Engine
from penstock.model.functions import Function
from penstock.model.views import CHILD_INDEX, PARTITION, SOURCE_ROW_ID, Column, Definition, Rows
from penstock.model.views import Source as ViewSource
from tests.harness.jobs.kernel import declare, seal
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.views.function_views import pack
from tests.harness.views.local_views import LocalView, define, encode_schema
from tests.harness.views.sql_views import define_query
from tests.soak import functions

FILTER = "x % 5 != 0"
GROUPED = (
    "SELECT kind, count(*) AS n, sum(x) AS total, max(text) AS last "
    "FROM source WHERE x % 5 <> 0 GROUP BY kind"
)
NUMBER, TEXT = pa.int64(), pa.string()
# What of a view is compared with the model.
SHOWN = {
    "plain": ("id", "text", "y"),
    "filled": ("id", "text", "value"),
    "chunks": ("id", CHILD_INDEX, "word"),
    "parts": ("kind", "total", "rows", "letters"),
    "groups": ("kind", "n", "total", "last"),
}


def kind_of(name: str) -> str:
    """The kind of a view: `chunks_2` is of the same as `chunks`, and so is `chunks_spark`."""
    return name.partition("_")[0]


def on_spark(name: str) -> bool:
    """Whether Spark evaluates the view's query; its workers are not in this process then."""
    return name == "groups" or name.endswith("_spark")


def make_view(folder: Path, name: str, prints: int = 0, engine: Engine = LOCAL_ENGINE) -> LocalView:
    """A new view of the kind that its name says."""
    (folder / name).mkdir()
    log = str(log_of(folder, name))
    language = "spark" if on_spark(name) else "lance"
    definition = _define(folder / name, kind_of(name), log, prints, language)
    view = LocalView(folder, definition, engine, name=name)
    view.create()
    return view


def log_of(folder: Path, name: str) -> Path:
    """Where each call of a view's function leaves a line."""
    return folder / f"{name}.calls"


def _define(view: Path, kind: str, log: str, prints: int, language: Any) -> Definition:
    if kind == "plain":
        columns = {"id": "id", "text": "text", "y": "x + 1"}
        kinds = {"id": NUMBER, "text": TEXT, "y": NUMBER}
        return define(columns, kinds, ("id", "text", "x"), where=FILTER, engine=language)
    if kind == "filled":
        content = seal(functions.filling(log, prints))
        function = _store(view, declare(content, ("id", "text"), ("value",)), content)
        kinds = {"id": NUMBER, "text": TEXT, "value": TEXT}
        reads = ("id", "text", "x")
        return define(
            {"id": "id", "text": "text"},
            kinds,
            reads,
            where=FILTER,
            functions=[function],
            engine=language,
        )
    if kind == "groups":
        kinds = {"kind": TEXT, "n": NUMBER, "total": NUMBER, "last": TEXT}
        reads_of = {"source": ("kind", "x", "text")}
        filters = {"source": FILTER}
        return define_query(GROUPED, kinds, reads_of, {"kind": "kind"}, filters=filters)
    if kind == "chunks":
        system = {SOURCE_ROW_ID: NUMBER, CHILD_INDEX: pa.int32(), "id": NUMBER}
        made, inputs = {"word": TEXT}, ["id", "text"]
        function_of = functions.chunking
    else:
        system = {PARTITION: TEXT}
        made = {"kind": TEXT, "total": NUMBER, "rows": NUMBER, "letters": NUMBER}
        inputs = ["kind", "id", "text"]
        function_of = functions.summing
    return _made(view, kind, function_of(log, prints), inputs, system, made, language)


def _made(
    view: Path,
    name: str,
    function: Callable[..., Any],
    inputs: Sequence[str],
    system: Mapping[str, Any],
    made: Mapping[str, Any],
    language: Any,
) -> Definition:
    is_udtf = name == "parts"
    kind = "udtf" if is_udtf else "chunker"
    content = pack(function, kind)
    declared = declare(content, inputs, list(made), kind=kind, form="udtf_spec")
    reads = (*inputs, "x")
    return Definition(
        kind="udtf" if is_udtf else "chunker",
        shape="rows",
        language=language,
        sources=(ViewSource(id="s1", table=("n", "source"), name="source", reads=reads),),
        rows=Rows(
            engine=language,
            filter=FILTER,
            columns=tuple(Column(name=n, expression=n, path=n) for n in inputs),
        ),
        function=_store(view, declared, content),
        inherited=() if is_udtf else ("id",),
        partition_by="kind" if is_udtf else None,
        schema=encode_schema(pa.schema([*system.items(), *made.items()])),
        digest="1",
    )


def _store(view: Path, function: Function, content: bytes) -> Function:
    (view / "_udfs").mkdir(exist_ok=True)
    (view / "_udfs" / function.sha256).write_bytes(content)
    return function


def show(view: LocalView) -> list[tuple[Any, ...]]:
    """What a view holds, sorted."""
    return sorted(row_ids(view), key=repr)


def row_ids(view: LocalView) -> dict[tuple[Any, ...], int]:
    """The view's rows, as the model has them, with their own row ids."""
    rows = (
        view.open().to_table(columns=list(SHOWN[kind_of(view.name)]), with_row_id=True).to_pylist()
    )
    found = {tuple(row[name] for name in SHOWN[kind_of(view.name)]): row["_rowid"] for row in rows}
    assert len(found) == len(rows), f"{view.name} holds a row twice"
    return found
