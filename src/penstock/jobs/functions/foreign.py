"""Functions of another client: unpickled without its modules, and called as that client calls them.

Its pickles name classes of its own, of which only the function inside matters here. Where they
cannot be imported, empty classes stand in for them.
"""

import functools
import importlib
import inspect
import io
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.jobs.functions.children import listed
from penstock.model.functions import Function, Kind, RowsKind

# Its own pickler is a copy of cloudpickle, whose functions make functions and classes.
OWN_PICKLER, PICKLER = "geneva.cloudpickle", "cloudpickle"
# Packages whose objects only say how that client would run the function.
AROUND = ("geneva", "tenacity")
# What a chunker of batches is given, and gives back, to say which row each of its rows is of.
SOURCE_ROW = "__source_row_id"


class StandIn:
    """An object of another client's: it takes whatever it is made of."""

    def __init__(self, *values: Any, **named: Any) -> None:
        self.values = values
        self.__dict__.update(named)

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


class Source:
    """The rows of a partition, as a function of another client asks for them."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        return self._table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == OWN_PICKLER or module.startswith(f"{OWN_PICKLER}."):
            module = PICKLER + module.removeprefix(OWN_PICKLER)
        if module.partition(".")[0] == PICKLER and name == "subimport":
            return _import
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            if module.partition(".")[0] not in AROUND:
                raise
            return _stand_in(module, name)


def unpickle(payload: bytes) -> Any:
    """Unpickle what another client packed, in a worker."""
    return _Unpickler(io.BytesIO(payload)).load()


def adapt(
    func: Callable[..., Any], kind: Kind | RowsKind, function: Function
) -> Callable[..., Any]:
    """The function, called as ours are: the same one where there is no difference."""
    if kind == "scalar":
        return _with_numpy(func)
    names = tuple(each.struct_field or each.column for each in function.outputs)
    if kind == "chunker":
        return _chunker(func, names)
    if kind == "batch_chunker":
        return _batch_chunker(func)
    return _udtf(func) if kind == "udtf" else func


class StandInModule(ModuleType):
    """A module of another client's, which code names in passing, as in its annotations."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"module {self.__name__} is not there, so it has no {name}")


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        if name.partition(".")[0] not in AROUND:
            raise
        return StandInModule(name)


@functools.cache
def _stand_in(module: str, name: str) -> type:
    """The same class for the same name, so that two objects of it are alike."""
    return type(name.rpartition(".")[2], (StandIn,), {"__module__": module})


def list_parameters(func: Any) -> Sequence[inspect.Parameter]:
    """The parameters of a function, or of an object that can be called."""
    if isinstance(func, type) or not inspect.isroutine(func):
        func = func.__call__
    try:
        return list(inspect.signature(func).parameters.values())
    except (TypeError, ValueError):
        return []


def _with_numpy(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose lists are to come as arrays of numpy, as its annotations say."""
    numbers = [
        number
        for number, parameter in enumerate(list_parameters(func))
        if getattr(parameter.annotation, "__name__", str(parameter.annotation)).endswith("ndarray")
    ]
    if not numbers:
        return func

    @functools.wraps(func, updated=())
    def called(*values: Any) -> Any:
        given = list(values)
        for number in numbers:
            if number < len(given) and given[number] is not None:
                given[number] = np.asarray(given[number])
        return func(*given)

    return called


def _chunker(func: Callable[..., Any], names: Sequence[str]) -> Callable[..., list[Any]]:
    """Its rows may be tuples, with names or in the order of the view's columns."""
    make = listed(func)

    def to_row(item: Any) -> Any:
        if isinstance(item, Mapping) or not isinstance(item, tuple):
            return item
        fields = getattr(item, "_fields", names)
        return dict(zip(fields, item, strict=True)) if len(item) == len(fields) else item

    return lambda *values: [to_row(item) for item in make(*values)]


def _batch_chunker(func: Callable[..., Any]) -> Callable[[pa.RecordBatch], list[Any]]:
    """It takes the columns one by one, and returns all rows as one batch."""
    takes_rows = any(each.name == SOURCE_ROW for each in list_parameters(func))

    def called(batch: pa.RecordBatch) -> list[Any]:
        given = dict(zip(batch.schema.names, batch.columns, strict=True))
        if takes_rows:
            given[SOURCE_ROW] = pa.array(range(batch.num_rows), pa.int64())
        return list(_list_rows(func(**given)))

    return called


def _list_rows(made: Any) -> Iterator[Any]:
    if not isinstance(made, pa.RecordBatch | pa.Table) or SOURCE_ROW not in made.schema.names:
        raise TypeError(
            f"returned {type(made).__name__}, and a RecordBatch with the column {SOURCE_ROW} "
            "is expected, which says of which row each is"
        )
    for row in made.to_pylist():
        yield row.pop(SOURCE_ROW), row


def _udtf(func: Callable[..., Any]) -> Callable[[pa.Table], list[Any]]:
    make = listed(func)
    return lambda table: make(Source(table))
