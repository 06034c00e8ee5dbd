"""`@udf`, `@udtf` and `@chunker`: functions that fill columns and make views.

What is decorated is still called as before, as in a unit test; what was learned about it, and what
the decorator says, is beside it. Anything that can't be right is refused here, not by a job.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

from penstock.annotations import list_classes
from penstock.errors import InvalidFunction
from penstock.sdk.functions.declared import Chunker, Udf, Udtf
from penstock.sdk.functions.policies import (
    Environment,
    OnNull,
    Policy,
    at_least_one,
    positive,
    read_concurrency,
    read_environment,
    read_needs,
    read_policy,
)
from penstock.sdk.functions.signatures import (
    Kind,
    Parameters,
    check_inputs,
    check_name,
    find_returned,
    find_row,
    guess_kind,
    is_async,
    list_parameters,
    read_made,
    read_nulls,
)
from penstock.sdk.functions.types import Wire, read_fields, read_type
from penstock.sdk.functions.versions import find_version

P = ParamSpec("P")
R = TypeVar("R")


class Options(TypedDict, total=False):
    """What every decorator takes."""

    # The columns that it reads, else those called like its parameters.
    inputs: Sequence[str]
    # What messages call it, else its own name.
    name: str
    # What tells it from other code, else a hash of its code.
    version: str
    # `fail`, `skip` or `retry`, or all that there is to say as a mapping.
    on_error: Policy
    # How often a row that fails is tried again; with `on_error="skip"` it is then skipped.
    retries: int
    # What a task needs; `memory` is in bytes.
    num_cpus: float
    num_gpus: float
    memory: int
    # Of an async function: how many calls are under way at once in each task.
    concurrency: int
    # `pip`, `py_modules` and `env_vars` of the workers.
    environment: Environment


class RowOptions(Options, total=False):
    """What those take besides that are called for rows."""

    # What a row with a null among its inputs means: `null`, which it then is without a call, or
    # `call`; else it is null unless the annotation of the parameter has None, as `str | None` has.
    # Functions of arrays and batches see nulls.
    on_null: OnNull


class UdfOptions(RowOptions, total=False):
    # The type of the column, else that of the annotation of what is returned.
    data_type: Any
    # The columns with their types when it fills several: a mapping, a TypedDict or a dataclass.
    outputs: Any
    # `scalar` (values of one row), `arrow` (an Array for each input), `batch` (a RecordBatch); else
    # what the annotations say, or `scalar`.
    kind: Kind
    # Seconds that one row may take.
    timeout: float
    # How many rows it gets at once, to begin with.
    batch_size: int


class ChunkerOptions(RowOptions, total=False):
    # The fields of the dicts that it yields, with their types; else those of the TypedDict or
    # dataclass in the annotation of what is returned, as in `-> Iterator[Chunk]`.
    outputs: Any
    # Whether it takes a `pyarrow.RecordBatch` and yields `(row index, dict)`.
    batch: bool


class UdtfOptions(Options, total=False):
    # The columns that it makes with their types, or a TypedDict in its annotation.
    outputs: Any
    # The column whose values make the partitions, or whose vector index does; without one of them,
    # all rows are one partition.
    partition_by: str
    partition_by_indexed_column: str


@overload
def udf(function: Callable[P, R], /) -> Udf[P, R]: ...


@overload
def udf(**options: Unpack[UdfOptions]) -> Callable[[Callable[P, R]], Udf[P, R]]: ...


def udf(
    function: Callable[P, R] | None = None, /, **options: Unpack[UdfOptions]
) -> Udf[P, R] | Callable[[Callable[P, R]], Udf[P, R]]:
    """A function that fills a column: `@udf`, or `@udf(…)` with what the annotations don't say.

    A class is made once in each worker and then called, for models that take long to load. The
    options are those of `UdfOptions`: data_type, inputs, kind, outputs, version, on_null, on_error,
    retries, timeout, batch_size, concurrency, num_cpus, num_gpus, memory, environment, name.
    """

    def decorate(call: Callable[P, R]) -> Udf[P, R]:
        label = _label(call, options, UdfOptions)
        parameters = list_parameters(call, label)
        kind = options.get("kind") or guess_kind(parameters, label)
        data_type, outputs = options.get("data_type"), options.get("outputs")
        if outputs is not None and (data_type is not None or kind == "arrow"):
            more = " and data_type" if data_type is not None else f", and is of kind {kind!r}"
            raise InvalidFunction(
                f"{label} has outputs{more}",
                detail="outputs take the place of data_type, and need the kind scalar, which "
                "returns a dict for each row, or batch, which returns a RecordBatch",
            )
        returned = None
        if outputs is None:
            given = data_type if data_type is not None else find_returned(call, kind)
            returned = None if given is None else read_type(given, f"the type of {label}")
        return Udf(
            **_declare(call, label, options, parameters, kind),
            kind=kind,
            data_type=returned,
            outputs=None if outputs is None else read_fields(outputs, f"outputs of {label}"),
            batch_size=at_least_one(label, "batch_size", options.get("batch_size")),
            timeout_seconds=positive(label, "timeout", options.get("timeout")),
        )

    return decorate if function is None else decorate(function)


@overload
def chunker(function: Callable[P, R], /) -> Chunker[P, R]: ...


@overload
def chunker(**options: Unpack[ChunkerOptions]) -> Callable[[Callable[P, R]], Chunker[P, R]]: ...


def chunker(
    function: Callable[P, R] | None = None, /, **options: Unpack[ChunkerOptions]
) -> Chunker[P, R] | Callable[[Callable[P, R]], Chunker[P, R]]:
    """A function that yields dicts, the rows that it makes of one row, for views of kind chunker.

    The options are those of `ChunkerOptions`: outputs, inputs, batch, version, on_null, on_error,
    retries, concurrency, num_cpus, num_gpus, memory, environment, name.
    """

    def decorate(call: Callable[P, R]) -> Chunker[P, R]:
        label = _label(call, options, ChunkerOptions)
        batch = options.get("batch", False)
        parameters = list_parameters(call, label)
        return Chunker(
            **_declare(call, label, options, parameters, "batch" if batch else "scalar"),
            outputs=_read_rows(call, label, options.get("outputs")),
            batch=batch,
        )

    return decorate if function is None else decorate(function)


@overload
def udtf(function: Callable[P, R], /) -> Udtf[P, R]: ...


@overload
def udtf(**options: Unpack[UdtfOptions]) -> Callable[[Callable[P, R]], Udtf[P, R]]: ...


def udtf(
    function: Callable[P, R] | None = None, /, **options: Unpack[UdtfOptions]
) -> Udtf[P, R] | Callable[[Callable[P, R]], Udtf[P, R]]:
    """A function that takes a `pyarrow.Table`, a partition, and gives rows, for views of kind udtf.

    Without `inputs` it is given all columns of the query. The options are those of `UdtfOptions`:
    outputs, inputs, partition_by, partition_by_indexed_column, version, on_error, retries,
    concurrency, num_cpus, num_gpus, memory, environment, name.
    """

    def decorate(call: Callable[P, R]) -> Udtf[P, R]:
        label = _label(call, options, UdtfOptions)
        by, indexed = options.get("partition_by"), options.get("partition_by_indexed_column")
        if by and indexed:
            raise InvalidFunction(
                f"{label} has partition_by and partition_by_indexed_column",
                detail="use one of them",
            )
        return Udtf(
            **_declare(call, label, options, list_parameters(call, label), "batch"),
            outputs=_read_rows(call, label, options.get("outputs")),
            partition_by=by,
            partition_by_indexed_column=indexed,
        )

    return decorate if function is None else decorate(function)


def _label(call: Callable[..., Any], options: Mapping[str, Any], known: type) -> str:
    """What messages call the function, when its options are ones that there are."""
    label = check_name(call, options.get("name"))
    names: frozenset[str] = known.__optional_keys__  # type: ignore[attr-defined]
    if unknown := sorted(options.keys() - names):
        raise InvalidFunction(
            f"{label} has the option {unknown[0]!r}", detail="it takes " + ", ".join(sorted(names))
        )
    return label


def _declare(
    call: Callable[P, R],
    label: str,
    options: Mapping[str, Any],
    parameters: Parameters | None,
    kind: Kind,
) -> dict[str, Any]:
    """What all functions have."""
    needs = {name: options.get(name) for name in ("num_cpus", "num_gpus", "memory")}
    on_null, may_be_null = read_nulls(label, options.get("on_null"), parameters, kind)
    told = "" if on_null == "call" else f"{on_null}{may_be_null}"
    made = read_made(label, parameters, kind)
    classes = [each for annotation in made.values() for each in list_classes(annotation)]
    return {
        "call": call,
        "name": label,
        "version": options.get("version") or find_version(call, told, classes),
        "inputs": check_inputs(label, options.get("inputs"), parameters, kind),
        "on_error": read_policy(label, options.get("on_error"), options.get("retries")),
        "needs": read_needs(label, needs),
        "concurrency": read_concurrency(label, options.get("concurrency"), is_async=is_async(call)),
        "on_null": on_null,
        "may_be_null": may_be_null,
        "parameters": parameters if kind == "scalar" else None,
        "made": made,
        "environment": read_environment(label, options.get("environment")),
    }


def _read_rows(call: Callable[..., Any], label: str, outputs: Any) -> dict[str, Wire]:
    given = outputs if outputs is not None else find_row(call)
    if given is None:
        raise InvalidFunction(
            f"what {label} makes is not known",
            detail='say outputs={"name": str}, or annotate it with a TypedDict or a dataclass: '
            "-> Iterator[Chunk]",
        )
    return read_fields(given, f"outputs of {label}")
