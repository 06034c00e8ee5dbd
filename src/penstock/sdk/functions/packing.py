"""Pack functions for the wire: cloudpickle of the plain callable, in a JSON envelope."""

import base64
import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.errors import InvalidFunction
from penstock.model.envelopes import FORMAT
from penstock.sdk.connection.optional_libraries import load
from penstock.sdk.functions.declared import Chunker, Function, Udf, Udtf
from penstock.sdk.functions.modules import list_own
from penstock.sdk.functions.signatures import POSITIONAL
from penstock.sdk.functions.types import Wire, find_type, to_arrow_schema

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def pack_udf(function: Udf[..., Any], inputs: Sequence[str] | None) -> str:
    """The text of `udf`, for these inputs; None: those that a column has."""
    payload = pickle(_to_call(function), function.name)
    envelope = {
        "format": FORMAT,
        "kind": function.kind,
        "payload": _b64(payload),
        "sha256": hashlib.sha256(payload).hexdigest(),
        "batch_size": function.batch_size,
        "timeout_seconds": function.timeout_seconds,
        "on_error": function.on_error,
        "needs": function.needs or None,
        "concurrency": function.concurrency,
        **_nulls(function, inputs),
        "takes": list_taken(function, inputs),
        "python": PYTHON,
        "env": {"system": platform.system().lower(), "arch": platform.machine()},
    }
    return _b64(msgspec.json.encode({k: v for k, v in envelope.items() if v is not None}))


def virtual_column(
    function: Udf[..., Any],
    outputs: Mapping[str, Wire],
    inputs: Sequence[str],
    auto_backfill: bool = False,
    *,
    alone: bool = False,
) -> dict[str, Any]:
    """The value of `virtual_column` for these new columns; alone: all that it returns is one's."""
    made = [
        {
            "column": column,
            "struct_field": "" if alone else column,
            "data_type": kind,
            "nullable": True,
        }
        for column, kind in outputs.items()
    ]
    return {
        "outputs": made,
        "auto_backfill": auto_backfill,
        "image": "",
        **redeclaration(function, inputs),
    }


def redeclaration(function: Udf[..., Any], inputs: Sequence[str] | None) -> dict[str, Any]:
    """The `virtual_column` that gives a column another function."""
    found: dict[str, Any] = {
        "udf": pack_udf(function, function.inputs if inputs is None else inputs),
        "udf_name": function.name,
        "udf_version": function.version,
        "udf_backend": FORMAT,
        **_environment(function),
    }
    return found if inputs is None else found | {"input_columns": list(inputs)}


def udtf_spec(function: Chunker[..., Any] | Udtf[..., Any]) -> dict[str, Any]:
    """The value of `udtf_spec` of a view."""
    kind = "chunker" if isinstance(function, Chunker) else "udtf"
    envelope: dict[str, Any] = {
        "name": function.name,
        "version": function.version,
        f"{kind}_payload": _b64(pickle(_to_call(function), function.name)),
        "output_schema_bytes": pack_schema(function.outputs),
        "python": PYTHON,
    }
    spec: dict[str, Any] = {
        "kind": kind,
        "udtf_name": function.name,
        "udtf_version": function.version,
        "input_columns": None if function.inputs is None else list(function.inputs),
        "error_handling": function.on_error,
        "concurrency": function.concurrency,
        **function.needs,
        **_environment(function),
    }
    if isinstance(function, Chunker):
        spec["batch"] = envelope["batch"] = function.batch
        spec |= _nulls(function, function.inputs)
    else:
        spec["partition_by"] = function.partition_by
        spec["partition_by_indexed_column"] = function.partition_by_indexed_column
    packed = _b64(msgspec.json.encode(envelope))
    spec |= {"udtf": packed, "udtf_sha": hashlib.sha256(packed.encode()).hexdigest()}
    return {key: value for key, value in spec.items() if value is not None}


def pack_schema(fields: Mapping[str, Wire]) -> str:
    return encode_schema(to_arrow_schema(fields))


def encode_schema(schema: Any) -> str:
    """An Arrow schema as base64 of its IPC message."""
    return _b64(schema.serialize().to_pybytes())


def pickle(call: Any, name: str) -> bytes:
    """Pickle a callable by value, with all of the user's own modules: workers have none of them."""
    cloudpickle = load("cloudpickle", "a function")
    own = list_own()
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(call))
    except Exception as error:
        # Whatever an object's own pickling raises.
        raise InvalidFunction(
            f"function {name} cannot be pickled: {error}",
            detail="make what it refers to inside the function, or in __init__ of a class",
        ) from error
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def _to_call(function: Function[..., Any]) -> Any:
    """What is pickled: the callable, with the annotations of whose values workers make something.

    By themselves annotations may be texts, and name what a pickle does not bring along.
    """
    if not function.made:
        return function.call
    places = [p for p in function.parameters or () if p.kind in POSITIONAL]
    others = [p for p in function.parameters or () if p.kind is p.VAR_POSITIONAL]
    return {
        "call": function.call,
        "takes": tuple(function.made.get(each.name) for each in places),
        "others": next((function.made.get(each.name) for each in others), None),
    }


def list_taken(
    function: Function[..., Any], inputs: Sequence[str] | None
) -> list[dict[str, Any]] | None:
    """The types that its annotations name for these inputs; None where they are not known."""
    if inputs is None or function.parameters is None:
        return None
    places = [p for p in function.parameters if p.kind in POSITIONAL]
    others = [p for p in function.parameters if p.kind is p.VAR_POSITIONAL]
    taken = [*places, *others * (len(inputs) - len(places))][: len(inputs)]
    return [{"name": each.name, "data_type": find_type(each.annotation)} for each in taken]


def _nulls(function: Function[..., Any], inputs: Sequence[str] | None) -> dict[str, Any]:
    """What a row with nulls means; nothing where it means nothing."""
    if function.on_null == "call":
        return {}
    places = [n for n in function.may_be_null if inputs is None or n < len(inputs)]
    return {"on_null": function.on_null, "may_be_null": places}


def _environment(function: Function[..., Any]) -> dict[str, str]:
    if function.environment is None:
        return {}
    text = msgspec.json.encode(function.environment).decode()
    return {"manifest": text, "manifest_checksum": hashlib.sha256(text.encode()).hexdigest()}


def _b64(content: bytes) -> str:
    return base64.b64encode(content).decode()
