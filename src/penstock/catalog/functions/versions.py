"""What a version of a registered function is: its definition, checked, and its hash."""

import hashlib
import re
from typing import Any

import msgspec
from msgspec import Struct, structs

from penstock.errors import InvalidRequest
from penstock.lance.columns.computed import show_type
from penstock.lance.columns.schemas import to_arrow_type
from penstock.model.envelopes import FunctionCode
from penstock.model.functions import Form, Kind, RowsKind, SecretBinding
from penstock.model.identifiers import Identifier, show
from penstock.sql.doors import schemas

# Names of secrets, and variables that they can be put into: not what decides how a worker's Python
# runs, or is our own.
SECRET = re.compile(r"[A-Za-z0-9_.-]{1,255}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
KEPT = ("PENSTOCK_", "SPARK_", "PYSPARK_", "PYTHON", "LD_", "JAVA_")


class Parameter(Struct, frozen=True, omit_defaults=True):
    """An input, an output or a field of the initialization; of an only output the name is ""."""

    name: str
    # None: not known.
    data_type: dict[str, Any] | None = None
    nullable: bool = True


class FunctionDefinition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a version of a function is, but its code."""

    # What messages call it, and what tells it from other code: `udf_name` and `udf_version`.
    label: str
    label_version: str
    form: Form
    # Of the code.
    sha256: str
    # None: the callable itself says it, in the worker.
    kind: Kind | RowsKind | None = None
    inputs: tuple[Parameter, ...] = ()
    # None: said where it is used.
    outputs: tuple[Parameter, ...] | None = None
    initialization: tuple[Parameter, ...] = ()
    # The environment, as JSON text.
    manifest: str | None = None
    secrets: tuple[SecretBinding, ...] = ()
    # For functions that make rows: the rest of `udtf_spec`.
    udtf_spec: dict[str, Any] = {}

    @property
    def makes_rows(self) -> bool:
        return self.form == "udtf_spec"


class FunctionVersion(Struct, frozen=True, kw_only=True):
    """A numbered version of a function, which never changes but for `disabled`."""

    function_id: str
    identifier: Identifier
    version: int
    digest: str
    definition: FunctionDefinition
    # Of this version, or of the whole function.
    disabled: bool
    # Of the function as a whole.
    properties: dict[str, str]
    created_at: int
    created_by: str

    def __str__(self) -> str:
        return f"{show(self.identifier)} (version {self.version})"


def digest_of(definition: FunctionDefinition, code: FunctionCode, *, is_versioned: bool) -> str:
    """A hash of a version's content.

    Pickles of one function differ from time to time; so where the client gave a version, that
    tells the code from other code, and not its bytes.
    """
    told = structs.replace(definition, sha256="") if is_versioned else definition
    options: list[Any] = [code.batch_size, code.timeout_seconds, code.on_error, code.needs]
    # What releases before did not have counts where it is used, so that theirs stay what they are.
    options += [[code.on_null, code.may_be_null]] if code.on_null != "call" else []
    options += [] if code.concurrency is None else [{"concurrency": code.concurrency}]
    return hashlib.sha256(msgspec.json.encode([told, options], order="sorted")).hexdigest()


def normalize(definition: FunctionDefinition, schema: str | None = None) -> FunctionDefinition:
    """The definition with its types as descriptions show them; raises for one that is none.

    `schema` is that of what a function makes, as base64 of its Arrow form.
    """
    outputs = definition.outputs
    if schema is not None:
        made = schemas.read_schema(schema, "output_schema_bytes in udtf")
        outputs = tuple(Parameter(each.name, show_type(each.type), each.nullable) for each in made)
    return structs.replace(
        definition,
        inputs=_normalize("inputs", definition.inputs),
        outputs=None if outputs is None else _normalize("outputs", outputs),
        initialization=_normalize("initialization", definition.initialization),
    )


def _normalize(what: str, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    return tuple(_normalize_one(f"{what}: {each.name!r}", each) for each in parameters)


def _normalize_one(what: str, parameter: Parameter) -> Parameter:
    if parameter.data_type is None:
        return parameter
    try:
        kind = to_arrow_type(parameter.data_type)
    except InvalidRequest as error:
        raise InvalidRequest(f"{what}: {error.message}", detail=error.detail) from error
    return structs.replace(parameter, data_type=show_type(kind))


def check_binding(binding: SecretBinding, manifest: str | None) -> SecretBinding:
    """Refuse a secret, or a variable for it, that cannot be one."""
    if not SECRET.fullmatch(binding.secret) or binding.secret in (".", ".."):
        raise InvalidRequest(
            f"secret {binding.secret[:100]!r} is no name",
            detail="use letters, digits and any of _ . -",
        )
    if not VARIABLE.fullmatch(binding.variable) or binding.variable.startswith(KEPT):
        raise InvalidRequest(
            f"a secret cannot be put into the variable {binding.variable[:100]!r}",
            detail="use letters, digits and _, and no beginning of " + ", ".join(KEPT),
        )
    variables = _list_variables(manifest)
    if binding.variable in variables:
        raise InvalidRequest(
            f"the variable {binding.variable} has a secret and a value in the environment",
            detail="leave it out of env_vars",
        )
    return binding


class _Environment(msgspec.Struct):
    env_vars: dict[str, str] | None = None


def _list_variables(manifest: str | None) -> set[str]:
    if manifest is None:
        return set()
    return set(msgspec.json.decode(manifest, type=_Environment).env_vars or {})
