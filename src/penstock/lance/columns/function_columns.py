"""Columns that a function fills: their fields, and what can be declared. Everything blocks."""

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

from penstock.errors import InvalidRequest, PenstockError
from penstock.lance.columns.computed import (
    AUTO,
    BINDING,
    FUNCTION,
    MANIFEST,
    NO_INPUTS,
    PART,
    RESERVED,
    UDF_INPUTS,
    VIRTUAL,
    ComputedColumn,
    get_computed,
    list_computed,
    show_inputs,
    show_type,
)
from penstock.lance.columns.fields import get_field, parse_path, quote_name
from penstock.lance.columns.function_code import path_of
from penstock.lance.columns.input_types import check_input_types
from penstock.lance.columns.schemas import to_arrow_type
from penstock.lance.doors import lance, pa
from penstock.lance.errors import translated
from penstock.model.envelopes import FunctionCode
from penstock.model.functions import Declaration, Function, Redeclaration

PLATFORM = {"python": "python_version", "system": "system", "arch": "arch"}


def make_fields(
    dataset: "lance.LanceDataset", wanted: Declaration, code: FunctionCode
) -> "list[pa.Field[Any]]":
    """The fields of a function's new columns; raises when they can't be declared like that."""
    kinds = [to_arrow_type(output.data_type) for output in wanted.outputs]
    inputs = _check_inputs(dataset, _list_inputs(dataset, wanted, code))
    _check_taken(dataset, inputs, wanted)
    outputs = tuple(
        structs.replace(output, data_type=show_type(kind))
        for output, kind in zip(wanted.outputs, kinds, strict=True)
    )
    function = code.bind(wanted.name, wanted.version or code.sha256, inputs, outputs)
    _check_kind(function)
    shared = _describe(function, uuid.uuid4().hex, wanted) | _describe_code(code)
    if not wanted.inputs:
        shared[UDF_INPUTS] = NO_INPUTS
    fields = []
    for output, kind, extra in zip(wanted.outputs, kinds, wanted.metadata, strict=True):
        check_metadata(extra)
        part = {PART: output.struct_field} if len(wanted.outputs) > 1 else {}
        # Null until it is filled, whatever the function promises.
        fields.append(pa.field(output.column, kind, True, {**extra, **shared, **part}))
    for field in fields:
        check_storable(dataset, field)
    return fields


def plan_redeclaration(
    dataset: "lance.LanceDataset", path: str, wanted: Redeclaration, code: FunctionCode | None
) -> tuple[ComputedColumn, dict[str, str | None]]:
    """The column as it is, and the new metadata of all columns of its function."""
    column = get_computed(dataset, path)
    function = column.function
    if function is None:
        raise InvalidRequest(
            f"column {column.name!r} is computed by SQL, not by a function",
            detail="drop it and add it with `virtual_column`",
        )
    inputs = function.inputs
    if not wanted.inputs and code is not None and code.takes_whole_rows:
        wanted = structs.replace(wanted, inputs=None)
    if wanted.inputs is not None:
        inputs = _check_inputs(dataset, wanted.inputs)
        _check_no_circle(dataset, column, inputs)
    _check_taken(dataset, inputs, wanted)
    changed = structs.replace(
        function,
        name=wanted.name or function.name,
        version=_choose_version(function, wanted, code, inputs),
        inputs=inputs,
        outputs=function.outputs,
    )
    if code is not None:
        changed = code.bind(
            *(changed.name, changed.version, inputs, changed.outputs, changed.declared_inputs)
        )
    if wanted.inputs is not None and (code is not None or inputs != function.inputs):
        # Whoever names them means that the code knows them so.
        changed = structs.replace(changed, declared_inputs=())
    _check_kind(changed)
    _check_outputs(column, wanted)
    check_metadata(wanted.metadata or {})
    # How far it was filled means nothing once it has other inputs.
    binding = column.binding if inputs == function.inputs else uuid.uuid4().hex
    described = _describe(changed, binding, wanted)
    if wanted.inputs is None:
        described[UDF_INPUTS] = show_inputs(dataset.schema, column.name, inputs)
    if wanted.auto_backfill is None:
        described[AUTO] = json.dumps(column.auto_backfill)
    if code is not None and code.registered is not None and wanted.manifest is None:
        # A registered version has its environment, or none.
        described |= {MANIFEST: None, f"{MANIFEST}_checksum": None}
    return column, {
        **(wanted.metadata or {}),
        **described,
        **({} if code is None else _describe_code(code)),
    }


def check_metadata(values: dict[str, str]) -> None:
    """Refuse keys that are part of a binding."""
    for key in values:
        if key.startswith(RESERVED):
            raise InvalidRequest(
                f"the metadata {key!r} is the server's own",
                detail="use keys that begin with none of " + ", ".join(RESERVED),
            )


def _describe(
    function: Function, binding: str, wanted: Declaration | Redeclaration
) -> dict[str, str | None]:
    found: dict[str, str | None] = {
        VIRTUAL: "true",
        f"{VIRTUAL}.udf_name": function.name,
        f"{VIRTUAL}.udf": path_of(function.sha256),
        UDF_INPUTS: json.dumps(function.inputs, ensure_ascii=False),
        AUTO: json.dumps(bool(wanted.auto_backfill)),
        BINDING: binding,
        FUNCTION: msgspec.json.encode(function).decode(),
    }
    if wanted.backend is not None:
        found[f"{VIRTUAL}.udf_backend"] = wanted.backend
    if wanted.image is not None:
        found[f"{VIRTUAL}.image"] = wanted.image
    if wanted.manifest is not None:
        found[MANIFEST] = wanted.manifest
        checksum = hashlib.sha256(wanted.manifest.encode()).hexdigest()
        found[f"{MANIFEST}_checksum"] = checksum
    if len(function.outputs) > 1:
        found[f"{VIRTUAL}.unpack"] = "true"
        found[f"{VIRTUAL}.unpack_group"] = binding[:16]
        parts = [
            {"field": output.struct_field, "column": output.column} for output in function.outputs
        ]
        found[f"{VIRTUAL}.unpack_fields"] = json.dumps(parts, ensure_ascii=False)
    return found


def _describe_code(code: FunctionCode) -> dict[str, str]:
    return {f"{VIRTUAL}.platform.{PLATFORM[key]}": value for key, value in code.platform.items()}


def _choose_version(
    old: Function, wanted: Redeclaration, code: FunctionCode | None, inputs: tuple[str, ...]
) -> str:
    version = wanted.version or (old.version if code is None else code.sha256)
    if inputs == old.inputs or version != old.version:
        return version
    # The version alone marks a changed function, and other inputs change it, too.
    return f"{version}+{hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:8]}"


def _check_kind(function: Function) -> None:
    if len(function.outputs) > 1 and function.kind == "arrow":
        raise InvalidRequest(
            f"function {function.name!r} is of kind 'arrow', which gives one result, and has "
            f"{len(function.outputs)} outputs",
            detail="use kind 'scalar' or 'batch', or one column per function",
        )


def _check_outputs(column: ComputedColumn, wanted: Redeclaration) -> None:
    """Refuse a function whose results are of other types than the columns that it is to fill."""
    if wanted.outputs is None or column.function is None:
        return
    known = {output.struct_field: output.data_type for output in column.function.outputs}
    given = {name: kind for name, kind in wanted.outputs if name in known}
    if len(known) == 1 and len(wanted.outputs) == 1:
        given = {next(iter(known)): wanted.outputs[0][1]}
    for name, kind in known.items():
        if name not in given or given[name] not in (None, kind):
            raise InvalidRequest(
                f"the function gives {given.get(name, 'nothing')} for column {column.name!r}, "
                f"which is {kind}",
                detail="drop the column, and add it with the function",
            )


def _list_inputs(
    dataset: "lance.LanceDataset", wanted: Declaration, code: FunctionCode
) -> Sequence[str]:
    """What a function reads; another client's that names nothing gets all columns there are."""
    if not wanted.inputs and code.takes_whole_rows:
        return [quote_name(name) for name in dataset.schema.names]
    return wanted.inputs


def _check_inputs(dataset: "lance.LanceDataset", paths: Sequence[str]) -> tuple[str, ...]:
    if not paths:
        raise InvalidRequest(
            "input_columns is empty", detail="name at least one column that the function reads"
        )
    found: list[str] = []
    for path in paths:
        field = get_field(dataset, path)
        if field.path != field.short_path:
            raise InvalidRequest(
                f"input_columns names {field.path}, which is inside a list",
                detail="name the list itself",
            )
        if field.path in found:
            raise InvalidRequest(
                f"input_columns names {field.path} twice", detail="name each input once"
            )
        found.append(field.path)
    return tuple(found)


def _check_taken(
    dataset: "lance.LanceDataset", inputs: Sequence[str], wanted: Declaration | Redeclaration
) -> None:
    paths = [(text, parse_path(text)) for text in inputs]
    check_input_types(dataset.schema, paths, wanted.takes)


def _check_no_circle(
    dataset: "lance.LanceDataset", column: ComputedColumn, inputs: Sequence[str]
) -> None:
    reads = {each.name: each.inputs for each in list_computed(dataset.schema)}
    ahead, seen = list(inputs), set[str]()
    while ahead:
        root = parse_path(ahead.pop())[0]
        if root in column.columns:
            raise InvalidRequest(
                f"column {root!r} would be computed from itself",
                detail="name inputs that are not computed from it",
            )
        if root not in seen:
            seen.add(root)
            ahead += reads.get(root, ())


def check_storable(dataset: "lance.LanceDataset", field: "pa.Field[Any]") -> None:
    """Refuse a type that Lance can't write as null, or not read again, in this table's format."""
    try:
        with translated():
            # Some types can only be read when they are alone.
            other = pa.field(f"{field.name}_", pa.int8())
            values = [pa.nulls(2, field.type), pa.nulls(2, other.type)]
            rows = pa.table(values, schema=pa.schema([field, other]))
            format = dataset.data_storage_version
            made = lance.write_dataset(
                rows,
                f"memory://{uuid.uuid4().hex}",
                data_storage_version=format,  # type: ignore[arg-type]
            )
            if made.to_table().num_rows == 2 and not pa.types.is_null(field.type):
                return
        raise InvalidRequest("it has no values")
    except PenstockError as error:
        raise InvalidRequest(
            f"column {field.name!r} cannot have the type {field.type}: {error.message}",
            detail="use another data_type",
        ) from error
