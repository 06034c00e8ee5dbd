"""Operations on functions with a name: register, describe, list, alter, drop.

The routes are lancedb's; its bodies, and what its client reads of the answers, are in
`lancedb/functions.py`.
"""

from typing import Annotated, Any

import msgspec

from penstock.catalog.functions import function_code, function_uses, functions
from penstock.catalog.functions.functions import NewVersion
from penstock.catalog.functions.versions import (
    FunctionDefinition,
    FunctionVersion,
    Parameter,
    check_binding,
    normalize,
)
from penstock.catalog.jobs import environments
from penstock.catalog.names.idempotency import KeyRecord
from penstock.errors import InvalidRequest
from penstock.model.envelopes import FunctionCode, read_code, read_content
from penstock.model.functions import SecretBinding, check_label
from penstock.model.identifiers import split_table, to_path
from penstock.model.udtfs import read_udtf
from penstock.server.lance.call import Body, Call, Text
from penstock.server.lance.handlers.functions.virtual_columns import Label, Metadata, Name
from penstock.server.lance.lancedb.functions import Registration, read_registration, show_version
from penstock.server.transport.http import Reply

MOST = 2**31 - 1
Number = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
# lancedb's client sends numbers as text.
NumberText = Annotated[str, msgspec.Meta(pattern="^[1-9][0-9]{0,9}$")]
MAX_PARAMETERS = 1000


class SentParameter(msgspec.Struct):
    name: Text = ""
    data_type: Any = None
    nullable: bool | None = None


class CreateFunction(Body):
    udf: str | None = None
    udf_name: Label | None = None
    udf_version: Label | None = None
    inputs: list[SentParameter] | None = None
    outputs: list[SentParameter] | None = None
    udtf_spec: dict[str, Any] | None = None
    # An environment: JSON text, or the name of one.
    manifest: Text | None = None
    # The names of secrets by the variables that the function finds them in.
    secrets: dict[Text, Text] | None = None
    properties: Metadata | None = None
    # lancedb's form of all of it.
    artifact: dict[str, Any] | None = None
    signature: dict[str, Any] | None = None
    runtime: dict[str, Any] | None = None
    secret_bindings: list[dict[str, Any]] | None = None


class NamedVersion(Body):
    version: Number | NumberText | None = None


class AlterFunction(NamedVersion):
    disabled: bool | None = None
    properties: dict[Name, Text | None] | None = None


_create = msgspec.json.Decoder(CreateFunction)
_named = msgspec.json.Decoder(NamedVersion)
_alter = msgspec.json.Decoder(AlterFunction)


async def create(call: Call) -> Reply:
    body = call.decode(_create)
    _, name = split_table(call.id)
    new = await _read_new(call, body, name)
    made = await functions.create(call.catalog, call.id, new, call.origin)
    return _created(made.job_id, made.version)


async def describe(call: Call) -> Reply:
    number = _read_number(call.decode(_named))
    found = await functions.get(call.catalog.database, call.id, number)
    return Reply(200, msgspec.json.encode(await _show(call, found)))


async def list_functions(call: Call) -> Reply:
    """List all versions, by name and number; with `include_definition` as lancedb reads them."""
    page = call.page(f"functions:{to_path(call.id)}")
    found = await functions.list_versions(call.catalog, call.id, page, call.only)
    with_definition = call.flag("include_definition")
    shown = [
        {"name": each.identifier[-1], "definition": show_version(each)}
        if with_definition
        else _show_shortly(each)
        for each in found.items
    ]
    told: dict[str, Any] = {"functions": shown}
    return Reply(
        200, msgspec.json.encode(told | ({"page_token": found.token} if found.token else {}))
    )


async def alter(call: Call) -> Reply:
    body = call.decode(_alter)
    if body.disabled is None and not body.properties:
        raise InvalidRequest(
            "the body changes nothing", detail='send {"disabled": true}, or properties'
        )
    altered = await functions.alter(
        call.catalog,
        call.id,
        _read_number(body),
        body.disabled,
        dict(body.properties or {}),
        call.origin,
    )
    return Reply(200, msgspec.json.encode(_show_shortly(altered)))


async def drop(call: Call) -> Reply:
    number = _read_number(call.decode(_named))
    transaction = await functions.drop(call.catalog, call.id, number, call.origin)
    return _dropped(transaction)


async def recover_created(call: Call, used: KeyRecord) -> Reply:
    found = await functions.get(call.catalog.database, call.id, used.notes.get("version"))
    return _created(used.transaction_id, found)


async def recover_altered(call: Call, used: KeyRecord) -> Reply:
    found = await functions.get(call.catalog.database, call.id, used.notes.get("version"))
    return Reply(200, msgspec.json.encode(_show_shortly(found)))


async def recover_dropped(call: Call, used: KeyRecord) -> Reply:
    return _dropped(used.transaction_id)


def _created(job_id: str, version: FunctionVersion) -> Reply:
    told = {"job_id": job_id, "function": _show_shortly(version)}
    return Reply(200, msgspec.json.encode(told))


def _dropped(transaction_id: str) -> Reply:
    return Reply(200, msgspec.json.encode({"dropped": True, "transaction_id": transaction_id}))


async def _show(call: Call, version: FunctionVersion) -> dict[str, Any]:
    """A version for lancedb, with all that is known of it."""
    definition = version.definition
    content = await function_code.get(call.catalog.database, definition.sha256)
    grantees = call.identity.grantees if call.identity is not None else ()
    uses = await function_uses.list_seen(call.catalog.database, version.function_id, grantees)
    source = {} if definition.makes_rows else read_content(content).source
    used_by = [
        {"table": list(u.table), "column": u.column, "branch": u.branch, "version": u.version}
        for u in uses
    ]
    shown = _show_shortly(version)
    del shown["version"]
    return show_version(version) | shown | {"source": source or None, "used_by": used_by}


def _show_shortly(version: FunctionVersion) -> dict[str, Any]:
    definition = version.definition
    return {
        "name": version.identifier[-1],
        "id": list(version.identifier),
        "version": version.version,
        "kind": definition.kind,
        "form": definition.form,
        "digest": version.digest,
        "sha256": definition.sha256,
        "udf_name": definition.label,
        "udf_version": definition.label_version,
        "inputs": [_show_parameter(each) for each in definition.inputs],
        "outputs": None
        if definition.outputs is None
        else [_show_parameter(each) for each in definition.outputs],
        "manifest": definition.manifest,
        "secrets": {each.variable: each.secret for each in definition.secrets},
        "disabled": version.disabled,
        "properties": version.properties,
        "created_at_millis": version.created_at,
        "created_by": version.created_by,
    }


def _show_parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "data_type": parameter.data_type,
        "nullable": parameter.nullable,
    }


def _read_number(body: NamedVersion) -> int | None:
    number = None if body.version is None else int(body.version)
    if number is not None and number > MOST:
        raise InvalidRequest(f"version is {number}", detail="use the number of a version")
    return number


async def _read_new(call: Call, body: CreateFunction, name: str) -> NewVersion:
    forms = {"udf": body.udf, "udtf_spec": body.udtf_spec, "artifact": body.artifact}
    given = [form for form, value in forms.items() if value is not None]
    if len(given) != 1:
        raise InvalidRequest(
            f"the body has {' and '.join(given) or 'no function'}",
            detail="send exactly one of " + ", ".join(forms),
        )
    if body.artifact is not None:
        new = read_registration(_to_registration(body), name)
    else:
        manifest = await call.catalog.database.read(environments.resolve_in, body.manifest)
        read = _read_udf if body.udf is not None else _read_udtf
        new = read(body, name, manifest)
    for each in new.definition.secrets:
        check_binding(each, new.definition.manifest)
    definition = await call.catalog.workers.run(normalize, new.definition, new.schema)
    return NewVersion(
        definition, new.code, new.is_versioned, new.properties | (body.properties or {})
    )


def _to_registration(body: CreateFunction) -> Registration:
    sent = {
        key: value
        for key in ("artifact", "signature", "runtime", "secret_bindings")
        if (value := getattr(body, key)) is not None
    }
    try:
        return msgspec.convert(sent, Registration)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"the body is not right: {error}", detail="correct the field after '$'"
        ) from error


def _read_udf(body: CreateFunction, name: str, manifest: str | None) -> NewVersion:
    assert body.udf is not None
    code = read_code(body.udf)
    definition = FunctionDefinition(
        label=check_label(body.udf_name or name, "udf_name"),
        label_version=body.udf_version or code.sha256,
        form=code.form,
        sha256=code.sha256,
        kind=code.kind,
        inputs=_read_parameters("inputs", body.inputs or []),
        outputs=None if not body.outputs else _read_parameters("outputs", body.outputs),
        manifest=manifest,
        secrets=_read_secrets(body),
    )
    return NewVersion(definition, code, body.udf_version is not None, {})


def _read_udtf(body: CreateFunction, name: str, manifest: str | None) -> NewVersion:
    spec = dict(body.udtf_spec or {})
    if "registered" in spec or "function" in spec:
        raise InvalidRequest(
            "udtf_spec names a function instead of bringing one", detail="send udtf in it"
        )
    udtf = read_udtf(str(spec.get("kind")), spec)
    if udtf is None:
        raise InvalidRequest("udtf_spec is of kind 'query'", detail="register a chunker or a udtf")
    is_versioned = bool(spec.get("udtf_version"))
    definition = FunctionDefinition(
        label=check_label(body.udf_name or udtf.name or name, "udf_name"),
        label_version=body.udf_version or udtf.version,
        form="udtf_spec",
        sha256=udtf.sha256,
        kind=udtf.kind,
        inputs=tuple(Parameter(each) for each in udtf.input_columns or ()),
        manifest=manifest or udtf.manifest,
        secrets=_read_secrets(body),
        udtf_spec={
            key: value
            for key, value in spec.items()
            if key not in ("udtf", "udtf_sha", "manifest", "manifest_checksum")
        },
    )
    code = FunctionCode(content=udtf.content, form="udtf_spec")
    return NewVersion(definition, code, is_versioned, {}, udtf.output_schema)


def _read_secrets(body: CreateFunction) -> tuple[SecretBinding, ...]:
    return tuple(SecretBinding(v, name) for v, name in sorted((body.secrets or {}).items()))


def _read_parameters(what: str, sent: list[SentParameter]) -> tuple[Parameter, ...]:
    names = [each.name for each in sent]
    if len(sent) > MAX_PARAMETERS or len(set(names)) < len(names):
        raise InvalidRequest(
            f"{what} has {len(sent)} entries, or one twice",
            detail=f"name each once, and at most {MAX_PARAMETERS}",
        )
    if "" in names and (what == "inputs" or len(names) > 1):
        raise InvalidRequest(f"{what} has an entry without a name", detail="name each")
    return tuple(
        Parameter(
            each.name,
            {"type": each.data_type} if isinstance(each.data_type, str) else each.data_type,
            each.nullable is not False,
        )
        for each in sent
    )
