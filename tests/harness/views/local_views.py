"""Views refreshed in the test's own process: the product's recipe, tables by their paths.

What the catalog would remember of a view is remembered here.
"""

import base64
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import msgspec
import pyarrow as pa
from msgspec import structs

from penstock.jobs.refresh.cascade import run_refreshes, sweep_refreshes
from penstock.jobs.refresh.plan import explain_refresh
from penstock.jobs.refresh.run import run_refresh, sweep_refresh
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import Alteration, RefreshSpec, UpstreamSpec
from penstock.lance.session.remote import Location
from penstock.lance.write.view_tables import describe_view
from penstock.model.functions import Function
from penstock.model.views import (
    SOURCE_ROW_ID,
    Column,
    Definition,
    RefreshResult,
    Rows,
    Source,
    Watermark,
)
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import LOCAL_ENGINE, FolderLake
from tests.harness.jobs.loose_files import find_loose
from tests.harness.processes.python_code import start_code
from tests.harness.views.plans import check_told

# The text of a view's query, which nothing here reads.
QUERY = "SELECT"


def define(
    columns: Mapping[str, str],
    kinds: Mapping[str, pa.DataType],
    reads: Sequence[str],
    *,
    where: str | None = None,
    limit: int | None = None,
    engine: Any = "lance",
    functions: Sequence[Function] = (),
    digest: str = "1",
    source: str = "source",
    source_id: str = "s1",
) -> Definition:
    """A view over the rows of one source; a column that is named like its expression is plain."""
    schema = pa.schema([pa.field(SOURCE_ROW_ID, pa.int64()), *kinds.items()])
    return Definition(
        kind="query",
        shape="rows",
        language=engine,
        sources=(Source(id=source_id, table=("n", source), name="source", reads=tuple(reads)),),
        rows=Rows(
            engine=engine,
            filter=where,
            columns=tuple(
                Column(name=name, expression=text, path=text if text in reads else None)
                for name, text in columns.items()
            ),
            limit=limit,
        ),
        column_functions=tuple(functions),
        schema=encode_schema(schema),
        digest=digest,
    )


def read_spec(text: str) -> RefreshSpec:
    return msgspec.json.decode(text, type=RefreshSpec)


def encode_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


@dataclass
class LocalView:
    """A view, and what the catalog knows of it."""

    folder: Path
    definition: Definition
    engine: Engine = LOCAL_ENGINE
    name: str = "view"
    watermark: Watermark | None = None
    attempts: list[HeldAttempt] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.folder / self.name

    @property
    def id(self) -> str:
        return f"{self.name}0123456789"

    @property
    def catalog(self) -> FolderLake:
        return FolderLake(self.folder)

    def create(self) -> "LocalView":
        """An empty table, as a server makes it."""
        text = base64.b64decode(self.definition.schema)
        told = describe_view(self.definition.kind, QUERY)
        metadata = {key: value for key, value in told.items() if value is not None}
        schema = pa.ipc.read_schema(pa.py_buffer(text)).with_metadata(metadata)
        lance.write_dataset(schema.empty_table(), str(self.path), enable_stable_row_ids=True)
        return self

    def open(self) -> lance.LanceDataset:
        return lance.dataset(str(self.path))

    def spec(self, **options: Any) -> RefreshSpec:
        return RefreshSpec(
            table=("n", self.name),
            table_id=self.id,
            definition=self.definition,
            watermark=self.watermark,
            **options,
        )

    def refresh(self, attempt: HeldAttempt | None = None, **options: Any) -> RefreshResult:
        """Run a refresh to its end, and remember what the catalog would."""
        attempt = attempt or HeldAttempt()
        spec = self.spec(**options)
        done = run_refresh(spec, self.catalog, lambda: self.engine, attempt)
        sweep_refresh(spec, self.catalog, attempt.job, attempt.number)
        self.watermark = done.watermark
        return done

    def alter(
        self, definition: Definition, attempt: HeldAttempt | None = None, **options: Any
    ) -> RefreshResult:
        """Alter the view and fill it, and remember what the catalog would."""
        attempt = attempt or HeldAttempt()
        spec = self.alteration_spec(definition, **options)
        done = run_refreshes(spec, self.catalog, self._get_engine, attempt)
        sweep_refreshes(spec, self.catalog, attempt.job, attempt.number)
        self.watermark, self.definition = done.watermark, definition
        return done

    def alteration_spec(
        self, definition: Definition, query: str = "altered", **options: Any
    ) -> RefreshSpec:
        altered = Alteration(before=self.definition, source_query=query)
        return structs.replace(self.spec(**options), definition=definition, alteration=altered)

    def _get_engine(self, of: UpstreamSpec | None = None) -> Engine:
        return self.engine

    def explain(self, **options: Any) -> dict[str, Any]:
        return check_told(self._explain(self.spec(**options)))

    def explain_alter(self, definition: Definition, **options: Any) -> dict[str, Any]:
        return self._explain(self.alteration_spec(definition, **options))

    def _explain(self, spec: RefreshSpec) -> dict[str, Any]:
        catalog = self.catalog

        def open_table(table: Sequence[str]) -> tuple[Location, lance.LanceDataset]:
            return catalog.locate(table, ""), catalog.open_latest(table, "")

        return explain_refresh(spec, open_table)

    def rows(self) -> dict[int, tuple[Any, ...]]:
        """The view's rows by the source rows that they come from."""
        found = self.open().to_table().to_pylist()
        rows = {row.pop(SOURCE_ROW_ID): tuple(row.values()) for row in found}
        assert len(rows) == len(found), "a source row is in the view twice"
        return rows

    def loose_files(self) -> set[str]:
        """Files with rows that no version refers to, and notes."""
        return find_loose(self.path, [self.open()], "rf-*")

    def die_at(self, point: str, job: str, number: int = 1, **options: Any) -> int:
        """Run an attempt of a job in a process that dies at a named place; its exit code."""
        with self.start(job, number, {"PENSTOCK_CRASH_AT": point}, **options) as dying:
            return dying.wait()

    def start(
        self,
        job: str,
        number: int = 1,
        environ: Mapping[str, str] | None = None,
        spec: RefreshSpec | None = None,
        **options: Any,
    ) -> "subprocess.Popen[bytes]":
        """Start an attempt of a job in a process of its own; of this spec, if one is given."""
        code = (
            "import sys; from pathlib import Path\n"
            "from tests.harness.views import local_views as v\n"
            "folder, job, number, spec = sys.argv[1:]\n"
            "v.run_refreshes(v.read_spec(spec), v.FolderLake(Path(folder)), lambda: v.LOCAL_ENGINE,"
            " v.HeldAttempt(job=job, number=int(number)))"
        )
        text = msgspec.json.encode(spec or self.spec(**options)).decode()
        return start_code(code, str(self.folder), job, str(number), text, environ=environ)
