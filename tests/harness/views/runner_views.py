"""Materialized views of a real server, refreshed by real runners."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import lance
import pyarrow as pa

from tests.harness.clients.pylance import connect
from tests.harness.data.arrow import send
from tests.harness.data.calls import pickled, take_calls
from tests.harness.data.functions import b64, pack
from tests.harness.data.tables import new_name
from tests.harness.jobs.loose_files import find_loose
from tests.harness.processes.runners import FINISHED, JOB_SECONDS, find_commits, wait
from tests.harness.processes.servers import Server
from tests.harness.views.plans import PLANNED, check_told

DOCUMENTS = pa.schema(
    [("id", pa.int64()), ("text", pa.string()), ("title", pa.string()), ("kind", pa.string())]
)


def documents(ids: Sequence[int], word: str = "w") -> pa.Table:
    """Documents of one to three words, of three kinds."""
    texts = [" ".join(f"{word}{id}-{n}" for n in range(id % 3 + 1)) for id in ids]
    columns = [list(ids), texts, [f"t{id}" for id in ids], [f"k{id % 3}" for id in ids]]
    return pa.table(columns, schema=DOCUMENTS)


@dataclass(frozen=True)
class Source:
    """A table of documents."""

    server: Server
    namespace: str
    name: str = "t"

    @property
    def id(self) -> str:
        return f"{self.namespace}${self.name}"

    def ask(self, operation: str, body: Any = None) -> httpx.Response:
        answer = self.server.post(f"/v1/table/{self.id}/{operation}", body)
        assert answer.status_code == 200, answer.text
        return answer

    def open(self) -> lance.LanceDataset:
        table_id = [self.namespace, self.name]
        return lance.dataset(namespace_client=connect(self.server), table_id=table_id)

    def append(self, *ids: int) -> None:
        send(self.server, f"/v1/table/{self.id}/insert", documents(ids)).raise_for_status()

    def overwrite(self, *ids: int, word: str = "w") -> None:
        path = f"/v1/table/{self.id}/create"
        send(self.server, path, documents(ids, word), mode="overwrite").raise_for_status()

    def update(self, column: str, expression: str, where: str) -> None:
        self.ask("update", {"updates": [[column, expression]], "predicate": where})

    def delete(self, where: str) -> None:
        self.ask("delete", {"predicate": where})

    def compact(self) -> None:
        self.open().optimize.compact_files()

    def restore(self, version: int) -> None:
        self.ask("restore", {"version": version})

    def rows(self) -> list[dict[str, Any]]:
        return list(self.open().to_table().to_pylist())


@dataclass(frozen=True)
class RunnerView(Source):
    """A view, and the file in which each call of its function leaves a line."""

    log: Path = Path()

    def refresh(self, **body: Any) -> dict[str, Any]:
        """Refresh it, which must work and be what the plan said; returns the job's properties."""
        plan = self.explain(**body)
        found = self.finish(self.request(**body))
        assert found["status"] == "SUCCEEDED", found
        told = {key: plan[key] for key in ("mode", "reason")}
        assert told == {key: found[key] for key in told}
        for planned, done in PLANNED.items():
            if plan[planned] is not None:
                assert str(plan[planned]) == found[done], (planned, plan, found)
        versions = {name: pair["to"] for name, pair in plan["source_versions"].items()}
        assert json.loads(found["source_versions"]) == versions
        return found

    def explain(self, **body: Any) -> dict[str, Any]:
        answer = self.server.post(f"/v1/materialized_view/{self.id}/explain", body)
        assert answer.status_code == 200, answer.text
        return check_told(answer.json())

    def request(self, **body: Any) -> str:
        answer = self.server.post(f"/v1/materialized_view/{self.id}/refresh", body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    def finish(self, job: str, seconds: float = JOB_SECONDS) -> dict[str, Any]:
        return wait(self.server, job, lambda found: found["status"] in FINISHED, seconds)

    def show(self, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of the view, sorted."""
        found = self.open().to_table(columns=list(columns)).to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    def take_calls(self) -> list[str]:
        """What the function was given since the last time, sorted."""
        return sorted(take_calls(self.log))

    def commits(self, job: str) -> list[int]:
        """The versions that a job committed."""
        return find_commits(self.open(), job)

    def loose_files(self) -> set[str]:
        """Files of refreshes that no version refers to, and notes of jobs."""
        newest = self.open()
        return find_loose(Path(newest.uri), [newest], "rf-*")


def make_source(server: Server, ids: Sequence[int], fragments: int = 3) -> Source:
    """A new table of documents."""
    source = Source(server, new_name())
    server.post(f"/v1/namespace/{source.namespace}/create").raise_for_status()
    lance.write_dataset(
        documents(ids),
        namespace_client=connect(server),
        table_id=[source.namespace, source.name],
        mode="create",
        max_rows_per_file=-(-len(ids) // fragments),
        enable_stable_row_ids=True,
    )
    return source


def make_view(
    source: Source, query: Any, name: str = "v", log: Path = Path(), **body: Any
) -> RunnerView:
    """A view that is not filled yet; the query is text, or what is sent as JSON."""
    view = RunnerView(source.server, source.namespace, name, log)
    text = query if isinstance(query, str) else json.dumps(query)
    whole = {"kind": "query", "source_query": text, "with_no_data": True} | body
    answer = source.server.post(f"/v1/materialized_view/{view.id}/create", whole)
    assert answer.status_code == 201, answer.text
    return view


def recording(log: Path, compute: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which leaves a line with its first input at each call."""
    path = str(log)

    def call(*values: Any) -> Any:
        import os

        line = str(values[0]).replace("\n", " ").encode() + b"\n"
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line)
        os.close(file)
        return compute(*values)

    return call


def udtf_spec(
    kind: str,
    function: Callable[..., Any],
    inputs: Sequence[str],
    outputs: Mapping[str, pa.DataType],
    **more: Any,
) -> dict[str, Any]:
    """`udtf_spec` as clients pack it; `more` are its other fields."""
    payload = "udtf_payload" if kind == "udtf" else "chunker_payload"
    code = {
        "name": "f",
        "version": "1",
        payload: b64(pickled(function)),
        "output_schema_bytes": to_base64(outputs),
        "input_columns": list(inputs),
        "batch": False,
    } | {key: more[key] for key in ("partition_by",) if key in more}
    return {"kind": kind, "udtf": pack(code), "udtf_name": "f", "udtf_version": "1"} | more


def to_base64(columns: Mapping[str, pa.DataType]) -> str:
    return b64(pa.schema(list(columns.items())).serialize().to_pybytes())


def split(text: str) -> Any:
    for word in text.split(" "):
        yield {"word": word}


def make_words(
    source: Source, log: Path, function: Callable[..., Any] = split, **body: Any
) -> RunnerView:
    """A view with the words of the documents, each with its document's id and title."""
    made = {"word": pa.string()}
    spec = udtf_spec("chunker", recording(log, function), ["text"], made)
    schema = to_base64({"id": pa.int64(), "title": pa.string(), **made})
    query = "SELECT id, title, text FROM t"
    whole = {"kind": "chunker", "udtf_spec": spec, "output_schema": schema} | body
    return make_view(source, query, "words", log, **whole)


def words_of(source: Source) -> list[tuple[Any, ...]]:
    """What such a view has to hold: id, title, place, word."""
    found = [
        (row["id"], row["title"], place, word)
        for row in source.rows()
        for place, word in enumerate(row["text"].split(" "))
    ]
    return sorted(found, key=repr)
