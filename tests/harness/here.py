"""Backfills by functions in the test's own process: the product's recipe and kernel, no Spark.

The catalog is a folder, and what it would remember of the column is remembered here.
"""

import itertools
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import msgspec
import pyarrow as pa

from penstock.jobs.backfill import explain as explaining
from penstock.jobs.backfill.plan import Watermark
from penstock.jobs.backfill.run import BackfillResult, leave_backfill, run_backfill, sweep_backfill
from penstock.jobs.spark.tasks import Engine
from penstock.lance.columns.computed import BINDING as BINDING_KEY
from penstock.lance.columns.computed import FUNCTION, VIRTUAL
from penstock.lance.session.remote import Location, RemoteCatalog, open_newest
from penstock.model.functions import Function
from tests.harness.attempts import HeldAttempt
from tests.harness.by_hand import BINDING, some_rows
from tests.harness.kernel import declare, recorded, seal
from tests.harness.root import ROOT

MAX_WATERMARKS = 3


class FolderCatalog(RemoteCatalog):
    """One table by its path."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def locate(self, table: Sequence[str], branch: str) -> Location:
        return Location(self._path, branch)

    def open_latest(self, table: Sequence[str], branch: str) -> lance.LanceDataset:
        return open_newest(self.locate(table, branch))


class InProcess:
    """Runs numbered tasks one after the other, where Spark would."""

    def __init__(self) -> None:
        self._tasks: Callable[[], Iterator[Any]] = lambda: iter(())

    def range(self, start: int, end: int, step: int, partitions: int) -> "InProcess":
        self._numbers = range(start, end, step)
        return self

    def mapInArrow(self, kernel: Any, schema: str, profile: Any = None) -> "InProcess":  # noqa: N802
        made = InProcess()
        batches = [pa.record_batch([[number]], ["id"]) for number in self._numbers]
        made._tasks = lambda: itertools.chain.from_iterable(kernel(iter([b])) for b in batches)
        return made

    def toArrow(self) -> pa.Table:  # noqa: N802
        return pa.Table.from_pylist([row for batch in self._tasks() for row in batch.to_pylist()])

    def addTag(self, tag: str) -> None:  # noqa: N802
        pass

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        pass


HERE = Engine(InProcess(), 2, is_connect=True)


@dataclass
class FunctionTable:
    """A table whose columns a function fills, and the lines that its calls leave."""

    path: Path
    catalog: RemoteCatalog
    engine: Engine
    function: Function
    log: Path
    table: tuple[str, ...] = ("n", "t")
    watermarks: dict[str, list[Watermark]] = field(default_factory=dict)

    def open(self, branch: str = "") -> lance.LanceDataset:
        return open_newest(Location(str(self.path), branch))

    def use(self, compute: Any, version: str, **more: Any) -> None:
        """Bind the columns to a function in a version."""
        self.function = store(self.path, self.log, compute, version, self.function, **more)

    def spec(self, branch: str = "", **options: Any) -> dict[str, Any]:
        known = self.watermarks.get(branch, [])
        return {
            "table": list(self.table),
            "column": self.function.outputs[0].column,
            "columns": [output.column for output in self.function.outputs],
            "inputs": list(self.function.inputs),
            "function": msgspec.to_builtins(self.function),
            "expression": None,
            "binding": BINDING,
            "branch": branch,
            "watermarks": msgspec.to_builtins(known),
            **options,
        }

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
        return explaining.explain(dataset, self.spec(branch, **options), str(self.path), {})

    def branch(self, name: str) -> None:
        """A branch of main, with what is known of the column there."""
        self.open().create_branch(name)
        self.watermarks[name] = list(self.watermarks.get("", []))

    def take_calls(self) -> list[str]:
        """The rows that the function was given since the last time."""
        found = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return found

    def values(self, branch: str = "") -> dict[int, Any]:
        column = self.function.outputs[0].column
        rows = self.open(branch).to_table(columns=["id", column])
        return dict(zip(rows["id"].to_pylist(), rows[column].to_pylist(), strict=True))

    def loose_files(self, branch: str = "") -> set[str]:
        """Files that backfills wrote and no version refers to, and notes."""
        data = self.path / (f"tree/{branch}/data" if branch else "data")
        kept = set()
        for each in {"", branch}:
            newest = self.open(each)
            for version in newest.versions():
                opened = newest.checkout_version((each or None, version["version"]))
                kept |= {f.path for frag in opened.get_fragments() for f in frag.data_files()}
        left = {path.name for path in data.glob("b[fp]-*")} - kept
        return left | {path.name for path in self.path.glob("_jobs/**/*")}

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
    engine: Engine = HERE,
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
    return FunctionTable(path, FolderCatalog(path), engine, function, log)


def bound_field(name: str, function: Function, binding: str = BINDING) -> "pa.Field[Any]":
    """A column that a function fills, as a server declares it."""
    bound = {VIRTUAL: "true", BINDING_KEY: binding, FUNCTION: msgspec.json.encode(function)}
    return pa.field(name, pa.string(), True, bound)


def die_at(table: FunctionTable, point: str, job: str, **options: Any) -> int:
    """Run the first attempt of a job in a process that dies at a named place; its exit code."""
    code = (
        "import json, sys; from pathlib import Path; from tests.harness import here\n"
        "path, log, job, options = sys.argv[1:]\n"
        "here.reopen(Path(path), Path(log)).fill(here.HeldAttempt(job=job), **json.loads(options))"
    )
    given = [str(table.path), str(table.log), job, json.dumps(options)]
    return subprocess.run(
        [sys.executable, "-c", code, *given],
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_CRASH_AT": point},
        check=False,
    ).returncode


def reopen(path: Path, log: Path) -> FunctionTable:
    return FunctionTable(path, FolderCatalog(path), HERE, store(path, log, join, "1"), log)
