"""The tables and views of `benchmarks/refresh.py`, and the same views made without a server."""

import base64
import json
import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import httpx
import lance
import lancedb
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments
from lance.namespace import RestNamespace

from benchmarks.jobs import Client

BATCH_ROWS = 65_536
PARTS = 10
REFUSED = "cannot be refreshed yet"

SIDES = "SELECT id, text FROM t WHERE side = 'left'"
# The same rows, by an expression that is left to Spark.
SIDES_BY_SPARK = "SELECT id, concat(lower(text), '') AS text FROM t WHERE side = 'left'"
JOINED = "SELECT o.id, o.text, k.label FROM t AS o JOIN kinds AS k ON o.kind = k.kind"
WINDOWED = (
    "SELECT id, kind, CAST(row_number() OVER (PARTITION BY kind ORDER BY id) AS INT) AS n FROM t"
)
GROUPED = "SELECT kind, count(*) AS items, sum(id) AS total FROM t GROUP BY kind"


def rows(first: int, count: int, kinds: int) -> pa.Table:
    """Numbers, texts of about a hundred bytes, two sides in turn, and a number of kinds."""
    ids = range(first, first + count)
    texts = ["x" * (50 + n % 97) for n in ids]
    sides = ["left" if n % 2 else "right" for n in ids]
    return pa.table({"id": ids, "text": texts, "side": sides, "kind": [n % kinds for n in ids]})


def make_table(client: Client, count: int, fragments: int, kinds: int = 10_000) -> list[str]:
    namespace = f"b{uuid.uuid4().hex[:8]}"
    client.post(f"/v1/namespace/{namespace}/create")
    write(client, [namespace, "t"], rows(0, count, kinds), -(-count // fragments))
    return [namespace, "t"]


def kinds(count: int) -> pa.Table:
    return pa.table({"kind": range(count), "label": [f"label {n}" for n in range(count)]})


def make_documents(client: Client, count: int, fragments: int) -> list[str]:
    """Documents of ten lines."""
    namespace = f"b{uuid.uuid4().hex[:8]}"
    client.post(f"/v1/namespace/{namespace}/create")
    texts = ["\n".join(f"line {n} of document {id}" for n in range(PARTS)) for id in range(count)]
    data = pa.table({"id": range(count), "text": texts})
    write(client, [namespace, "t"], data, -(-count // fragments))
    return [namespace, "t"]


def write(client: Client, id: list[str], data: pa.Table, size: int, mode: str = "create") -> None:
    connect: Any = RestNamespace
    lance.write_dataset(
        data,
        namespace_client=connect(uri=client.url),
        table_id=id,
        mode=mode,
        max_rows_per_file=size,
        enable_stable_row_ids=True,
    )


def split(text: str) -> Any:
    return [{"part": part} for part in text.split("\n")]


def make_view(client: Client, table: list[str], query: str, **body: Any) -> str:
    """A view that is not filled yet; returns its id."""
    view = f"{table[0]}$v{uuid.uuid4().hex[:6]}"
    whole = {"kind": "query", "source_query": query, "with_no_data": True} | body
    client.post(f"/v1/materialized_view/{view}/create", whole)
    return view


def make_parts(client: Client, table: list[str]) -> str:
    """The chunker's view: each line of each document, with the document's id."""
    # By value, because workers have no benchmarks.
    import benchmarks.following

    cloudpickle.register_pickle_by_value(benchmarks.following)
    made = pa.schema([("part", pa.string())])
    code = {
        "name": "split",
        "version": "1",
        "chunker_payload": _b64(cloudpickle.dumps(split)),
        "output_schema_bytes": _b64(made.serialize().to_pybytes()),
        "input_columns": ["text"],
        "batch": False,
    }
    spec = {"kind": "chunker", "udtf": _b64(json.dumps(code).encode())}
    schema = pa.schema([("id", pa.int64()), *made])
    return make_view(
        client,
        table,
        "SELECT id, text FROM t",
        kind="chunker",
        udtf_spec=spec,
        output_schema=_b64(schema.serialize().to_pybytes()),
    )


def refresh(client: Client, view: str, **body: Any) -> dict[str, str]:
    """Refresh a view; returns the properties of the job, which must have succeeded."""
    job = client.post(f"/v1/materialized_view/{view}/refresh", body)["job_id"]
    return client.finish(job)


def count(client: Client, table: str) -> int:
    return int(client.post(f"/v1/table/{table}/count_rows", {}))


def try_view(client: Client, table: list[str], query: str) -> tuple[str, str]:
    """A view that was filled, or else why this server does not do it."""
    try:
        view = make_view(client, table, query)
        refresh(client, view)
    except httpx.HTTPStatusError as error:
        return "", error.response.text
    except RuntimeError as error:
        if REFUSED not in str(error):
            raise
        return "", REFUSED
    return view, ""


# Without a server ----------------------------------------------------------------------------


def write_plainly(
    pool: ProcessPoolExecutor, source: str, target: str, work: "Callable[..., Any]"
) -> int:
    """The view by two plain processes that scan, compute and write, and one commit; its rows."""
    dataset = lance.dataset(source)
    ids = [fragment.fragment_id for fragment in dataset.get_fragments()]
    halves = [pool.submit(_half, source, dataset.version, ids[n::2], target, work) for n in (0, 1)]
    found = [half.result() for half in halves]
    fragments = [lance.FragmentMetadata.from_json(each) for half in found for each in half[1]]
    schema = pa.ipc.read_schema(pa.py_buffer(found[0][0]))
    made = LanceDataset.commit(target, LanceOperation.Overwrite(schema, fragments))
    return made.count_rows()


def _half(
    source: str, version: int, ids: list[int], target: str, work: "Callable[..., Any]"
) -> tuple[bytes, list[str]]:
    """What one of the two does."""
    dataset = lance.dataset(source, version=version)
    chosen: Any = [dataset.get_fragment(id) for id in ids]
    schema, batches = work(dataset, chosen)
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    made = write_fragments(reader, target, max_rows_per_file=1 << 20)
    return schema.serialize().to_pybytes(), [json.dumps(each.to_json()) for each in made]


def left_side(dataset: LanceDataset, chosen: Any) -> tuple[pa.Schema, Any]:
    """The work of the query."""
    scanner = dataset.scanner(
        columns=["id", "text"],
        filter="side = 'left'",
        fragments=chosen,
        with_row_id=True,
        batch_size=BATCH_ROWS,
    )
    # That name is taken.
    names = {"_rowid": "__source_row_id"}
    schema = pa.schema([f.with_name(names.get(f.name, f.name)) for f in scanner.projected_schema])
    batches = (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in scanner.to_batches())
    return schema, batches


def parts(dataset: LanceDataset, chosen: Any) -> tuple[pa.Schema, Any]:
    """The work of the chunker."""
    names = ("__source_row_id", "__child_index", "id", "part")
    kinds = (pa.uint64(), pa.int32(), pa.int64(), pa.string())
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    scanner = dataset.scanner(
        columns=["id", "text"], fragments=chosen, with_row_id=True, batch_size=4_096
    )

    def batches() -> Any:
        for batch in scanner.to_batches():
            found: list[list[Any]] = [[], [], [], []]
            for row, id, text in zip(
                *(batch[name].to_pylist() for name in ("_rowid", "id", "text")), strict=True
            ):
                made = [each["part"] for each in split(text)]
                size = len(made)
                for column, values in zip(
                    found, ([row] * size, range(size), [id] * size, made), strict=True
                ):
                    column.extend(values)
            yield pa.record_batch([pa.array(c) for c in found], names=list(names)).cast(schema)

    return schema, batches()


class InProcess:
    """lancedb's own materialized view, in this process, on a table of the same rows."""

    def __init__(self, folder: Path, data: pa.Table) -> None:
        database: Any = lancedb.connect(folder)
        options = {"new_table_enable_stable_row_ids": "true"}
        self.table = database.create_table("t", data, storage_options=options)
        self.view = database.create_materialized_view(
            "v", "t", select=["id", "text"], where="side = 'left'"
        )

    def refresh(self, *, full: bool = False) -> None:
        self.view.refresh(full=full)


def _b64(content: bytes) -> str:
    return base64.b64encode(content).decode()
