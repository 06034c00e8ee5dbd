"""lancedb's functions: source text to register, and how a version is described to its client."""

import base64
import binascii
import datetime
import hashlib
from typing import Any

import msgspec

from penstock.catalog.functions.functions import NewVersion
from penstock.catalog.functions.versions import FunctionDefinition, FunctionVersion, Parameter
from penstock.errors import InvalidRequest, Unsupported
from penstock.model.envelopes import ENTRY_FILE, check_sha256, pack_source, read_content
from penstock.model.functions import SecretBinding
from penstock.server.lance.lancedb.arrow_types import read_arrow_type, show_arrow_type

ADAPTER = "scalar_to_arrow_batch"
SHA256 = "sha256:"


class Content(msgspec.Struct):
    encoding: str
    data: str


class Adapter(msgspec.Struct):
    kind: str
    version: int


class Artifact(msgspec.Struct):
    kind: str
    digest: str
    entrypoint: str
    content: Content
    adapter: Adapter | None = None


class SentParameter(msgspec.Struct):
    name: str
    arrow_type: str
    nullable: bool = False


class SentOutput(msgspec.Struct):
    kind: str
    arrow_type: str | None = None
    nullable: bool = False
    fields: list[SentParameter] = []


class Signature(msgspec.Struct):
    inputs: list[SentParameter]
    output: SentOutput
    initialization: list[SentParameter] = []


class Environment(msgspec.Struct):
    kind: str
    packages: list[str] = []


class Runtime(msgspec.Struct):
    kind: str
    environment: Environment | None = None
    env: dict[str, str] = {}
    gpu: bool | None = None


class SecretReference(msgspec.Struct):
    name: str
    namespace_path: list[str] = []


class SentBinding(msgspec.Struct):
    kind: str
    variable: str | None = None
    secret_ref: SecretReference | None = None


class Registration(msgspec.Struct):
    """The body of lancedb's `create_function`."""

    artifact: Artifact
    signature: Signature
    runtime: Runtime
    secret_bindings: list[SentBinding] = []


def read_registration(sent: Registration, name: str) -> NewVersion:
    """What lancedb registers, as every door does."""
    _check_known(sent)
    files = _read_files(sent.artifact)
    gpus = 1.0 if sent.runtime.gpu else None
    code = read_content(pack_source(files, sent.artifact.entrypoint, num_gpus=gpus))
    manifest = _read_manifest(sent.runtime)
    told = f"{code.sha256} {manifest or ''}"
    definition = FunctionDefinition(
        label=name,
        label_version=hashlib.sha256(told.encode()).hexdigest()[:16],
        form=code.form,
        sha256=code.sha256,
        inputs=_read_parameters(sent.signature.inputs),
        outputs=_read_output(sent.signature.output),
        initialization=_read_parameters(sent.signature.initialization),
        manifest=manifest,
        secrets=tuple(_read_binding(each) for each in sent.secret_bindings),
    )
    return NewVersion(definition, code, is_versioned=False, properties={})


def show_version(version: FunctionVersion) -> dict[str, Any]:
    """A version as lancedb's client reads it."""
    definition = version.definition
    outputs = definition.outputs
    is_single = outputs is not None and [each.name for each in outputs] == [""]
    output: dict[str, Any] = {"kind": "unknown"}
    if outputs is not None:
        output = (
            # Its client uses no other; what may be null is the definition's own business.
            {"kind": "scalar", **_show_type(outputs[0]), "nullable": False}
            if is_single
            else {"kind": "named_struct", "fields": [_show(each) for each in outputs]}
        )
    made_at = datetime.datetime.fromtimestamp(version.created_at / 1000, datetime.UTC)
    return {
        "name": version.identifier[-1],
        "namespace_path": list(version.identifier[:-1]),
        "object_id": version.function_id,
        "location": f"functions/{version.function_id}",
        "version": str(version.version),
        "image": {"manifest_digest": f"{SHA256}{version.digest}", "descriptor": {}, "source": True},
        "signature": {
            "inputs": [_show(each) for each in definition.inputs],
            "output": output,
            "initialization": [_show(each) for each in definition.initialization],
        },
        "secret_bindings": [
            {
                "kind": "env",
                "variable": each.variable,
                "secret_ref": {"name": each.secret, "namespace_path": []},
            }
            for each in definition.secrets
        ],
        "created_at": made_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "metadata": version.properties,
        "disabled": version.disabled,
    }


def _check_known(sent: Registration) -> None:
    runtime, adapter = sent.runtime, sent.artifact.adapter
    if runtime.kind not in ("python", "python_v2"):
        raise Unsupported(
            f"runtime is of kind {runtime.kind[:100]!r}", detail="register a function in Python"
        )
    kind = "pip" if runtime.environment is None else runtime.environment.kind
    if kind != "pip":
        raise Unsupported(
            f"the environment of the runtime is of kind {kind[:100]!r}",
            detail="name its packages for pip",
        )
    if adapter is not None and (adapter.kind, adapter.version) != (ADAPTER, 1):
        raise Unsupported(
            f"the adapter is {adapter.kind[:100]!r}, version {adapter.version}",
            detail=f"use {ADAPTER}, version 1",
        )


def _read_files(artifact: Artifact) -> dict[str, str]:
    if artifact.content.encoding != "base64":
        raise InvalidRequest(
            f"artifact.content.encoding is {artifact.content.encoding[:100]!r}",
            detail="use base64",
        )
    try:
        content = base64.b64decode(artifact.content.data, validate=True)
        text = content.decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest(
            f"artifact.content.data is no text in base64: {error}", detail="send source text"
        ) from error
    check_sha256("artifact.digest", artifact.digest.removeprefix(SHA256), content)
    if artifact.kind == "python_callable":
        return {ENTRY_FILE: text}
    if artifact.kind == "python_bundle":
        try:
            return msgspec.json.decode(content, type=_Bundle).files
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InvalidRequest(
                f"the artifact is no bundle: {error}", detail="send a JSON object with files"
            ) from error
    raise Unsupported(
        f"artifact is of kind {artifact.kind[:100]!r}",
        detail="use python_callable or python_bundle",
    )


class _Bundle(msgspec.Struct):
    files: dict[str, str]


def _read_manifest(runtime: Runtime) -> str | None:
    packages = [] if runtime.environment is None else runtime.environment.packages
    told: dict[str, Any] = {"pip": packages} if packages else {}
    told |= {"env_vars": dict(sorted(runtime.env.items()))} if runtime.env else {}
    return msgspec.json.encode(told).decode() if told else None


def _read_parameters(sent: list[SentParameter]) -> tuple[Parameter, ...]:
    return tuple(Parameter(p.name, read_arrow_type(p.arrow_type), p.nullable) for p in sent)


def _read_output(sent: SentOutput) -> tuple[Parameter, ...]:
    if sent.kind == "scalar" and sent.arrow_type is not None:
        return (Parameter("", read_arrow_type(sent.arrow_type), sent.nullable),)
    if sent.kind == "named_struct" and sent.fields:
        return _read_parameters(sent.fields)
    raise Unsupported(
        f"the output is of kind {sent.kind[:100]!r}", detail="use scalar or named_struct"
    )


def _read_binding(sent: SentBinding) -> SecretBinding:
    if sent.kind != "env" or sent.variable is None or sent.secret_ref is None:
        raise Unsupported(
            f"a secret binding is of kind {sent.kind[:100]!r}",
            detail="bind a secret to a variable (EnvVarSecret)",
        )
    if sent.secret_ref.namespace_path:
        raise InvalidRequest(
            f"secret {sent.secret_ref.name!r} is named in a namespace, and secrets have none here",
            detail="leave secret_namespace_path out",
        )
    return SecretBinding(sent.variable, sent.secret_ref.name)


def _show(parameter: Parameter) -> dict[str, Any]:
    return {"name": parameter.name, **_show_type(parameter)}


def _show_type(parameter: Parameter) -> dict[str, Any]:
    return {"arrow_type": show_arrow_type(parameter.data_type), "nullable": parameter.nullable}
