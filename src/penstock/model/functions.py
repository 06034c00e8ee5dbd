"""Functions that fill columns or make rows: everything but their code."""

from typing import Any, Literal

from msgspec import Struct, structs

from penstock.model.identifiers import check_name

Kind = Literal["scalar", "arrow", "batch"]
# Functions of views: they make rows from a source row (alone or in batches), or from a partition.
RowsKind = Literal["chunker", "batch_chunker", "udtf"]
Action = Literal["fail", "skip", "retry"]
# What a row with a null among its inputs means: a call like any other, or null without one.
OnNull = Literal["call", "null"]
# How the code is packed: our envelope, another client's, a bare pickle, or the content of a view's
# `udtf_spec` (JSON with `udtf_payload` or `chunker_payload`).
Form = Literal["penstock/1", "udf_pickle", "pickle", "udtf_spec"]


# The most bytes that 400 characters take.
MAX_LABEL_BYTES = 1600


def check_label(name: str, what: str) -> str:
    """Check a function's name, which people read and which may appear in a path."""
    return check_name(name, what, MAX_LABEL_BYTES)


class OnError(Struct, frozen=True, kw_only=True):
    """What a failing row means for the job."""

    action: Action = "fail"
    max_attempts: int = 3
    backoff_seconds: float = 1.0
    # Names of exceptions to retry; all of them when empty.
    match: tuple[str, ...] = ()
    # Names of exceptions that mean "slow down", besides the known ones.
    rate_limit: tuple[str, ...] = ()
    max_failed_rows: int | None = None
    max_failed_fraction: float | None = None


class FunctionOutput(Struct, frozen=True):
    """A column that a function fills; `field` names its part of a result with several."""

    column: str
    struct_field: str
    data_type: dict[str, Any]
    nullable: bool = True


class Needs(Struct, frozen=True):
    """Resources that one task of the function needs; None is the default."""

    num_cpus: float | None = None
    num_gpus: float | None = None
    memory: int | None = None


class SecretBinding(Struct, frozen=True):
    """A variable in which a function finds a secret, by the secret's name; never its value."""

    variable: str
    secret: str


class Registered(Struct, frozen=True, kw_only=True):
    """The version of a function in the catalog that something uses, and what is bound with it."""

    # Of the function as an object: another one may get its name.
    id: str
    version: int
    secrets: tuple[SecretBinding, ...] = ()
    # What instances of a class are made with.
    initialization: dict[str, Any] = {}


class Function(Struct, frozen=True, kw_only=True):
    """A function bound to columns; name and version identify it."""

    name: str
    version: str
    # Of the stored bytes, which are what the client sent.
    sha256: str
    form: Form
    # None: the callable itself says it, in the worker.
    kind: Kind | RowsKind | None
    inputs: tuple[str, ...]
    # For functions of views: the columns that it makes, with their names as `struct_field`.
    outputs: tuple[FunctionOutput, ...]
    batch_size: int | None = None
    timeout_seconds: float | None = None
    on_error: OnError = OnError()
    needs: Needs = Needs()
    # How many calls of an async function are under way at once in a task.
    concurrency: int | None = None
    on_null: OnNull = "call"
    # With "null": the places of inputs that may be null all the same.
    may_be_null: tuple[int, ...] = ()
    # The Python that made the pickle, as "3.11", when the client says so.
    python: str | None = None
    # What the inputs were called when the code was declared, once they are called otherwise.
    declared_inputs: tuple[str, ...] = ()
    # None: declared with the column or view, without a name in the catalog.
    registered: Registered | None = None

    @property
    def given_as(self) -> tuple[str, ...]:
        """The names by which a function of batches has its inputs."""
        return self.declared_inputs or self.inputs

    @property
    def required(self) -> tuple[int, ...]:
        """The places of inputs without which a row is null, and the function is not called."""
        if self.on_null == "call":
            return ()
        return tuple(n for n in range(len(self.inputs)) if n not in self.may_be_null)

    def reading(self, inputs: tuple[str, ...]) -> "Function":
        """The same function after a rename of what it reads."""
        declared = () if self.given_as == inputs else self.given_as
        return structs.replace(self, inputs=inputs, declared_inputs=declared)

    @property
    def identity(self) -> str:
        return identify(self.name, self.version)


def identify(name: str, version: str) -> str:
    """A function's identity: other code with the same identity is the same function."""
    return f"{name}@{version}"


class Input(Struct, frozen=True):
    """A value that a function takes; a type of None is not known."""

    name: str
    data_type: dict[str, Any] | None = None


class Declaration(Struct, frozen=True, kw_only=True):
    """Everything about a function but its code, as a client declares it for new columns."""

    name: str
    # None: the code's own hash.
    version: str | None
    inputs: tuple[str, ...]
    outputs: tuple[FunctionOutput, ...]
    # Metadata of the outputs' fields besides the binding, in their order.
    metadata: tuple[dict[str, str], ...]
    # Stored and shown; nothing here uses them.
    backend: str | None = None
    image: str | None = None
    manifest: str | None = None
    auto_backfill: bool = False
    # What the function takes, in the order of `inputs`; empty when that is not known.
    takes: tuple[Input, ...] = ()


class Redeclaration(Struct, frozen=True, kw_only=True):
    """Changes of a function; None keeps the value."""

    name: str | None = None
    version: str | None = None
    inputs: tuple[str, ...] | None = None
    metadata: dict[str, str] | None = None
    backend: str | None = None
    image: str | None = None
    manifest: str | None = None
    auto_backfill: bool | None = None
    # The results by name and type that the columns must have; a type of None is not known.
    outputs: tuple[tuple[str, dict[str, Any] | None], ...] | None = None
    # What the function takes, in the order of the inputs; empty when that is not known.
    takes: tuple[Input, ...] = ()


class RowError(Struct, frozen=True, kw_only=True):
    """A row that a function failed on."""

    row_id: int
    fragment: int
    offset: int
    # The inputs, shortened.
    inputs: str
    exception: str
    message: str
    # The function's own frames.
    traceback: str
    # How many times it was tried.
    tries: int
    at: int
    # The first column that the function fills: a view may have several functions.
    column: str = ""
