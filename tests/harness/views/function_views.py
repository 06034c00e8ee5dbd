"""Views that chunkers and udtfs make, refreshed in the test's own process."""

import base64
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from penstock.jobs.spark.tasks import Engine
from penstock.model.functions import Function, RowError
from penstock.model.views import (
    CHILD_INDEX,
    PARTITION,
    SOURCE_ROW_ID,
    Column,
    Definition,
    RefreshResult,
    Rows,
    Source,
)
from tests.harness.data.calls import pickled, recorded, take_calls
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.kernel import declare
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.views.local_views import LocalView, encode_schema


def pack(function: Any, kind: str) -> bytes:
    """What `udtf_spec` holds, as it is stored."""
    name = "udtf_payload" if kind == "udtf" else "chunker_payload"
    payload = base64.b64encode(pickled(function)).decode()
    return json.dumps({"name": "f", "version": "1", name: payload}).encode()


@dataclass
class FunctionView(LocalView):
    """A view over the table `source`, and the lines that the calls of its function leave."""

    @property
    def source(self) -> lance.LanceDataset:
        return lance.dataset(str(self.folder / "source"))

    @property
    def log(self) -> Path:
        return self.folder / "calls"

    @property
    def ledger(self) -> list[RowError]:
        return [row for attempt in self.attempts for row in attempt.failed]

    def refresh(self, attempt: HeldAttempt | None = None, **options: Any) -> RefreshResult:
        self.attempts.append(attempt or HeldAttempt())
        return super().refresh(self.attempts[-1], **options)

    def show(self, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of the view, sorted."""
        found = self.open().to_table(columns=list(columns)).to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    def take_calls(self) -> list[str]:
        """What the function was given since the last time."""
        return sorted(take_calls(self.log))


def make_view(
    folder: Path,
    data: pa.Table | None,
    compute: Callable[..., Any],
    kind: str,
    outputs: Mapping[str, Any],
    *,
    inputs: Sequence[str],
    columns: Mapping[str, str] | None = None,
    kinds: Mapping[str, Any] | None = None,
    reads: Sequence[str] = (),
    where: str | None = None,
    inherited: Sequence[str] = (),
    partition_by: str | None = None,
    indexed: str | None = None,
    fragments: int = 2,
    engine: Engine = LOCAL_ENGINE,
    language: Any = "lance",
    show: Callable[..., Any] | None = None,
    **more: Any,
) -> FunctionView:
    """A new view over a source that is made of the data; columns are expressions by name.

    Outputs are types or fields by name. Inherited columns have the types of `kinds`, or those of
    the source's columns of their names.
    """
    root = folder / uuid.uuid4().hex[:8]
    root.mkdir()
    log = root / "calls"
    if data is not None:
        lance.write_dataset(
            data,
            str(root / "source"),
            max_rows_per_file=max(1, -(-len(data) // fragments)),
            enable_stable_row_ids=True,
        )
    names = tuple(data.schema.names) if data is not None else ()
    shown = show or (lambda *values: ",".join(map(str, values)))

    def call(*values: Any) -> Any:
        recorded(log, shown(*values))
        return compute(*values)

    content = pack(call, kind)
    declared: Function = declare(
        content, inputs, list(outputs), kind=kind, form="udtf_spec", **more
    )
    (root / "view" / "_udfs").mkdir(parents=True)
    (root / "view" / "_udfs" / declared.sha256).write_bytes(content)
    given = dict(columns or {name: name for name in names})
    text = " ".join([*given.values(), where or ""])
    reads = reads or [name for name in names if re.search(rf"\b{name}\b", text)]
    query_columns = tuple(
        Column(
            name=name,
            expression=text,
            path=text if text in reads else None,
            reads=tuple(each for each in reads if re.search(rf"\b{each}\b", text)),
        )
        for name, text in given.items()
    )
    system = {SOURCE_ROW_ID: pa.int64(), CHILD_INDEX: pa.int32()}
    if kind == "udtf":
        system = {PARTITION: pa.string()} if partition_by or indexed else {}
    known = dict(kinds or {})
    if data is not None:
        known = {field.name: field.type for field in data.schema} | known
    made_fields = (v if isinstance(v, pa.Field) else (n, v) for n, v in outputs.items())
    schema = pa.schema([*system.items(), *((n, known[n]) for n in inherited), *made_fields])
    definition = Definition(
        kind="udtf" if kind == "udtf" else "chunker",
        shape="rows",
        language=language,
        sources=(Source(id="source", table=("n", "source"), name="source", reads=tuple(reads)),),
        rows=Rows(engine=language, filter=where, columns=query_columns),
        function=declared,
        inherited=tuple(inherited),
        partition_by=partition_by,
        partition_by_indexed_column=indexed,
        schema=encode_schema(schema),
        digest="1",
    )
    view = FunctionView(root, definition, engine)
    view.create()
    return view
