"""Columns that functions fill, as clients declare them in add_columns and alter_columns.

A `virtual_column` brings its function, a `function` names a registered one.
"""

from typing import Annotated, Any

import msgspec

from penstock.catalog.functions.binding import FunctionUseRequest, UsedOutput
from penstock.catalog.jobs.environments import check_content
from penstock.errors import InvalidRequest
from penstock.lance.columns.bindings import New
from penstock.model.envelopes import FunctionCode, check_manifest, read_code
from penstock.model.functions import Declaration, FunctionOutput, Redeclaration, check_label
from penstock.model.identifiers import check_identifier

Name = Annotated[str, msgspec.Meta(min_length=1)]
# Text that both databases and Lance can store.
Label = Annotated[str, msgspec.Meta(min_length=1, max_length=400, pattern="^[^\\x00-\\x1f]*$")]
Note = Annotated[str, msgspec.Meta(max_length=4000, pattern="^[^\\x00]*$")]
Metadata = dict[str, Note]
MAX_OUTPUTS = 1000
UNPACKING = "virtual_column.unpack"


class AddedOutput(msgspec.Struct):
    column: Name
    data_type: Any
    struct_field: str | None = None
    nullable: bool | None = None
    metadata: Metadata | None = None


class AddVirtualColumn(msgspec.Struct):
    input_columns: list[Name]
    outputs: list[AddedOutput]
    udf: str
    udf_name: Label
    udf_version: Label | None = None
    udf_backend: Note | None = None
    image: Note | None = None
    manifest: str | None = None
    manifest_checksum: str | None = None
    field_metadata: Metadata | None = None
    auto_backfill: bool | None = None


class AlterVirtualColumn(msgspec.Struct):
    input_columns: list[Name] | None = None
    outputs: Any = None
    udf: str | None = None
    udf_name: Label | None = None
    udf_version: Label | None = None
    udf_backend: Note | None = None
    image: Note | None = None
    manifest: str | None = None
    manifest_checksum: str | None = None
    field_metadata: Metadata | None = None
    auto_backfill: bool | None = None


class UsedColumn(msgspec.Struct):
    column: Name
    # Which of several results; all of them as a struct under "".
    struct_field: str | None = None
    data_type: Any = None
    metadata: Metadata | None = None


class UseFunction(msgspec.Struct):
    name: list[Name]
    version: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    input_columns: list[Name] | None = None
    outputs: list[UsedColumn] | None = None
    initialization: dict[str, Any] | None = None
    field_metadata: Metadata | None = None
    auto_backfill: bool | None = None


def read_use(sent: UseFunction) -> FunctionUseRequest:
    """A request to use a registered function."""
    outputs = sent.outputs
    if outputs is not None and not 0 < len(outputs) <= MAX_OUTPUTS:
        raise InvalidRequest(
            f"function has {len(outputs)} outputs", detail=f"name 1 to {MAX_OUTPUTS} columns"
        )
    return FunctionUseRequest(
        name=check_identifier(tuple(sent.name), "the function's name"),
        version=sent.version,
        inputs=None if sent.input_columns is None else tuple(sent.input_columns),
        outputs=None if outputs is None else tuple(_read_used(each) for each in outputs),
        metadata=sent.field_metadata or {},
        initialization=sent.initialization or {},
        auto_backfill=sent.auto_backfill,
    )


def _read_used(sent: UsedColumn) -> UsedOutput:
    kind = None if sent.data_type is None else _to_type(sent.column, sent.data_type)
    return UsedOutput(sent.column, sent.struct_field or "", kind, sent.metadata or {})


def read_new(name: str, column: AddVirtualColumn) -> New:
    """A function and the new columns that it fills, checked as far as can be without the table."""
    outputs, code = _read_outputs(name, column.outputs), read_code(column.udf)
    declaration = Declaration(
        name=check_label(column.udf_name, "udf_name"),
        version=column.udf_version,
        inputs=tuple(column.input_columns),
        outputs=outputs,
        metadata=tuple(
            {**(column.field_metadata or {}), **_drop_unpacking(output.metadata or {})}
            for output in column.outputs
        ),
        backend=column.udf_backend,
        image=column.image,
        manifest=_check_manifest(column.manifest, column.manifest_checksum),
        auto_backfill=bool(column.auto_backfill),
        takes=code.takes,
    )
    return declaration, code


def read_altered(column: AlterVirtualColumn) -> tuple[Redeclaration, FunctionCode | None]:
    """The changes of a function, and its new code if there is any."""
    if column.outputs is not None:
        raise InvalidRequest(
            "outputs of a virtual_column cannot be altered",
            detail="leave outputs out; for other types or columns, drop the columns and add them",
        )
    code = None if column.udf is None else read_code(column.udf)
    wanted = Redeclaration(
        name=None if column.udf_name is None else check_label(column.udf_name, "udf_name"),
        version=column.udf_version,
        inputs=None if column.input_columns is None else tuple(column.input_columns),
        metadata=column.field_metadata,
        backend=column.udf_backend,
        image=column.image,
        manifest=_check_manifest(column.manifest, column.manifest_checksum),
        auto_backfill=column.auto_backfill,
        takes=() if code is None else code.takes,
    )
    if code is None and wanted == Redeclaration():
        raise InvalidRequest(
            "virtual_column changes nothing", detail="send udf with udf_version, or another field"
        )
    return wanted, code


def _read_outputs(name: str, sent: list[AddedOutput]) -> tuple[FunctionOutput, ...]:
    if not 0 < len(sent) <= MAX_OUTPUTS:
        raise InvalidRequest(
            f"column {name!r} has {len(sent)} outputs",
            detail=f"name 1 to {MAX_OUTPUTS} columns in outputs",
        )
    names = [output.column for output in sent]
    if len(set(names)) < len(names) or name not in names:
        raise InvalidRequest(
            f"column {name!r} has the outputs " + ", ".join(map(repr, names[:20])),
            detail="name each output's column once, and the column itself among them",
        )
    alone = len(sent) == 1
    fields = [output.struct_field or ("" if alone else output.column) for output in sent]
    if len(set(fields)) < len(fields):
        raise InvalidRequest(
            f"column {name!r} has outputs of the same struct_field",
            detail="name another field of the function's result for each",
        )
    return tuple(
        FunctionOutput(
            output.column,
            field,
            _to_type(output.column, output.data_type),
            output.nullable is not False,
        )
        for output, field in zip(sent, fields, strict=True)
    )


def _drop_unpacking(metadata: Metadata) -> Metadata:
    """Without what a client says of several results once more: `outputs` has it."""
    return {key: text for key, text in metadata.items() if not key.startswith(UNPACKING)}


def _to_type(column: str, data_type: Any) -> dict[str, Any]:
    if isinstance(data_type, str):
        return {"type": data_type}
    if not isinstance(data_type, dict):
        raise InvalidRequest(
            f"data_type of output {column!r} is not an object",
            detail='use {"type": "int32"}, with fields and length where the type has them',
        )
    return data_type


def _check_manifest(manifest: str | None, checksum: str | None) -> str | None:
    if manifest is None or not manifest.strip():
        if checksum:
            raise InvalidRequest(
                "manifest_checksum is given without a manifest", detail="send both"
            )
        return None
    if checksum is not None:
        check_manifest(manifest, checksum)
    return check_content(manifest)
