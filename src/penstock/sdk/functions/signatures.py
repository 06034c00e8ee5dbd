"""Read a function's signature: its inputs, its kind, its result."""

import collections.abc
import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Literal

from penstock.annotations import (
    REMEDY,
    NoSuchValues,
    allows_none,
    find_converter,
    is_record,
    without_none,
)
from penstock.errors import InvalidFunction
from penstock.sdk.functions.policies import OnNull

Kind = Literal["scalar", "arrow", "batch"]
Parameters = tuple[inspect.Parameter, ...]
MAX_NAME = 400
ITERABLES = (
    *(collections.abc.Iterator, collections.abc.Iterable, collections.abc.Generator),
    *(collections.abc.AsyncIterator, collections.abc.AsyncIterable),
    *(collections.abc.AsyncGenerator, collections.abc.Sequence, list),
)
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_name(call: Callable[..., Any], given: str | None) -> str:
    """The function's name in messages."""
    if not callable(call):
        raise InvalidFunction(
            f"{call!r} is no function", detail="decorate a function, or a class with __call__"
        )
    name = given or getattr(call, "__name__", "")
    if not name or name == "<lambda>":
        raise InvalidFunction("the function has no name", detail="say name='…'")
    if len(name) > MAX_NAME or not name.isprintable():
        raise InvalidFunction(
            f"the name {name[:50]!r} cannot be a function's",
            detail=f"use at most {MAX_NAME} printable characters",
        )
    return name


def list_parameters(call: Callable[..., Any], label: str) -> Parameters | None:
    """The parameters that it is called with, in a worker; None when they can't be known."""
    target = find_called(call, label)
    hints = _hints(target)
    try:
        found = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return None
    if inspect.isclass(call):
        _check_made(call, label)
        found = found[1:]
    for each in found:
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty:
            raise InvalidFunction(
                f"{label} needs {each.name} by name, and inputs are given by place",
                detail="give it a default, or take it as a positional parameter",
            )
    return tuple(each.replace(annotation=hints.get(each.name, each.annotation)) for each in found)


def is_async(call: Callable[..., Any]) -> bool:
    """Whether what it gives is awaited, so that several calls can be under way at once."""
    target: Any = find_called(call, "it")
    while isinstance(target, functools.partial):
        target = target.func
    if not inspect.isroutine(target):
        target = getattr(type(target), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target)


def find_called(call: Callable[..., Any], label: str) -> Callable[..., Any]:
    """What a worker calls: a class's instances, not the class."""
    if not inspect.isclass(call):
        return call
    # Not with getattr, which finds how classes themselves are called.
    found = next(
        (vars(base)["__call__"] for base in call.__mro__ if "__call__" in vars(base)), None
    )
    if found is None:
        raise InvalidFunction(
            f"class {label} cannot be called", detail="give it a method __call__(self, …)"
        )
    called: Callable[..., Any] = found
    return called


def guess_kind(parameters: Parameters | None, label: str) -> Kind:
    """By the annotations: arrays, a batch, or else plain values."""
    names = [_arrow_name(each.annotation) for each in parameters or ()]
    if names == ["RecordBatch"]:
        return "batch"
    arrays = [name is not None and name.endswith("Array") for name in names]
    if arrays and all(arrays):
        return "arrow"
    if any(name is not None for name in names):
        raise InvalidFunction(
            f"the parameters of {label} mix Arrow and plain values",
            detail="take one RecordBatch, or only Arrays, or only plain values; or say kind=",
        )
    return "scalar"


def check_inputs(
    label: str,
    given: Sequence[str] | None,
    parameters: Parameters | None,
    kind: Kind,
) -> tuple[str, ...] | None:
    """The columns that it reads, if they are known yet."""
    if isinstance(given, str):
        raise InvalidFunction(
            f"inputs of {label} is the text {given!r}", detail=f"write [{given!r}]"
        )
    if given is not None and (not given or len(set(given)) < len(given)):
        raise InvalidFunction(
            f"inputs of {label} is empty, or has a column twice", detail="name each column once"
        )
    if kind == "batch" or parameters is None:
        return None if given is None else tuple(given)
    places = [each for each in parameters if each.kind in POSITIONAL]
    any_number = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if given is None:
        wanted = [each.name for each in places if each.default is each.empty]
        if not wanted and not any_number:
            raise InvalidFunction(
                f"{label} takes no parameters", detail="take one for each column that it reads"
            )
        return tuple(wanted) or None
    least = sum(each.default is each.empty for each in places)
    if len(given) < least or (len(given) > len(places) and not any_number):
        raise InvalidFunction(
            f"{label} takes {least} values, and inputs names {len(given)} columns",
            detail="name a column for each parameter, in their order",
        )
    return tuple(given)


def read_nulls(
    label: str, given: OnNull | None, parameters: Parameters | None, kind: Kind
) -> tuple[OnNull, tuple[int, ...]]:
    """What a row with nulls means, and the places of inputs that may be null in any case."""
    if given not in (None, "call", "null"):
        raise InvalidFunction(f"on_null of {label} is {given!r}", detail="use 'null' or 'call'")
    if given is not None or kind != "scalar":
        return given or "call", ()
    places = [_may_be_none(p) for p in parameters or () if p.kind in POSITIONAL]
    others = [_may_be_none(p) for p in parameters or () if p.kind is p.VAR_POSITIONAL]
    if (places or others) and all(places + others):
        return "call", ()
    if others and any(places + others):
        raise InvalidFunction(
            f"{label} takes any number of inputs, only some of which may be None",
            detail="say on_null='call' or on_null='null'",
        )
    return "null", tuple(n for n, may_be in enumerate(places) if may_be)


def read_made(label: str, parameters: Parameters | None, kind: Kind) -> dict[str, Any]:
    """The annotations of parameters of whose values something is made, by name."""
    found: dict[str, Any] = {}
    if kind != "scalar":
        return found
    for each in parameters or ():
        if each.annotation is each.empty:
            continue
        try:
            is_made = find_converter(each.annotation) is not None
        except NoSuchValues as error:
            raise InvalidFunction(
                f"parameter {each.name} of {label} cannot be given: {error}", detail=REMEDY
            ) from error
        if is_made:
            found[each.name] = each.annotation
    return found


def _may_be_none(parameter: inspect.Parameter) -> bool:
    """Whether None is a value that the annotation allows; without one it is not."""
    told = parameter.annotation
    if isinstance(told, str):
        # It names what cannot be looked up, as what is imported for type checkers only.
        return "None" in told or "Optional" in told
    return parameter.default is None or allows_none(told)


def find_returned(call: Callable[..., Any], kind: Kind) -> Any:
    """The annotation of its result, where that is a column's type."""
    found = without_none(_hints(find_called(call, "it")).get("return"))
    if found is None or found is Any or kind != "scalar":
        return None
    if typing.get_origin(found) in ITERABLES[:6]:
        raise InvalidFunction(
            f"{getattr(call, '__name__', 'it')} returns several rows",
            detail="use @penstock.chunker, or return a list",
        )
    return found


def find_row(call: Callable[..., Any]) -> Any:
    """The TypedDict or dataclass of the rows that it yields, by its annotation; None without."""
    found = without_none(_hints(find_called(call, "it")).get("return"))
    if typing.get_origin(found) in ITERABLES:
        found = typing.get_args(found)[0]
    if typing.get_origin(found) is tuple:
        found = typing.get_args(found)[-1]
    return found if is_record(found) else None


def _check_made(call: type, label: str) -> None:
    """Check that a worker can create the instance without arguments."""
    try:
        made = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return
    needed = [
        p.name
        for p in made
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if needed:
        raise InvalidFunction(
            f"class {label} needs {needed[0]!r} to be made, and workers make it without arguments",
            detail="give it a default",
        )


def _hints(target: Callable[..., Any]) -> dict[str, Any]:
    """Resolved annotations; unresolvable ones stay unknown."""
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError, AttributeError):
        told = getattr(target, "__annotations__", None) or {}
    found: dict[str, Any] = {}
    # One by one: what is imported for type checkers only need not be there.
    for name, annotation in told.items():
        alone = SimpleNamespace(__annotations__={name: annotation})
        with contextlib.suppress(NameError, TypeError, AttributeError, SyntaxError):
            names = getattr(target, "__globals__", {})
            found |= typing.get_type_hints(alone, names, include_extras=True)
    return found


def _arrow_name(annotation: Any) -> str | None:
    plain = without_none(annotation)
    if getattr(plain, "__module__", "").startswith("pyarrow"):
        return str(getattr(plain, "__name__", ""))
    return None
