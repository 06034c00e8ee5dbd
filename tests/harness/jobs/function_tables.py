"""Backfills by functions in the test's own process: the product's recipe and kernel, no Spark.

The catalog is a folder, and what it would remember of the column is remembered here.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import msgspec
import pyarrow as pa

from penstock.jobs.backfill.explain import explain_backfill
from penstock.jobs.backfill.plan import Watermark
from penstock.jobs.backfill.run import BackfillResult, leave_backfill, run_backfill, sweep_backfill
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import BackfillSpec
from penstock.lance.columns.computed import BINDING as BINDING_KEY
from penstock.lance.columns.computed import FUNCTION, VIRTUAL
from penstock.lance.session.remote import Location, RemoteCatalog, open_newest
from penstock.model.functions import Function
from tests.harness.data.calls import recorded, take_calls
from tests.harness.jobs.filled_tables import BINDING, some_rows
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.kernel import declare, seal
from tests.harness.jobs.local_engine import LOCAL_ENGINE, FolderLake
from tests.harness.jobs.loose_files import find_loose
from tests.harness.processes.python_code import die_at

MAX_WATERMARKS = 3


@dataclass
class FunctionTable:
    """A table whose columns a function fills, and the lines that its calls leave."""

    path: Path
    catalog: RemoteCatalog
    engine: Engine
    function: Function
    log: Path
    watermarks: dict[str, list[Watermark]] = field(default_factory=dict)

    @property
    def table(self) -> tuple[str, ...]:
        return ("n", self.path.name)

    def open(self, branch: str = "") -> lance.LanceDataset:
        return open_newest(Location(str(self.path), branch))

    def use(self, compute: Any, version: str, **more: Any) -> None:
        """Bind the columns to a function in a version."""
        self.function = store(self.path, self.log, compute, version, self.function, **more)

    def spec(self, branch: str = "", **options: Any) -> BackfillSpec:
        known = {
            "table": self.table,
            "column": self.function.outputs[0].column,
            "columns": [output.column for output in self.function.outputs],
            "inputs": self.function.inputs,
            "function": self.function,
            "binding": BINDING,
            "branch": branch,
            "watermarks": self.watermarks.get(branch, []),
        }
        return msgspec.convert(msgspec.to_builtins(known | options), BackfillSpec)

    def fill(
        self, attempt: HeldAttempt | None = None, branch: str = "", **options: Any
    ) -> BackfillResult:
        """Run a backfill to its end, and remember what the catalog would."""
        attempt = attempt or HeldAttempt()
        spec = self.spec(branch, **options)
        done = run_backfill(spec, self.catalog, lambda: self.engine, attempt)
        sweep_backfill(spec, self.catalog, attempt.job, attempt.number)
        if done.watermark is not None:
            kept = [done.watermark, *self.watermarks.get(branch, [])]
            self.watermarks[branch] = kept[:MAX_WATERMARKS]
        return done

    def sweep(self, attempt: HeldAttempt) -> int:
        return sweep_backfill(self.spec(), self.catalog, attempt.job, attempt.number)

    def leave(self, attempt: HeldAttempt, branch: str = "") -> int:
        """What a runner does after a job that did not succeed."""
        return leave_backfill(self.spec(branch), self.catalog, attempt.job, attempt.number)

    def explain(self, branch: str = "", **options: Any) -> dict[str, Any]:
        dataset = self.open(branch)
        location = Location(str(self.path), branch)
        return explain_backfill(dataset, self.spec(branch, **options), location)

    def branch(self, name: str) -> None:
        """A branch of main, with what is known of the column there."""
        self.open().create_branch(name)
        self.watermarks[name] = list(self.watermarks.get("", []))

    def take_calls(self) -> list[str]:
        """The rows that the function was given since the last time."""
        return take_calls(self.log)

    def values(self, branch: str = "") -> dict[int, Any]:
        column = self.function.outputs[0].column
        rows = self.open(branch).to_table(columns=["id", column])
        return dict(zip(rows["id"].to_pylist(), rows[column].to_pylist(), strict=True))

    def loose_files(self, branch: str = "") -> set[str]:
        """Files that backfills wrote and no version refers to, and notes."""
        opened = [self.open(each) for each in {"", branch}]
        return find_loose(self.path, opened, "b[fp]-*", branch)

    def lists(self) -> set[str]:
        """The files that list rows which were not filled."""
        folder = self.path / "_backfill"
        return {str(path.relative_to(folder)) for path in folder.glob("*/*")}


def store(
    path: Path,
    log: Path,
    compute: Any,
    version: str,
    like: Function | None = None,
    inputs: Sequence[str] = ("text", "number"),
    **more: Any,
) -> Function:
    """Put a function beside a table; each of its calls leaves a line."""

    def call(*values: Any) -> Any:
        recorded(log, ",".join(map(str, values)))
        return compute(*values)

    content = seal(call)
    inputs = inputs if like is None else like.inputs
    declared = declare(content, inputs, **more)
    (path / "_udfs").mkdir(exist_ok=True)
    (path / "_udfs" / declared.sha256).write_bytes(content)
    made = msgspec.structs.replace(declared, version=version)
    return made if like is None else msgspec.structs.replace(made, outputs=like.outputs)


def join(text: str, number: int) -> str:
    return f"{text}:{number}"


def make_table(
    folder: Path,
    compute: Any = join,
    *,
    rows: int = 40,
    fragments: int = 4,
    engine: Engine = LOCAL_ENGINE,
    stable: bool = True,
    **more: Any,
) -> FunctionTable:
    """A new table with an empty column `value`."""
    path = folder / uuid.uuid4().hex[:8]
    dataset = lance.write_dataset(
        some_rows(0, rows),
        str(path),
        max_rows_per_file=-(-rows // fragments),
        enable_stable_row_ids=stable,
    )
    log = folder / f"{path.name}.calls"
    function = store(path, log, compute, "1", **more)
    dataset.add_columns(bound_field("value", function))
    return FunctionTable(path, FolderLake(path.parent), engine, function, log)


def bound_field(name: str, function: Function, binding: str = BINDING) -> "pa.Field[Any]":
    """A column that a function fills, as a server declares it."""
    bound = {VIRTUAL: "true", BINDING_KEY: binding, FUNCTION: msgspec.json.encode(function)}
    return pa.field(name, pa.string(), True, bound)


def fill_and_die(table: FunctionTable, point: str, job: str, **options: Any) -> int:
    """Run the first attempt of a job in a process that dies at a named place; its exit code."""
    code = (
        "import json, sys; from pathlib import Path\n"
        "from tests.harness.jobs import function_tables as f\n"
        "path, log, job, options = sys.argv[1:]\n"
        "f.reopen(Path(path), Path(log)).fill(f.HeldAttempt(job=job), **json.loads(options))"
    )
    return die_at(point, code, str(table.path), str(table.log), job, json.dumps(options))


def reopen(path: Path, log: Path) -> FunctionTable:
    function = store(path, log, join, "1")
    return FunctionTable(path, FolderLake(path.parent), LOCAL_ENGINE, function, log)
