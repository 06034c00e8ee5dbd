"""Use a registered function: what a column or a view gets of the version that it names."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, overload

import msgspec
from msgspec import structs

from penstock.catalog.catalog import Catalog
from penstock.catalog.functions import functions
from penstock.catalog.functions.versions import FunctionVersion, Parameter
from penstock.errors import InvalidRequest
from penstock.lance.columns.bindings import New
from penstock.model.envelopes import FunctionCode, read_content
from penstock.model.functions import (
    Declaration,
    FunctionOutput,
    Input,
    Redeclaration,
    Registered,
)
from penstock.model.identifiers import Identifier
from penstock.model.origins import Origin

# The JSON values that a field of the initialization takes, by its type.
VALUES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "utf8": (str,),
    "string": (str,),
    "large_utf8": (str,),
    "large_string": (str,),
    "list": (list,),
    "large_list": (list,),
    "fixed_size_list": (list,),
    "struct": (dict,),
}


@dataclass(frozen=True, slots=True)
class UsedOutput:
    """A column for a result of a function: by its name, or all of it under ""."""

    column: str
    result: str = ""
    data_type: dict[str, Any] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionUseRequest:
    """A request to use a function; None is what its version says."""

    name: Identifier
    version: int | None = None
    # Columns, in the order of the function's inputs.
    inputs: tuple[str, ...] | None = None
    outputs: tuple[UsedOutput, ...] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    initialization: Mapping[str, Any] = field(default_factory=dict)
    auto_backfill: bool | None = None


async def bind_new(
    catalog: Catalog, column: str, wanted: FunctionUseRequest, origin: Origin
) -> New:
    """The declaration of new columns that a registered function fills, and its code."""
    version, content = await functions.choose(catalog, wanted.name, wanted.version, origin)
    code, registered_version = _make_code(version, content, wanted)
    outputs = _list_outputs(version, column, wanted)
    if column not in [output.column for output in outputs]:
        raise InvalidRequest(
            f"the columns of function {version} are "
            + ", ".join(output.column for output in outputs)
            + f", and not {column}",
            detail="name the column after one of its results, or send outputs",
        )
    return Declaration(
        name=version.definition.label,
        version=registered_version,
        inputs=_choose_inputs(version, wanted),
        outputs=tuple(_to_output(version, each) for each in outputs),
        metadata=tuple({**wanted.metadata, **each.metadata} for each in outputs),
        manifest=version.definition.manifest,
        auto_backfill=bool(wanted.auto_backfill),
        takes=_list_taken(version),
    ), code


async def bind_changed(
    catalog: Catalog, wanted: FunctionUseRequest, origin: Origin
) -> tuple[Redeclaration, FunctionCode]:
    """The change that gives columns a registered function, and its code."""
    version, content = await functions.choose(catalog, wanted.name, wanted.version, origin)
    if wanted.outputs is not None:
        raise InvalidRequest(
            "the outputs of a function cannot be altered",
            detail="leave outputs out; for other columns, drop these and add them",
        )
    code, registered_version = _make_code(version, content, wanted)
    made = version.definition.outputs
    return Redeclaration(
        name=version.definition.label,
        version=registered_version,
        inputs=None if wanted.inputs is None else _choose_inputs(version, wanted),
        metadata=dict(wanted.metadata) or None,
        manifest=version.definition.manifest,
        auto_backfill=wanted.auto_backfill,
        outputs=None
        if made is None
        else tuple((each.name, _loosen(each.data_type)) for each in made),
        takes=_list_taken(version),
    ), code


async def fill_spec(
    catalog: Catalog, spec: dict[str, Any] | None, origin: Origin
) -> dict[str, Any] | None:
    """The `udtf_spec` of a view; one that names a registered function gets what that is."""
    if spec is not None and "registered" in spec:
        raise InvalidRequest(
            "udtf_spec has the field registered, which is the server's own",
            detail="name the function: function and function_version",
        )
    if spec is None or "function" not in spec:
        return spec
    if "udtf" in spec:
        raise InvalidRequest("udtf_spec has both udtf and function", detail="send one of them")
    if brought := [each for each in OF_VERSION if spec.get(each) is not None]:
        # An environment is code: it would run beside the function, with its secrets.
        raise InvalidRequest(
            f"udtf_spec names a function and has {brought[0]}, which comes with the function",
            detail=f"leave {brought[0]} out, or register a version that has it",
        )
    sent = _convert({k: v for k, v in spec.items() if k in ("function", "function_version")})
    rest = {k: v for k, v in spec.items() if k not in ("function", "function_version")}
    version, content = await functions.choose(
        catalog, tuple(sent.function), sent.function_version, origin
    )
    if not version.definition.makes_rows:
        raise InvalidRequest(
            f"function {version} fills columns, and makes no rows",
            detail="add a column with it, or register a chunker or udtf",
        )
    registered = Registered(
        id=version.function_id, version=version.version, secrets=version.definition.secrets
    )
    return {
        **version.definition.udtf_spec,
        **rest,
        "udtf": base64.b64encode(content).decode(),
        "udtf_name": version.definition.label,
        "udtf_version": version.definition.label_version,
        "registered": msgspec.to_builtins(registered),
        **({} if (text := version.definition.manifest) is None else {"manifest": text}),
    }


# What a version of a function has of its own, besides its code.
OF_VERSION = ("manifest", "manifest_checksum")


class _Named(msgspec.Struct):
    function: list[str]
    function_version: int | None = None


def _convert(found: object) -> _Named:
    try:
        return msgspec.convert(found, _Named)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"udtf_spec is not right: {error}",
            detail='name a function as {"function": ["namespace", "name"]}',
        ) from error


def _make_code(
    version: FunctionVersion, content: bytes, wanted: FunctionUseRequest
) -> tuple[FunctionCode, str]:
    """The code with what it is bound to, and the version that tells it from other code."""
    definition = version.definition
    if definition.makes_rows:
        raise InvalidRequest(
            f"function {version} makes rows, and fills no column",
            detail="make a view with it",
        )
    values = {k: v for k, v in wanted.initialization.items() if v is not None}
    _check_initialization(version, values)
    registered = Registered(
        id=version.function_id,
        version=version.version,
        secrets=definition.secrets,
        initialization=values,
    )
    code = structs.replace(read_content(content), registered=registered)
    if not values:
        return code, definition.label_version
    told = msgspec.json.encode(values, order="deterministic")
    return code, f"{definition.label_version}+{hashlib.sha256(told).hexdigest()[:8]}"


def _check_initialization(version: FunctionVersion, values: Mapping[str, Any]) -> None:
    fields = {each.name: each for each in version.definition.initialization}
    if unknown := sorted(values.keys() - fields.keys()):
        raise InvalidRequest(
            f"function {version} has no initialization field {unknown[0]!r}",
            detail="it has " + (", ".join(fields) or "none"),
        )
    for name, each in fields.items():
        if name not in values and not each.nullable:
            raise InvalidRequest(
                f"function {version} needs the initialization field {name!r}",
                detail="give it a value",
            )
        if name in values and not _fits(values[name], each):
            raise InvalidRequest(
                f"initialization field {name!r} of function {version} is {values[name]!r}",
                detail=f"give it a value of type {(each.data_type or {}).get('type')}",
            )


def _fits(value: Any, parameter: Parameter) -> bool:
    kind = str((parameter.data_type or {}).get("type", ""))
    if isinstance(value, bool) or kind in VALUES:
        return isinstance(value, VALUES.get(kind, ()))
    return isinstance(value, int | float if "float" in kind or kind == "double" else int)


def _choose_inputs(version: FunctionVersion, wanted: FunctionUseRequest) -> tuple[str, ...]:
    names = tuple(each.name for each in version.definition.inputs)
    inputs = wanted.inputs or names
    if not inputs or (names and len(inputs) != len(names)):
        raise InvalidRequest(
            f"function {version} takes {', '.join(names) or 'inputs that nobody has named'}, "
            f"and {len(inputs)} columns are named",
            detail="name a column for each of its inputs, in their order, as input_columns",
        )
    return inputs


def _list_taken(version: FunctionVersion) -> tuple[Input, ...]:
    return tuple(Input(each.name, each.data_type) for each in version.definition.inputs)


def _list_outputs(
    version: FunctionVersion, column: str, wanted: FunctionUseRequest
) -> tuple[UsedOutput, ...]:
    made = version.definition.outputs
    if wanted.outputs is not None:
        names = [each.name for each in made or ()]
        results = [each.result for each in wanted.outputs]
        if results != [""] and made and sorted(results) != sorted(names):
            raise InvalidRequest(
                f"outputs do not name each result of function {version} once",
                detail="its results are " + ", ".join(map(repr, names)),
            )
        return wanted.outputs
    if made is None or [each.name for each in made] == [""]:
        return (UsedOutput(column),)
    return tuple(UsedOutput(each.name, each.name) for each in made)


def _to_output(version: FunctionVersion, used: UsedOutput) -> FunctionOutput:
    made = version.definition.outputs or ()
    found = next((each for each in made if each.name == used.result), None)
    is_whole = found is None and not used.result and bool(made)
    if is_whole:
        fields = [
            {"name": each.name, "type": each.data_type, "nullable": each.nullable} for each in made
        ]
        found = Parameter("", {"type": "struct", "fields": fields})
    kind = used.data_type or (None if found is None else found.data_type)
    if kind is None:
        raise InvalidRequest(
            f"the type of column {used.column!r} is not known: function {version} does not say it",
            detail="send outputs with a data_type",
        )
    is_nullable = found is None or found.nullable
    return FunctionOutput(used.column, used.result, _loosen(kind), is_nullable)


@overload
def _loosen(kind: dict[str, Any]) -> dict[str, Any]: ...


@overload
def _loosen(kind: None) -> None: ...


def _loosen(kind: dict[str, Any] | None) -> dict[str, Any] | None:
    """A type that a column can have before it is filled: Lance has no null vector otherwise."""
    if kind is None or not kind.get("fields"):
        return kind
    is_vector = kind["type"] == "fixed_size_list"
    fields = [
        {**each, "type": _loosen(each["type"]), **({"nullable": True} if is_vector else {})}
        for each in kind["fields"]
    ]
    return {**kind, "fields": fields}
