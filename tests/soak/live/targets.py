"""What jobs of a real server work on in rounds and soaks: a column, and views of every kind.

All read one source. Each function sleeps, prints, and leaves the row's id at each call.
"""

import base64
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.harness.data.functions import envelope, new_column, virtual_column
from tests.harness.jobs.loose_files import find_loose
from tests.harness.processes.runners import FINISHED, wait
from tests.harness.views.runner_views import RunnerView, Source, make_view, to_base64, udtf_spec

FILTER = "x % 5 <> 0"
GROUPED = f"SELECT kind, count(*) AS n, sum(x) AS total FROM t WHERE {FILTER} GROUP BY kind"
NUMBER, TEXT = pa.int64(), pa.string()
Rows = list[dict[str, Any]]
Found = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Pace:
    """How long a call takes, and how many lines it prints."""

    seconds: float = 0.02
    lines: int = 0


def rows_of(ids: range) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, NUMBER),
            "text": [" ".join(f"w{id}-{n}" for n in range(id % 3 + 1)) for id in ids],
            "x": pa.array([id % 7 for id in ids], NUMBER),
            "kind": [f"k{id % 4}" for id in ids],
            "part": pa.array([id // 2 for id in ids], NUMBER),
        }
    )


def _call(log: Path, pace: Pace, compute: Callable[..., Any]) -> Callable[..., Any]:
    path, seconds, lines = str(log), pace.seconds, pace.lines

    def call(first: Any, *others: Any) -> Any:
        import os
        import time

        shown = first if isinstance(first, int) else first["part"][0].as_py()
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{shown}\n".encode())
        os.close(handle)
        for n in range(lines):
            print(f"{shown}: {n}")
        time.sleep(seconds)
        return compute(first, *others)

    return call


@dataclass(frozen=True)
class Target:
    """Something that a job fills or refreshes, and what it must hold."""

    kind: str
    view: RunnerView
    columns: tuple[str, ...]

    def request(self, **body: Any) -> str:
        if self.kind != "backfill":
            return self.view.request(**body)
        path = f"/v1/table/{self.view.id}/backfill_column"
        answer = self.view.server.post(path, {"column": "value"} | body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    def finish(self, job: str, seconds: float) -> dict[str, Any]:
        return wait(self.view.server, job, lambda found: found["status"] in FINISHED, seconds)

    def calls(self) -> Counter[str]:
        log = self.view.log
        return Counter(log.read_text().splitlines() if log.is_file() else [])

    def show(self) -> Found:
        """What it holds, sorted."""
        return self.view.show(*self.columns)

    def loose_files(self) -> set[str]:
        """Files of data that no version refers to; a worker may outlive its runner by a note."""
        newest = self.view.open()
        found = find_loose(Path(newest.uri), [newest], "[rb][fp]-*")
        return {name for name in found if name.endswith(".lance")}


def holds(kind: str, rows: Rows) -> Found:
    """What a target must hold, in plain Python."""
    inside = [row for row in rows if row["x"] % 5 != 0]
    found: Found
    if kind == "backfill":
        found = [(row["id"], f"{row['id']}={row['text']}") for row in rows]
    elif kind == "plain":
        found = [(row["id"], row["text"]) for row in inside]
    elif kind == "filled":
        found = [(row["id"], f"{row['id']}={row['text']}") for row in inside]
    elif kind == "chunks":
        words = ((row["id"], row["text"].split(" ")) for row in inside)
        found = [(id, n, word) for id, many in words for n, word in enumerate(many)]
    elif kind == "parts":
        found = [
            (part, sum(row["id"] for row in inside if row["part"] == part))
            for part in {row["part"] for row in inside}
        ]
    else:
        found = []
        for kind_of_row in {row["kind"] for row in inside}:
            xs = [row["x"] for row in inside if row["kind"] == kind_of_row]
            found.append((kind_of_row, len(xs), sum(xs)))
    return sorted(found, key=repr)


def needs(kind: str, rows: Rows) -> set[str]:
    """The calls that filling a target takes, by what they are shown."""
    if kind in ("plain", "groups"):
        return set()
    if kind == "backfill":
        return {str(row["id"]) for row in rows}
    key = "part" if kind == "parts" else "id"
    return {str(row[key]) for row in rows if row["x"] % 5 != 0}


def make_target(source: Source, kind: str, folder: Path, pace: Pace, **body: Any) -> Target:
    """A new target of a kind, which is not filled yet."""
    log = folder / f"{source.namespace}-{kind}.calls"
    made = MAKERS[kind](source, log, pace, body)
    return Target(kind, made, COLUMNS[kind])


def _join(id: int, text: str) -> str:
    return f"{id}={text}"


def _make_backfill(source: Source, log: Path, pace: Pace, body: dict[str, Any]) -> RunnerView:
    function = _call(log, pace, _join)
    column = virtual_column(function, ["id", "text"], {"value": "utf8"}, name="f")
    source.ask("add_columns", {"new_columns": [new_column(column)]})
    return RunnerView(source.server, source.namespace, source.name, log)


def _make_plain(source: Source, log: Path, pace: Pace, body: dict[str, Any]) -> RunnerView:
    return make_view(source, f"SELECT id, text FROM t WHERE {FILTER}", "plain", log, **body)


def _make_filled(source: Source, log: Path, pace: Pace, body: dict[str, Any]) -> RunnerView:
    packed = envelope(_call(log, pace, _join))
    query = {
        "base": {"filter": "x % 5 != 0", "columns": ["id"]},
        "source_table": "t",
        "column_udfs": [
            {
                "output_name": "value",
                "input_columns": ["id", "text"],
                "output_index": 1,
                "udf": {"udf_payload": _unpacked(packed)},
            }
        ],
    }
    schema = to_base64({"id": NUMBER, "value": TEXT})
    return make_view(source, query, "filled", log, output_schema=schema, **body)


def _unpacked(packed: str) -> str:
    return base64.b64decode(packed).decode()


def _make_chunks(source: Source, log: Path, pace: Pace, body: dict[str, Any]) -> RunnerView:
    made = {"word": TEXT}

    def split(id: int, text: str) -> list[dict[str, Any]]:
        return [{"word": word} for word in text.split(" ")]

    spec = udtf_spec("chunker", _call(log, pace, split), ["id", "text"], made)
    whole = {
        "kind": "chunker",
        "udtf_spec": spec,
        "output_schema": to_base64({"id": NUMBER, **made}),
    } | body
    return make_view(source, f"SELECT id, text FROM t WHERE {FILTER}", "chunks", log, **whole)


def _make_parts(source: Source, log: Path, pace: Pace, body: dict[str, Any]) -> RunnerView:
    made = {"part": NUMBER, "total": NUMBER}

    def total(table: Any) -> list[dict[str, Any]]:
        return [{"part": table["part"][0].as_py(), "total": sum(table["id"].to_pylist())}]

    call = _call(log, pace, total)
    spec = udtf_spec("udtf", call, ["part", "id"], made, partition_by="part")
    whole = {"kind": "udtf", "udtf_spec": spec, "output_schema": to_base64(made)} | body
    # In Lance's own SQL: Spark's is not followed by partitions where it may mean something else.
    base = {"filter": "x % 5 != 0", "columns": ["part", "id"]}
    query = {"base": base, "source_table": "t"}
    return make_view(source, query, "parts", log, **whole)


def _make_groups(source: Source, log: Path, pace: Pace, body: dict[str, Any]) -> RunnerView:
    return make_view(source, GROUPED, "groups", log, **body)


MAKERS: dict[str, Callable[[Source, Path, Pace, dict[str, Any]], RunnerView]] = {
    "backfill": _make_backfill,
    "plain": _make_plain,
    "filled": _make_filled,
    "chunks": _make_chunks,
    "parts": _make_parts,
    "groups": _make_groups,
}
COLUMNS = {
    "backfill": ("id", "value"),
    "plain": ("id", "text"),
    "filled": ("id", "value"),
    "chunks": ("id", "__child_index", "word"),
    "parts": ("part", "total"),
    "groups": ("kind", "n", "total"),
}
