"""Pickles that run when they are loaded, wherever a pickle is taken, with and without the right.

Nothing but a worker of Spark may load one, and the server never does.
"""

import base64
import hashlib
import json
import os
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tests.attack.attack import HANDLED, REFUSED, Attack, Request, post
from tests.attack.place import MINE, PIT, Place
from tests.harness.data.functions import envelope, make_output, virtual_column
from tests.harness.views.definitions import encode_schema, make_column_udf

FAMILY = "pickles"
CALLERS = ("owner", "writer", "coder", "maker", "nobody", "clerk")


class Touch:
    """Makes a file when it is loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {self.path}",)


def payloads(canary: str) -> dict[str, bytes]:
    run = f"touch {canary}"
    return {
        "reduce": pickle.dumps(Touch(canary)),
        "protocol 0": pickle.dumps(Touch(canary), 0),
        "protocol 2": pickle.dumps(Touch(canary), 2),
        "eval": b'cbuiltins\neval\n(S\'__import__("os").system("' + run.encode() + b"\")'\ntR.",
        "nested": pickle.dumps([{"a": (Touch(canary),)}]),
        "cut": pickle.dumps(Touch(canary))[:-1],
        "not one": b"not a pickle",
        "nothing": b"",
        "an endless one": b"\x80\x04" + b"]\x94" * 100_000,
        "a large number": b"\x80\x04\x8b\xff\xff\xff\x7f",
    }


def make(place: Place) -> Iterator[Attack]:
    for name, payload in payloads(place.canary).items():
        for where, (request, by_right) in _places(payload).items():
            for who in CALLERS:
                # Who may bring code may bring this too, since nobody looks into it.
                may = HANDLED if who == "maker" and by_right else REFUSED
                yield Attack(FAMILY, f"{where}: {name}", who, request, may)


def _udf(payload: bytes) -> str:
    return envelope(payload)


def _spec(kind: str, payload: bytes) -> dict[str, Any]:
    makes = encode_schema(pa.schema([("word", pa.string())]))
    inner = {
        "name": "f",
        "version": "1",
        f"{kind}_payload": base64.b64encode(payload).decode(),
        "output_schema_bytes": makes,
    }
    text = base64.b64encode(json.dumps(inner).encode()).decode()
    sha = hashlib.sha256(text.encode()).hexdigest()
    return {"udtf": text, "udtf_sha": sha, "udtf_name": "f", "udtf_version": "1"}


def _places(payload: bytes) -> dict[str, tuple[Request, bool]]:
    """Requests with a pickle in them; whether somebody may send them by right."""
    table, view = f"/v1/table/{PIT}$t", f"/v1/materialized_view/{PIT}$p/create"
    column = {
        "name": "f",
        "virtual_column": virtual_column(payload, ["name"], {"f": "int64"}, name="f"),
    }
    raw = {**column["virtual_column"], "udf": base64.b64encode(payload).decode()}  # type: ignore[dict-item]
    altered = {"path": "double", "virtual_column": {"udf": _udf(payload), "udf_name": "f"}}
    makes = pa.schema([("word", pa.string())])
    source = {"source_query": f"SELECT name FROM {PIT.replace('$', '.')}.t"}
    udf = make_column_udf("size", "name")
    udf["udf"]["udf_payload"] = base64.b64decode(_udf(payload)).decode()
    dump = {"base": {}, "source_table": "t", "column_udfs": [udf]}
    shape = pa.schema([("id", pa.int64()), ("name", pa.string()), ("size", pa.int64())])
    manifest = json.dumps({"pip": ["evil"], "pickle": base64.b64encode(payload).decode()})
    output = make_output("f", "int64", metadata={"virtual_column.udf": _udf(payload)})
    return {
        "column": (post(f"{table}/add_columns", {"new_columns": [column]}), True),
        "bare column": (
            post(f"{table}/add_columns", {"new_columns": [{"name": "f", "virtual_column": raw}]}),
            True,
        ),
        "odd output": (
            post(
                f"{table}/add_columns",
                {"new_columns": [{"name": "f", "virtual_column": {**raw, "outputs": [output]}}]},
            ),
            True,
        ),
        "altered column": (post(f"{table}/alter_columns", {"alterations": [altered]}), True),
        "chunker": (
            post(
                view,
                {
                    **source,
                    "kind": "chunker",
                    "udtf_spec": _spec("chunker", payload),
                    "output_schema": encode_schema(makes),
                },
            ),
            True,
        ),
        "udtf": (
            post(
                view,
                {
                    **source,
                    "kind": "udtf",
                    "udtf_spec": _spec("udtf", payload),
                    "output_schema": encode_schema(makes),
                },
            ),
            True,
        ),
        "column of a view": (
            post(
                view,
                {"source_query": json.dumps(dump), "output_schema": encode_schema(shape)},
            ),
            True,
        ),
        "environment": (
            post(f"{table}/backfill_column", {"column": "double", "manifest": manifest}),
            True,
        ),
        "manifest": (post("/v1/manifest/evil/create", {"manifest": manifest}), False),
        "field metadata": (
            post(
                f"{table}/update_field_metadata",
                {"updates": [{"path": "name", "metadata": {"penstock.function": _udf(payload)}}]},
            ),
            False,
        ),
        "field metadata of theirs": (
            post(
                f"{table}/update_field_metadata",
                {"updates": [{"path": "name", "metadata": {"virtual_column.udf": _udf(payload)}}]},
            ),
            False,
        ),
        "a column of mine": (
            post(f"/v1/table/{MINE}$m/add_columns", {"new_columns": [column]}),
            True,
        ),
    }
