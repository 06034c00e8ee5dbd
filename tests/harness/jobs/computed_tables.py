"""Tables of a server with a column that an expression computes, filled without a runner."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import lance
import msgspec
import pyarrow as pa

from penstock.jobs.backfill.run import BackfillResult, run_backfill, sweep_backfill
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import BackfillSpec
from penstock.lance.session.remote import RemoteCatalog
from tests.harness.clients.pylance import connect
from tests.harness.data.tables import new_name
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.loose_files import find_loose
from tests.harness.processes.servers import Server


@dataclass(frozen=True)
class ComputedTable:
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

    def spec(self, **options: Any) -> BackfillSpec:
        known = {
            "table": self.id,
            "column": self.column,
            "expression": self.expression,
            "inputs": self.inputs,
        }
        return msgspec.convert(msgspec.to_builtins(known | options), BackfillSpec)

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
        newest, root = self.open(branch or None), Path(self.open().uri)
        return find_loose(root, [newest], "b[fp]-*", branch)


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
) -> ComputedTable:
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
    return ComputedTable(catalog, namespace, id, engine, "value", expression, inputs)
