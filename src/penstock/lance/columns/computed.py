"""Bound columns: a column and what computes it, an SQL expression or a function.

A column is bound by its field's metadata. For expressions the keys are those of open-source
lancedb, so either can read the other's bindings. For functions they are those of the protocol's
other clients, and `penstock.function` holds everything we know of it. `penstock.binding` tells a
column from a dropped one of the same name; the columns of one function share it. Everything here
blocks.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from msgspec import structs

from penstock.errors import ColumnNotFound, InvalidRequest
from penstock.lance.columns.fields import get_field, parse_path
from penstock.lance.columns.schemas import to_arrow_type
from penstock.lance.doors import lance, pa
from penstock.lance.expressions.check import check_expression
from penstock.lance.read.details import to_json_type
from penstock.model.functions import Function

COMPUTED = "computed_column"
KIND, EXPRESSION, INPUTS = f"{COMPUTED}.kind", f"{COMPUTED}.expression", f"{COMPUTED}.inputs"
REFRESH = "computed_refresh"
VIRTUAL = "virtual_column"
AUTO, MANIFEST = f"{VIRTUAL}.auto_backfill", f"{VIRTUAL}.manifest"
OWN = "penstock."
BINDING, FUNCTION = f"{OWN}binding", f"{OWN}function"
# The expression as it is now, and as it was declared, once it has followed a rename. Where another
# client has bound the column anew since, the first is not the column's any more.
DECLARED = f"{OWN}declared"
# The ids of the inputs' fields when an expression was declared: two columns may swap names.
FIELDS = f"{OWN}fields"
# On a column that SQL computes; columns of functions have the protocol's key.
SQL_AUTO = f"{OWN}auto_backfill"
UDF_INPUTS = f"{VIRTUAL}.udf_inputs"
# What it says where a client named none, so that the function got all columns.
NO_INPUTS = "null"
# Which of several results of a function goes into the field.
PART = f"{VIRTUAL}.unpack_field"
RESERVED = (COMPUTED, REFRESH, VIRTUAL, OWN)


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A bound column in one version of a table; inputs are field paths.

    It has an expression or a function; `columns` are all that the function fills together.
    """

    name: str
    expression: str | None
    inputs: tuple[str, ...]
    binding: str
    data_type: dict[str, Any]
    columns: tuple[str, ...]
    function: Function | None = None
    manifest: str | None = None
    auto_backfill: bool = False
    # The expression as it was declared, by which its values are known whatever its inputs are
    # called by now.
    declared: str | None = None
    # The ids of an expression's input fields at its declaration; "" when unknown.
    fields: str = ""


def list_computed(schema: "pa.Schema") -> list[ComputedColumn]:
    """The bound columns of a schema."""
    metadata = {field.name: _to_text(field) for field in schema}
    found = [each for field in schema if (each := _read(field, metadata[field.name])) is not None]
    return [_with_group(each, found, metadata) for each in found]


def show_inputs(schema: "pa.Schema", column: str, inputs: Sequence[str]) -> str:
    """The inputs of a column's function for its metadata: none where its client named none."""
    told = (schema.field(column).metadata or {}).get(UDF_INPUTS.encode())
    return NO_INPUTS if told == NO_INPUTS.encode() else json.dumps(inputs, ensure_ascii=False)


def get_computed(dataset: "lance.LanceDataset", path: str) -> ComputedColumn:
    """Get a column that must be bound, with its binding in this version."""
    name = get_field(dataset, path).path
    parts = parse_path(name)
    bound = {column.name: column for column in list_computed(dataset.schema)}
    if len(parts) > 1 or parts[0] not in bound:
        raise InvalidRequest(
            f"column {name} is not computed",
            detail="add it with `computed` or `virtual_column` to have it filled by backfill",
        )
    return bound[parts[0]]


def find_bound(schema: "pa.Schema", binding: str, names: Sequence[str]) -> ComputedColumn:
    """A binding's column in a version, whatever it is called there; raises when it is gone."""
    bound = [column for column in list_computed(schema) if column.binding == binding]
    # A column bound by another client may share its expression with others.
    found = next((column for column in bound if column.name in names), next(iter(bound), None))
    if found is None or len(found.columns) != len(names):
        raise ColumnNotFound(
            f"column {', '.join(names)} was dropped or declared anew since its backfill was "
            "requested",
            detail="request a backfill of the column as it is now",
        )
    return found


def list_group(column: ComputedColumn) -> list[ComputedColumn]:
    """All columns that are filled together with this one, including itself."""
    if column.function is None:
        return [column]
    outputs = column.function.outputs
    return [replace(column, name=each.column, data_type=each.data_type) for each in outputs]


def check_where(dataset: "lance.LanceDataset", where: str) -> str:
    """A condition as Lance gets it; raises when it can't be evaluated."""
    checked = check_expression("where", where)
    dataset.scanner(columns=[], filter=checked, with_row_address=True).explain_plan()
    return checked


def show_fields(dataset: "lance.LanceDataset", paths: Sequence[str]) -> str:
    """The ids of some fields, in the order of their paths."""
    return ".".join(str(get_field(dataset, path).lance.id()) for path in paths)


def refuse_value(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"column {name!r} is computed and takes no values",
        detail="leave it out or null; backfill_column fills it",
    )


def check_known(dataset: "lance.LanceDataset", column: ComputedColumn) -> None:
    """Refuse an invalid binding, or one whose inputs are missing, as after a change by path.

    Expressions that were bound elsewhere were not checked here.
    """
    if column.expression is not None:
        check_expression(f"the expression of column {column.name!r}", column.expression)
    for path in column.inputs:
        try:
            get_field(dataset, path)
        except ColumnNotFound as error:
            raise InvalidRequest(
                f"computed column {column.name!r} reads {path}, which does not exist",
                detail="drop the computed column, or bring its input back",
            ) from error


def show_type(kind: "pa.DataType") -> dict[str, Any]:
    """A type in the protocol's JSON form, or by pyarrow's name where that form loses something."""
    shown = to_json_type(kind)
    try:
        return shown if to_arrow_type(shown) == kind else {"type": str(kind)}
    except InvalidRequest:
        return {"type": str(kind)}


def _read(field: "pa.Field[Any]", metadata: Mapping[str, str]) -> ComputedColumn | None:
    if metadata.get(COMPUTED) == "true" and EXPRESSION in metadata:
        return ComputedColumn(
            field.name,
            metadata[EXPRESSION],
            _read_paths(metadata.get(INPUTS, "[]")),
            # A column bound by another client is identified by what it is bound to.
            metadata.get(BINDING, metadata[EXPRESSION])[:200],
            show_type(field.type),
            (field.name,),
            auto_backfill=metadata.get(SQL_AUTO) == "true",
            declared=_read_declared(metadata),
            fields=metadata.get(FIELDS, ""),
        )
    if metadata.get(VIRTUAL) != "true" or BINDING not in metadata:
        return None
    try:
        function = msgspec.json.decode(metadata.get(FUNCTION, ""), type=Function)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return ComputedColumn(
        field.name,
        None,
        function.inputs,
        metadata[BINDING],
        show_type(field.type),
        (field.name,),
        function,
        metadata.get(MANIFEST),
        metadata.get(AUTO) == "true",
    )


def _with_group(
    column: ComputedColumn,
    found: Sequence[ComputedColumn],
    metadata: Mapping[str, Mapping[str, str]],
) -> ComputedColumn:
    """A function's column with the current names of its columns: a rename keeps the binding."""
    if column.function is None:
        return column
    if len(column.function.outputs) == 1:
        only = structs.replace(column.function.outputs[0], column=column.name)
        return replace(column, function=structs.replace(column.function, outputs=(only,)))
    group = [each for each in found if each.binding == column.binding]
    names = {metadata[each.name].get(PART): each.name for each in reversed(group)}
    outputs = tuple(
        structs.replace(output, column=names[output.struct_field])
        for output in column.function.outputs
        if output.struct_field in names
    )
    function = structs.replace(column.function, outputs=outputs)
    return replace(column, function=function, columns=tuple(each.column for each in outputs))


def _read_declared(metadata: Mapping[str, str]) -> str:
    expression = metadata[EXPRESSION]
    try:
        now, declared = msgspec.json.decode(metadata.get(DECLARED, ""), type=tuple[str, str])
    except (msgspec.MsgspecError, UnicodeError):
        return expression
    return declared if now == expression else expression


def _read_paths(text: str) -> tuple[str, ...]:
    try:
        paths = json.loads(text)
    except ValueError:
        return ()
    return tuple(paths) if isinstance(paths, list) and all(map(_is_path, paths)) else ()


def _is_path(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(parse_path(text))
    except InvalidRequest:
        return False


def _to_text(field: "pa.Field[Any]") -> dict[str, str]:
    pairs = (field.metadata or {}).items()
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in pairs}
