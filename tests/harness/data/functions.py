"""Functions as clients pack them: envelopes, and `virtual_column` of add_columns."""

import base64
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx

from tests.harness.data.calls import pickled
from tests.harness.processes.servers import Server

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

Outputs = Mapping[str, Any] | Sequence[dict[str, Any]]


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def pack(content: Any) -> str:
    """JSON as `udf` holds it."""
    return b64(json.dumps(content).encode())


def envelope(
    function: Callable[..., Any] | bytes, kind: str | None = "scalar", **knobs: Any
) -> str:
    """Our own envelope as `udf` holds it; knobs are its other keys, None leaves one out."""
    payload = function if isinstance(function, bytes) else pickled(function)
    made = {
        "format": "penstock/1",
        "kind": kind,
        "payload": b64(payload),
        "sha256": hashlib.sha256(payload).hexdigest(),
        "python": PYTHON,
    } | knobs
    return pack({key: value for key, value in made.items() if value is not None})


def virtual_column(
    function: Callable[..., Any] | bytes,
    inputs: Sequence[str],
    outputs: Outputs,
    kind: str = "scalar",
    *,
    version: str | None = "1",
    name: str | None = None,
    knobs: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The value of `virtual_column`; outputs are types by column, or as the protocol has them."""
    if isinstance(outputs, Mapping):
        outputs = [make_output(column, kind) for column, kind in outputs.items()]
        if len(outputs) > 1:
            outputs = [output | {"struct_field": output["column"]} for output in outputs]
    made = {
        "input_columns": list(inputs),
        "outputs": list(outputs),
        "image": "",
        "udf": envelope(function, kind, **(knobs or {})),
        "udf_name": name or getattr(function, "__name__", "function"),
        "udf_version": version,
        "udf_backend": "penstock/1",
    } | more
    return {key: value for key, value in made.items() if value is not None}


def make_output(column: str, data_type: Any, **more: Any) -> dict[str, Any]:
    shown = {"type": data_type} if isinstance(data_type, str) else data_type
    return {"column": column, "struct_field": "", "data_type": shown, "nullable": True} | more


def new_column(column: dict[str, Any]) -> dict[str, Any]:
    """An entry of `new_columns`."""
    return {"name": column["outputs"][0]["column"], "virtual_column": column}


def add_function(
    server: Server, table: str, *columns: dict[str, Any], branch: str = ""
) -> httpx.Response:
    """Add virtual columns to a table."""
    body = {"new_columns": [new_column(c) for c in columns], "branch": branch or None}
    return server.post(f"/v1/table/{table}/add_columns", body)


def alter_function(
    server: Server, table: str, path: str, *, branch: str = "", **column: Any
) -> httpx.Response:
    """Alter a virtual column; the keywords are the fields of `virtual_column`."""
    alterations = [{"path": path, "virtual_column": column}]
    body = {"alterations": alterations, "branch": branch or None}
    return server.post(f"/v1/table/{table}/alter_columns", body)
