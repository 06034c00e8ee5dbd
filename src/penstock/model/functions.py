"""Functions that fill columns or make rows: what is known of one without looking into its code."""

from typing import Any, Literal

from msgspec import Struct

from penstock.model.identifiers import check_name

Kind = Literal["scalar", "arrow", "batch"]
# Functions of views: a row of the source gives rows, given alone or in batches; a partition does.
RowsKind = Literal["chunker", "batch_chunker", "udtf"]
Action = Literal["fail", "skip", "retry"]
# How the code is packed: our envelope, another client's, nothing but the pickle, or what
# `udtf_spec` of a view holds (JSON with `udtf_payload` or `chunker_payload`).
Form = Literal["penstock/1", "udf_pickle", "pickle", "udtf_spec"]


# What 400 characters take at most.
MAX_LABEL_BYTES = 1600


def check_label(name: str, what: str) -> str:
    """What a function is called, for people to read and for what shows it in a path."""
    return check_name(name, what, MAX_LABEL_BYTES)


class OnError(Struct, frozen=True, kw_only=True):
    """What a row that fails means for the job."""

    action: Action = "fail"
    max_attempts: int = 3
    backoff_seconds: float = 1.0
    # Names of exceptions that are tried again; all of them when there is none.
    match: tuple[str, ...] = ()
    # Names of exceptions that mean "slower, please", beside those that are known.
    rate_limit: tuple[str, ...] = ()
    max_failed_rows: int | None = None
    max_failed_fraction: float | None = None


class Output(Struct, frozen=True):
    """A column that a function fills; the field names its part of a result with several."""

    column: str
    struct_field: str
    data_type: dict[str, Any]
    nullable: bool = True


class Needs(Struct, frozen=True):
    """What one task of the function needs; None is whatever there is."""

    num_cpus: float | None = None
    num_gpus: float | None = None
    memory: int | None = None


class Function(Struct, frozen=True, kw_only=True):
    """A function bound to columns; its name and version tell whether it is another one."""

    name: str
    version: str
    # Of the stored bytes, which are what the client sent.
    sha256: str
    form: Form
    # None: the callable says it itself, in the worker.
    kind: Kind | RowsKind | None
    inputs: tuple[str, ...]
    # Of a function of a view: the columns that it makes, with their names as `struct_field`.
    outputs: tuple[Output, ...]
    batch_size: int | None = None
    timeout_seconds: float | None = None
    on_error: OnError = OnError()
    needs: Needs = Needs()
    # The Python that made the pickle, as "3.11", when the client says so.
    python: str | None = None

    @property
    def identity(self) -> str:
        return identify(self.name, self.version)


def identify(name: str, version: str) -> str:
    """What a function is known by: other code under the same is the same function."""
    return f"{name}@{version}"


class Declaration(Struct, frozen=True, kw_only=True):
    """Everything about a function but its code, as a client declares it for new columns."""

    name: str
    # None: the code's own hash.
    version: str | None
    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]
    # What the fields of the outputs carry beside the binding, in their order.
    metadata: tuple[dict[str, str], ...]
    # Kept and shown; nothing here acts on them.
    backend: str | None = None
    image: str | None = None
    manifest: str | None = None
    auto_backfill: bool = False


class Redeclaration(Struct, frozen=True, kw_only=True):
    """What is to be another one from now on; None leaves that as it is."""

    name: str | None = None
    version: str | None = None
    inputs: tuple[str, ...] | None = None
    metadata: dict[str, str] | None = None
    backend: str | None = None
    image: str | None = None
    manifest: str | None = None
    auto_backfill: bool | None = None


class RowError(Struct, frozen=True, kw_only=True):
    """A row that a function failed on."""

    row_id: int
    fragment: int
    offset: int
    # The values it was given, shortened.
    inputs: str
    exception: str
    message: str
    # The function's own frames.
    traceback: str
    # How many times it was tried.
    tries: int
    at: int
    # The first column that the function fills: of a view there may be several functions.
    column: str = ""
