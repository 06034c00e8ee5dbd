"""Jobs as Geneva's client asks for them, in its own words, carried out by a real runner."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.data.foreign_pickles import wrap
from tests.harness.data.functions import b64, pack
from tests.harness.processes.runners import JOB_SECONDS, RunnerProcess
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.runner_views import Source, documents, make_source

pytestmark = pytest.mark.timeout(400)

JOBS, ERRORS = "__system$geneva_jobs", "__system$geneva_errors"


@pytest.fixture
def source(server: Server, runner: RunnerProcess) -> Source:
    for table in (JOBS, ERRORS):
        answer = server.post(f"/v1/table/{table}/declare?delimiter=%24", {"id": table.split("$")})
        assert answer.status_code in (200, 409)
    return make_source(server, range(30))


def told(server: Server, table: str, condition: str) -> list[dict[str, Any]]:
    """What that client reads of jobs or errors."""
    body = {
        "filter": condition,
        "k": 10,
        "prefilter": True,
        "bypass_vector_index": True,
        "vector": {"single_vector": []},
        "with_row_id": False,
    }
    answer = server.post(f"/v1/table/{table}/query?delimiter=%24", body)
    found: list[dict[str, Any]] = pa.ipc.open_file(answer.content).read_all().to_pylist()
    return found


def finish(server: Server, answer: Any) -> dict[str, Any]:
    """Wait for a job as that client does: until the table of jobs says that it has ended."""
    job = answer.raise_for_status().json()["job_id"]

    def look() -> dict[str, Any] | None:
        (row,) = told(server, JOBS, f"job_id = '{job}'")
        return row if row["status"] in ("DONE", "FAILED", "CANCELLED") else None

    return until(look, seconds=JOB_SECONDS)


def add(source: Source, payload: bytes, inputs: list[str], **outputs: Any) -> None:
    several = len(outputs) > 1
    udf = {
        "image": "test-image",
        "tag": "latest",
        "workspace_checksum": None,
        "udf_pickle": b64(payload),
        "udf_checksum": hashlib.sha256(payload).hexdigest(),
    }
    column = {
        "input_columns": inputs,
        "outputs": [
            {"column": name, "struct_field": name if several else "", "data_type": kind}
            | {"nullable": True}
            | ({"metadata": {"virtual_column.unpack": "true"}} if several else {})
            for name, kind in outputs.items()
        ],
        "image": "test-image:latest",
        "udf": pack(udf),
        "udf_name": "f",
        "udf_version": hashlib.md5(payload).hexdigest(),
        "udf_backend": "DockerUDFSpecV1",
        "auto_backfill": False,
        "manifest": None,
        "manifest_checksum": None,
    }
    new = {"expression": None, "computed": None, "virtual_column": column}
    body = {"new_columns": [{"name": next(iter(outputs)), **new}]}
    source.ask("add_columns?delimiter=%24", body)


def backfill(source: Source, column: str) -> dict[str, Any]:
    body = {"column": column, "where": None, "concurrency": 8, "intra_applier_concurrency": 1}
    knobs = ("min_checkpoint_size", "max_checkpoint_size", "task_size", "num_frags", "manifest")
    more = ("checkpoint_size", "commit_granularity", "cluster")
    body |= dict.fromkeys((*knobs, *more, "batch_checkpoint_flush_interval_seconds"))
    body["read_version"] = source.open().version
    path = f"/v1/table/{source.id}/backfill_column?delimiter=%24"
    return finish(source.server, source.server.post(path, body))


INT, TEXT = {"type": "int64"}, {"type": "string"}


def test_columns_are_filled_and_rows_that_fail_are_told(source: Source) -> None:
    def lengths(batch: pa.RecordBatch) -> pa.Array:
        return pa.array([len(text) for text in batch["text"].to_pylist()], pa.int64())

    def lenient(id: int) -> str:
        if id == 7:
            raise ValueError("seven")
        return str(id)

    def strict(id: int) -> str:
        raise KeyError(id)

    add(source, wrap(lengths), [], length=INT)
    add(source, wrap(lambda n: (n, n + 1)), ["id"], a=INT, b=INT)
    add(source, wrap(lenient, skips=True), ["id"], shown=TEXT)
    add(source, wrap(strict), ["id"], never=TEXT)
    for column in ("length", "a", "shown"):
        assert backfill(source, column)["status"] == "DONE"
    failed = backfill(source, "never")
    assert failed["status"] == "FAILED"
    assert "KeyError" in failed["events"][-1]
    found = source.open().to_table().to_pylist()
    assert len(found) == 30
    for row in found:
        id = row["id"]
        assert (row["length"], row["a"], row["b"]) == (len(row["text"]), id, id + 1)
        assert row["shown"] == (None if id == 7 else str(id))
    (error,) = told(source.server, ERRORS, "table_name = 't' and column_name = 'shown'")
    assert (error["error_type"], error["error_message"]) == ("ValueError", "seven")


def create_view(source: Source, kind: str, name: str, payload: bytes, **spec: Any) -> str:
    made = spec.pop("makes")
    schema = b64(made.serialize().to_pybytes())
    part = "udtf_payload" if kind == "udtf" else "chunker_payload"
    text = pack({"name": name, "version": "1", part: b64(payload), "output_schema_bytes": schema})
    base = {"filter": None, "limit": None, "columns": ["id", "text", "kind"], "offset": None}
    query = {
        "base": base,
        "shuffle": None,
        "shuffle_seed": None,
        "column_udfs": None,
        "source_table": source.name,
        "source_db_uri": "db://lake",
    }
    usual = {"partition_by_indexed_column": None, "num_cpus": 1.0, "num_gpus": 0.0, "memory": None}
    body = {
        "kind": kind,
        "source_query": json.dumps(query),
        "output_schema": None if kind == "chunker" else schema,
        "udtf_spec": {
            "kind": kind,
            "udtf": text,
            # Of the text, not of the bytes.
            "udtf_sha": hashlib.sha256(text.encode()).hexdigest(),
            "udtf_name": name,
            "udtf_version": "1",
            "error_handling": None,
        }
        | usual
        | spec,
        "with_no_data": True,
        "auto_refresh": False,
    }
    view = f"{source.namespace}${name}"
    path = f"/v1/materialized_view/{view}"
    assert "version" in source.server.post(f"{path}/create", body).raise_for_status().json()
    refresh = {"src_version": None, "concurrency": 8, "output_limit": None, "manifest": None}
    done = finish(source.server, source.server.post(f"{path}/refresh?delimiter=%24", refresh))
    assert (done["status"], done["column_name"]) == ("DONE", ""), done
    return view


def test_views_are_made_by_its_chunkers_and_udtfs(source: Source) -> None:
    def split(text: pa.Array, __source_row_id: pa.Array) -> pa.RecordBatch:
        given = zip(text.to_pylist(), __source_row_id.to_pylist(), strict=True)
        found = [(word, row) for text, row in given for word in text.split()]
        columns = [pa.array([each[0] for each in found]), pa.array([each[1] for each in found])]
        return pa.record_batch(columns, names=["word", "__source_row_id"])

    def count(source: Any) -> Iterator[pa.RecordBatch]:
        rows = source.to_arrow()
        if rows["kind"][0].as_py() == "k1":
            raise ValueError("no k1")
        yield pa.record_batch({"kind": rows["kind"][:1].combine_chunks(), "rows": [len(rows)]})

    words = create_view(
        *(source, "chunker", "words", wrap(split, "Chunker")),
        makes=pa.schema([("word", pa.string())]),
        input_columns=["text"],
        batch=True,
    )
    texts = documents(range(30))["text"].to_pylist()
    expected = sorted(word for text in texts for word in text.split())
    view = Source(source.server, *words.split("$"))
    assert sorted(view.open().to_table()["word"].to_pylist()) == expected
    counts = create_view(
        *(source, "udtf", "counts", wrap(count, "UDTF", skips=True)),
        makes=pa.schema([("kind", pa.string()), ("rows", pa.int64())]),
        input_columns=["id", "kind"],
        partition_by="kind",
    )
    rows = Source(source.server, *counts.split("$")).open().to_table().to_pylist()
    assert {row["kind"]: row["rows"] for row in rows} == {"k0": 10, "k2": 10}
