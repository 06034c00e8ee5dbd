"""Functions run over a table's fragments without a catalog: what a Spark task does, in the test."""

import base64
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import lance
import msgspec
import numpy as np
import pyarrow as pa

from penstock.jobs.backfill.kernel import FillOrder, fill_fragments
from penstock.jobs.engine.checkpoints import Checkpoint
from penstock.jobs.engine.fragment_work import FragmentWork
from penstock.jobs.engine.guard import TaskFailed, find_failure
from penstock.jobs.functions.task import FunctionOptions
from penstock.lance.commit.replacement import Computation, commit_files
from penstock.lance.diff.masks import pack
from penstock.lance.session.remote import Location
from penstock.model.functions import Function, FunctionOutput, OnError, RowError
from tests.harness.data.calls import pickled


def seal(function: Any, kind: str | None = "scalar") -> bytes:
    """Our envelope, as it is stored."""
    payload = pickled(function)
    made = {
        "format": "penstock/1",
        "kind": kind,
        "payload": base64.b64encode(payload).decode(),
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    return json.dumps(made).encode()


def declare(
    content: bytes,
    inputs: Sequence[str],
    outputs: Sequence[str] = ("value",),
    *,
    name: str = "f",
    kind: Any = "scalar",
    form: Any = "penstock/1",
    on_error: Mapping[str, Any] | None = None,
    nullable: bool = True,
    **more: Any,
) -> Function:
    return Function(
        name=name,
        version="1",
        sha256=hashlib.sha256(content).hexdigest(),
        form=form,
        kind=kind,
        inputs=tuple(inputs),
        outputs=tuple(
            FunctionOutput(column, column if len(outputs) > 1 else "", {}, nullable)
            for column in outputs
        ),
        on_error=OnError(**(on_error or {})),
        **more,
    )


@dataclass
class Bench:
    """A table whose columns a function is to fill."""

    root: Path
    function: Function | None
    columns: tuple[str, ...] = ("value",)
    job: str = field(default_factory=lambda: str(uuid.uuid4()))
    attempt: int = 1

    def open(self) -> lance.LanceDataset:
        return lance.dataset(str(self.root))

    def work(self, need: Any = None, left: Any = None) -> tuple[FragmentWork, ...]:
        """All fragments; `need` and `left` are predicates on arrays of offsets."""

        def choose(predicate: Callable[[Any], Any] | None, rows: int) -> bytes | None:
            return None if predicate is None else pack(predicate(np.arange(rows)))

        return tuple(
            FragmentWork(
                f.fragment_id,
                "0" * 32,
                f.physical_rows,
                f.count_rows(),
                f.count_rows(),
                (),
                (),
                choose(need, f.physical_rows),
                choose(left, f.physical_rows),
            )
            for f in self.open().get_fragments()
        )

    def order(self, work: tuple[FragmentWork, ...], **more: Any) -> FillOrder:
        what = more.pop("what", Computation(self.columns[0]))
        knobs = {
            each.name: more.pop(each.name) for each in fields(FunctionOptions) if each.name in more
        }
        return FillOrder(
            self.job,
            self.attempt,
            Location(str(self.root), ""),
            self.open().version,
            what,
            (work,),
            self.function,
            self.columns,
            FunctionOptions(**knobs),
            **more,
        )

    def run(
        self, *, need: Any = None, left: Any = None, is_second: bool = False, **more: Any
    ) -> TaskFailed | None:
        """Compute all fragments and commit them, as far as they were finished."""
        work = self.work(need, left)
        order = self.order(work, **more)
        failed = find_failure(partial(fill_fragments, order, work, is_second=is_second))
        self.commit()
        return failed

    def commit(self) -> None:
        if files := {note.work.id: note.file for note in self.notes()}:
            commit_files(self.open(), files, {})

    def notes(self) -> list[Checkpoint]:
        found = self.folder.glob("[0-9]*.json")
        return [msgspec.json.decode(p.read_bytes(), type=Checkpoint) for p in sorted(found)]

    def errors(self) -> list[RowError]:
        found = self.folder.glob("errors-*.json")
        return [
            e
            for p in sorted(found)
            for e in msgspec.json.decode(p.read_bytes(), type=list[RowError])
        ]

    def printed(self) -> list[str]:
        found = self.folder.glob("out-*.json")
        return [line for p in sorted(found) for line in json.loads(p.read_text())]

    def parts(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("*.arrow"))

    def values(self, column: str = "value") -> list[Any]:
        table = self.open().scanner(columns=[column], blob_handling="all_binary").to_table()
        return list(table[column].to_pylist())

    @property
    def folder(self) -> Path:
        return self.root / "_jobs" / self.job


def bench(
    folder: Path,
    data: pa.Table,
    function: Any,
    inputs: Sequence[str],
    outputs: Mapping[str, Any],
    *,
    kind: str | None = "scalar",
    fragments: int = 2,
    storage: Any = "2.1",
    content: bytes | None = None,
    **more: Any,
) -> Bench:
    """A table with empty columns, and a function for them; outputs are types or fields by name."""
    root = folder / uuid.uuid4().hex[:8]
    dataset = lance.write_dataset(
        data,
        str(root),
        max_rows_per_file=-(-len(data) // fragments),
        enable_stable_row_ids=True,
        data_storage_version=storage,
    )
    fields = [v if isinstance(v, pa.Field) else pa.field(k, v) for k, v in outputs.items()]
    dataset.add_columns(pa.schema(fields))
    content = content or seal(function, kind)
    (root / "_udfs").mkdir()
    declared = declare(content, inputs, tuple(outputs), kind=kind, **more)
    (root / "_udfs" / declared.sha256).write_bytes(content)
    return Bench(root, declared, tuple(outputs))
