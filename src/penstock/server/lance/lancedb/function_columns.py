"""lancedb's columns of functions: which version fills them, and from which columns."""

from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.functions import functions
from penstock.catalog.functions.binding import FunctionUseRequest, UsedOutput
from penstock.errors import InvalidRequest, InvalidTableState, Unsupported
from penstock.model.identifiers import Identifier, check_identifier, show

# What lancedb calls the whole result of a function.
WHOLE = "$value"


class VersionReference(msgspec.Struct):
    name: str
    version: str
    object_id: str
    namespace_path: list[str] = []
    manifest_digest: str = ""


class ApplicationInput(msgspec.Struct):
    parameter: str
    kind: str
    value: Any = None


class Application(msgspec.Struct):
    function: VersionReference
    inputs: list[ApplicationInput]
    initialization: dict[str, Any] = {}


class BoundOutput(msgspec.Struct):
    result_field: str
    output_name: str


class FunctionBinding(msgspec.Struct):
    """`function` in the body of lancedb's `add_columns`; what the server knows itself is left."""

    application: Application
    outputs: list[BoundOutput]
    binding_metadata_version: int = 1


def read_binding(sent: FunctionBinding, names: list[str]) -> FunctionUseRequest:
    """The request to use the function, for these new columns."""
    if sent.binding_metadata_version != 1:
        raise Unsupported(
            f"binding_metadata_version is {sent.binding_metadata_version}", detail="use version 1"
        )
    if sorted(each.output_name for each in sent.outputs) != sorted(names):
        raise InvalidRequest(
            "the outputs of function are not the new_columns",
            detail="name each new column once among the outputs",
        )
    application = sent.application
    return FunctionUseRequest(
        name=_name_of(application.function),
        version=_number_of(application.function),
        inputs=tuple(_read_path(each) for each in application.inputs),
        outputs=tuple(
            UsedOutput(each.output_name, "" if each.result_field == WHOLE else each.result_field)
            for each in sent.outputs
        ),
        initialization=application.initialization,
    )


async def check_binding(catalog: Catalog, sent: FunctionBinding) -> None:
    """Refuse a version that the client knows by the name of another function."""
    reference = sent.application.function
    id = _name_of(reference)
    version = await functions.get(catalog.database, id, _number_of(reference))
    if version.function_id != reference.object_id:
        raise InvalidTableState(
            f"function {show(id)} was dropped and registered anew since it was opened",
            detail="open it again with get_function",
        )
    names = tuple(each.parameter for each in sent.application.inputs)
    known = tuple(each.name for each in version.definition.inputs)
    if known and names != known:
        raise InvalidRequest(
            f"function {version} takes {', '.join(known)}, and {', '.join(names)} are given",
            detail="give a column for each of its inputs, in their order",
        )


def _name_of(reference: VersionReference) -> Identifier:
    return check_identifier((*reference.namespace_path, reference.name), "the function's name")


def _number_of(reference: VersionReference) -> int:
    if not reference.version.isascii() or not reference.version.isdecimal():
        raise InvalidRequest(
            f"the function's version is {reference.version[:100]!r}",
            detail="use the number of a version",
        )
    number = int(reference.version[:20])
    return number if number < 2**31 else 2**31 - 1


def _read_path(sent: ApplicationInput) -> str:
    path = sent.value.get("path") if isinstance(sent.value, dict) else None
    if sent.kind != "column" or not isinstance(path, str) or not path:
        raise InvalidRequest(
            f"input {sent.parameter!r} of the function is no column", detail="give a column's path"
        )
    return path
