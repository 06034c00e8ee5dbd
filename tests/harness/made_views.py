"""Views that functions make, refreshed in the test's own process: the product's recipe, no Spark.

The catalog is a folder of tables, and what it would remember of the view is remembered here.
"""

import base64
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import msgspec
import pyarrow as pa

from penstock.datasets.remote import Location, RemoteCatalog, open_newest
from penstock.model.functions import Function
from penstock.model.views import (
    CHILD_INDEX,
    PARTITION,
    SOURCE_ROW_ID,
    Column,
    Definition,
    RefreshResult,
    RefreshSpec,
    Rows,
    Source,
    Watermark,
)
from penstock.pipeline.refresh import run_refresh, sweep_refresh
from penstock.pipeline.spark.engine import Engine
from tests.harness.attempts import HeldAttempt
from tests.harness.here import HERE
from tests.harness.kernel import declare, pickled, recorded


def pack(function: Any, kind: str) -> bytes:
    """What `udtf_spec` holds, as it is stored."""
    name = "udtf_payload" if kind == "udtf" else "chunker_payload"
    payload = base64.b64encode(pickled(function)).decode()
    return json.dumps({"name": "f", "version": "1", name: payload}).encode()


class Folder(RemoteCatalog):
    """Tables by their names in a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def locate(self, table: Sequence[str], branch: str) -> Location:
        return Location(str(self._path / table[-1]), branch)

    def open_latest(self, table: Sequence[str], branch: str) -> lance.LanceDataset:
        return open_newest(self.locate(table, branch))


@dataclass
class MadeView:
    """A view over the table `source`, and the lines that the calls of its function leave."""

    folder: Path
    definition: Definition
    log: Path
    engine: Engine = HERE
    watermark: Watermark | None = None
    last: RefreshResult | None = None
    ledger: list[Any] = field(default_factory=list)

    @property
    def source(self) -> lance.LanceDataset:
        return lance.dataset(str(self.folder / "source"))

    @property
    def table(self) -> lance.LanceDataset:
        return lance.dataset(str(self.folder / "view"))

    def spec(self, **options: Any) -> dict[str, Any]:
        spec = RefreshSpec(
            table=("n", "view"), table_id="view", definition=self.definition, **options
        )
        found: dict[str, Any] = msgspec.to_builtins(
            msgspec.structs.replace(spec, watermark=self.watermark)
        )
        return found

    def refresh(self, attempt: HeldAttempt | None = None, **options: Any) -> RefreshResult:
        """Run a refresh to its end, and remember what the catalog would."""
        attempt = attempt or HeldAttempt()
        spec, catalog = self.spec(**options), Folder(self.folder)
        try:
            done = run_refresh(spec, catalog, lambda: self.engine, attempt)
        finally:
            self.ledger += attempt.failed
        sweep_refresh(spec, catalog, attempt.job, attempt.number)
        self.watermark, self.last = done.watermark, done
        return done

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of the view, sorted."""
        found = self.table.to_table(columns=list(columns)).to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    def take_calls(self) -> list[str]:
        """What the function was given since the last time."""
        found = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return sorted(found)


def make_view(
    folder: Path,
    data: pa.Table,
    compute: Callable[..., Any],
    kind: str,
    outputs: Mapping[str, Any],
    *,
    inputs: Sequence[str],
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
    inherited: Sequence[str] = (),
    partition_by: str | None = None,
    indexed: str | None = None,
    fragments: int = 2,
    engine: Engine = HERE,
    language: Any = "lance",
    show: Callable[..., Any] | None = None,
    **more: Any,
) -> MadeView:
    """A new source and a view over it that was never filled; columns are expressions by name."""
    root = folder / uuid.uuid4().hex[:8]
    root.mkdir()
    log = root / "calls"
    source = lance.write_dataset(
        data,
        str(root / "source"),
        max_rows_per_file=max(1, -(-len(data) // fragments)),
        enable_stable_row_ids=True,
    )
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
    given = dict(columns or {name: name for name in data.schema.names})
    made = tuple(
        Column(name=name, expression=text, path=text if text in data.schema.names else None)
        for name, text in given.items()
    )
    system = {SOURCE_ROW_ID: pa.int64(), CHILD_INDEX: pa.int32()}
    if kind == "udtf":
        system = {PARTITION: pa.string()} if partition_by or indexed else {}
    probe = source.scanner(columns=given, limit=1).to_table().schema
    schema = pa.schema([*system.items(), *((n, probe.field(n).type) for n in inherited)])
    schema = pa.schema([*schema, *outputs.items()])
    lance.write_dataset(
        schema.empty_table(), str(root / "view"), enable_stable_row_ids=True, mode="create"
    )
    definition = Definition(
        kind="udtf" if kind == "udtf" else "chunker",
        shape="rows",
        language=language,
        sources=(
            Source(
                id="source",
                table=("n", "source"),
                name="source",
                reads=tuple(data.schema.names),
            ),
        ),
        rows=Rows(engine=language, filter=where, columns=made),
        function=declared,
        inherited=tuple(inherited),
        partition_by=partition_by,
        partition_by_indexed_column=indexed,
        schema=base64.b64encode(schema.serialize().to_pybytes()).decode(),
        digest="1",
    )
    return MadeView(root, definition, log, engine)
