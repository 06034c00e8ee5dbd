"""Functions that were decorated: the callable, and what server and workers have to know."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar

from penstock.sdk.functions.policies import Environment, OnNull
from penstock.sdk.functions.signatures import Kind, Parameters
from penstock.sdk.functions.types import Wire

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Function(Generic[P, R]):
    """A function, and what a server and its workers have to know about it."""

    call: Callable[P, R]
    name: str
    version: str
    # None: named when it is used, or all columns of the query.
    inputs: tuple[str, ...] | None
    on_error: dict[str, Any] | None = None
    needs: dict[str, float] = field(default_factory=dict)
    # How many calls of an async function are under way at once in each task.
    concurrency: int | None = None
    # With "null" a row with a null among its inputs is null without a call, but for inputs at these
    # places, which may be null.
    on_null: OnNull = "call"
    may_be_null: tuple[int, ...] = ()
    # Its parameters, if they are known, and the annotations of those of whose values workers make
    # something.
    parameters: Parameters | None = None
    made: dict[str, Any] = field(default_factory=dict)
    environment: Environment | None = None

    def __post_init__(self) -> None:
        # What help() and inspect look for.
        for name in ("__name__", "__qualname__", "__doc__"):
            object.__setattr__(self, name, getattr(self.call, name, None))
        object.__setattr__(self, "__wrapped__", self.call)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call(*args, **kwargs)


@dataclass(frozen=True, eq=False)
class Udf(Function[P, R]):
    """A function that fills a column, or several."""

    kind: Kind = "scalar"
    # None: said when a column is added.
    data_type: Wire | None = None
    outputs: dict[str, Wire] | None = None
    batch_size: int | None = None
    timeout_seconds: float | None = None

    @property
    def fields(self) -> dict[str, Wire] | None:
        """The columns that it can fill: its outputs, or the fields of what it returns."""
        if self.outputs is not None or (self.data_type or {}).get("type") != "struct":
            return self.outputs
        return {each["name"]: each["type"] for each in (self.data_type or {})["fields"]}

    def __repr__(self) -> str:
        made = ", ".join(self.outputs or ()) or (self.data_type or {}).get("type", "?")
        return f"<udf {self.name}({_show(self.inputs)}) -> {made}, version {self.version}>"


@dataclass(frozen=True, eq=False)
class Chunker(Function[P, R]):
    """A function that makes any number of rows of one row."""

    outputs: dict[str, Wire] = field(default_factory=dict)
    batch: bool = False

    def __repr__(self) -> str:
        made = ", ".join(self.outputs)
        return f"<chunker {self.name}({_show(self.inputs)}) -> {made}, version {self.version}>"


@dataclass(frozen=True, eq=False)
class Udtf(Function[P, R]):
    """A function that makes rows of a partition."""

    outputs: dict[str, Wire] = field(default_factory=dict)
    partition_by: str | None = None
    partition_by_indexed_column: str | None = None

    def __repr__(self) -> str:
        made = ", ".join(self.outputs)
        return f"<udtf {self.name}({_show(self.inputs)}) -> {made}, version {self.version}>"


def _show(inputs: tuple[str, ...] | None) -> str:
    return "…" if inputs is None else ", ".join(inputs)
