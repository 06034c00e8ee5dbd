"""Backfills without a runner: an attempt whose lease is in the test's hands."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import lance
import pyarrow as pa

from penstock.errors import ConcurrentCommit
from penstock.jobs.backfill.run import BackfillResult, run_backfill, sweep_backfill
from penstock.jobs.engine.attempt import Value
from penstock.jobs.spark.tasks import Engine
from penstock.lance.session.remote import RemoteCatalog
from penstock.model.functions import RowError
from tests.harness.pylance import connect
from tests.harness.servers import Server
from tests.harness.tables import new_name


@dataclass
class HeldAttempt:
    """An attempt that holds its job until the test says otherwise."""

    job: str = field(default_factory=lambda: str(uuid.uuid4()))
    number: int = 1
    # Called before each commit; the test's chance to be first, or to raise.
    on_fence: Callable[[], None] = lambda: None
    on_check: Callable[[], None] = lambda: None
    told: dict[str, Value] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    # The ledger: what it is told, and what it has of the column.
    failed: list[RowError] = field(default_factory=list)
    ledger: frozenset[int] = frozenset()

    def check(self) -> None:
        self.on_check()

    def fence(self) -> None:
        self.on_fence()

    def progress(self, **values: Value) -> None:
        self.told.update(values)

    def log(self, text: str, level: str = "info") -> None:
        self.lines.append(text)

    def publish(self, versions: Sequence[Mapping[str, Any]]) -> None:
        staged = [Path("/") / each["manifest_path"] for each in versions]
        final = [path.with_name(path.name.partition("-")[0]) for path in staged]
        if any(path.exists() for path in final):
            raise ConcurrentCommit("a version is taken")
        for path, to in zip(staged, final, strict=True):
            path.rename(to)

    def errors(self, rows: Sequence[RowError], view: str = "") -> None:
        self.failed += rows

    def error_rows(self) -> frozenset[int]:
        return self.ledger


def once(work: Callable[[], object]) -> Callable[[], None]:
    """Do something the first time only."""
    left = [work]

    def call() -> None:
        if left:
            left.pop()()

    return call


@dataclass(frozen=True)
class Computed:
    """A table with a column that an expression computes."""

    catalog: RemoteCatalog
    namespace: Any
    id: list[str]
    engine: Engine
    column: str
    expression: str
    inputs: tuple[str, ...]

    def open(self, branch: str | None = None) -> lance.LanceDataset:
        dataset = lance.dataset(namespace_client=self.namespace, table_id=self.id)
        return dataset.checkout_version((branch, None)) if branch else dataset

    def spec(self, **options: Any) -> dict[str, Any]:
        return {
            "table": self.id,
            "column": self.column,
            "expression": self.expression,
            "inputs": list(self.inputs),
            **options,
        }

    def fill(self, attempt: HeldAttempt | None = None, **options: Any) -> BackfillResult:
        """Run a backfill to its end, as a runner does when nothing goes wrong."""
        attempt = attempt or HeldAttempt()
        done = run_backfill(self.spec(**options), self.catalog, lambda: self.engine, attempt)
        self.sweep(attempt, **options)
        return done

    def sweep(self, attempt: HeldAttempt, **options: Any) -> int:
        return sweep_backfill(self.spec(**options), self.catalog, attempt.job, attempt.number)

    def values(self, branch: str | None = None) -> dict[int, Any]:
        """The column by `id`."""
        rows = self.open(branch).to_table(columns=["id", self.column])
        return dict(zip(rows["id"].to_pylist(), rows[self.column].to_pylist(), strict=True))

    def expected(self, branch: str | None = None) -> dict[int, Any]:
        """What it must be."""
        rows = self.open(branch).to_table(columns={"id": "id", "value": self.expression})
        return dict(zip(rows["id"].to_pylist(), rows["value"].to_pylist(), strict=True))

    def loose_files(self, branch: str = "") -> set[str]:
        """Files that backfills wrote and no version on main or the branch refers to, and notes."""
        root = Path(self.open().uri)
        data = root / (f"tree/{branch}/data" if branch else "data")
        kept = set()
        newest = self.open(branch or None)
        for version in newest.versions():
            opened = newest.checkout_version((branch or None, version["version"]))
            kept |= {f.path for fragment in opened.get_fragments() for f in fragment.data_files()}
        left = {path.name for path in data.glob("b[fp]-*")} - kept
        return left | {path.name for path in root.glob("_jobs/**/*")}


def documents(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "text": ["x" * (n % 17) for n in ids]})


def compute(
    server: Server,
    engine: Engine,
    *,
    rows: int = 100,
    fragments: int = 4,
    expression: str = "length(text) + id",
    inputs: tuple[str, ...] = ("text", "id"),
    data: pa.Table | None = None,
    storage: str | None = None,
) -> Computed:
    """A new table with an empty column that the expression is to fill."""
    namespace, name = connect(server), new_name()
    server.post(f"/v1/namespace/{name}/create").raise_for_status()
    id = [name, "t"]
    data = documents(0, rows) if data is None else data
    dataset = lance.write_dataset(
        data,
        namespace_client=namespace,
        table_id=id,
        mode="create",
        max_rows_per_file=-(-len(data) // fragments),
        enable_stable_row_ids=True,
        data_storage_version=cast(Any, storage),
    )
    kind = (
        dataset.scanner(columns={"v": expression}, limit=1, with_row_address=True)
        .to_table()
        .schema.field("v")
        .type
    )
    dataset.add_columns(pa.field("value", kind))
    catalog = RemoteCatalog(server.url)
    return Computed(catalog, namespace, id, engine, "value", expression, inputs)
