"""What annotations of parameters mean: whether None may come, and what is made of values.

A value of a column comes as plain Python: a number, a text, a list, a dict. Where a parameter says
that it is an enum, a dataclass, a UUID or an array of numpy, it is made one. The SDK reads
annotations when a function is declared, workers before they call it. Pure.
"""

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import sys
import types
import typing
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

Convert = Callable[[Any], Any]

# What values of columns are as they come.
PLAIN = (
    *(bool, int, float, str, bytes, list, dict),
    *(datetime.date, datetime.time, datetime.timedelta, decimal.Decimal),
)
LISTS = (
    *(list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection),
    collections.abc.MutableSequence,
)
REMEDY = (
    "use a Python type (int, str, list[float], datetime, Decimal, UUID), an Enum, a dataclass or a "
    "TypedDict of such, or leave the annotation out"
)


class NoSuchValues(TypeError):
    """No column has values of an annotation, nor of what could be made one."""


def allows_none(annotation: Any) -> bool:
    """Whether None is among the values."""
    if annotation is Any or annotation is object or annotation in (None, type(None)):
        return True
    if typing.get_origin(annotation) is typing.Annotated:
        return allows_none(typing.get_args(annotation)[0])
    return is_union(annotation) and any(map(allows_none, typing.get_args(annotation)))


def without_none(annotation: Any) -> Any:
    """`int` for `int | None`; other unions stay."""
    if is_union(annotation):
        rest = [part for part in typing.get_args(annotation) if part is not type(None)]
        if len(rest) == 1:
            return rest[0]
    return annotation


def is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def plain(annotation: Any) -> Any:
    """What an annotation says of the value itself, which is not None."""
    while True:
        if typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif (rest := without_none(annotation)) is not annotation:
            annotation = rest
        else:
            return annotation


def find_converter(annotation: Any, inside: tuple[Any, ...] = ()) -> Convert | None:
    """How a column's value becomes one of the annotation; None where it is one as it comes.

    Raises NoSuchValues where no value of a column could be one. `inside` are the classes around it.
    """
    found = plain(annotation)
    if found in inside:
        raise NoSuchValues(f"{show(found)} is inside itself")
    convert = _find(found, (*inside, found))
    # What is inside a list or a struct may be null whatever is said.
    return None if convert is None else lambda v: None if v is None else convert(v)


def list_classes(annotation: Any, inside: tuple[Any, ...] = ()) -> Iterator[type]:
    """The classes that an annotation names, and those of their fields."""
    found = plain(annotation)
    if found in inside:
        raise NoSuchValues(f"{show(found)} is inside itself")
    if isinstance(found, type) and typing.get_origin(found) is None:
        yield found
        for field in list_fields(found).values():
            yield from list_classes(field, (*inside, found))
    for part in typing.get_args(found):
        yield from list_classes(part, inside)


def is_record(annotation: Any) -> bool:
    """Whether it has fields: a TypedDict, or a dataclass."""
    is_dataclass = isinstance(annotation, type) and dataclasses.is_dataclass(annotation)
    return is_dataclass or typing.is_typeddict(annotation)


def show(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else repr(annotation)


def read_enum(found: type[enum.Enum]) -> type:
    """The type that the values of all members have."""
    kinds = {type(member.value) for member in found}
    for kind in (str, int):
        if kinds and all(issubclass(each, kind) and each is not bool for each in kinds):
            return kind
    raise NoSuchValues(f"the values of {show(found)} are neither all texts nor all whole numbers")


def _find(found: Any, inside: tuple[Any, ...]) -> Convert | None:
    origin, arguments = typing.get_origin(found), typing.get_args(found)
    if origin in LISTS:
        item = find_converter(arguments[0], inside)
        return None if item is None else partial(_convert_all, list, item)
    if origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        item = find_converter(arguments[0], inside)
        return tuple if item is None else partial(_convert_all, tuple, item)
    if isinstance(origin, type) and origin not in (dict, type, types.UnionType):
        # Arrays of numpy with the type of their values, classes with parameters, sets.
        return None if _is_abstract(origin) else _find_class(origin, inside)
    if isinstance(found, type) and origin is None:
        return _find_class(found, inside)
    return None


def _convert_all(into: Callable[[Any], Any], item: Convert, values: Any) -> Any:
    return into(map(item, values))


def _find_class(found: type, inside: tuple[Any, ...]) -> Convert | None:
    if issubclass(found, enum.Enum):
        read_enum(found)
        return found
    if typing.is_typeddict(found):
        return _find_fields(found, inside)
    if dataclasses.is_dataclass(found):
        convert = _find_fields(found, inside)
        names = {field.name for field in dataclasses.fields(found) if field.init}

        def make(value: Any) -> Any:
            given = value if convert is None else convert(value)
            return found(**{name: given[name] for name in given if name in names})

        return make
    if issubclass(found, uuid.UUID):
        return _to_uuid
    if found.__module__ == "numpy":
        # Its class is here, so its module is.
        return sys.modules["numpy"].asarray if found.__name__ == "ndarray" else None
    if found is object or issubclass(found, PLAIN) or _is_abstract(found):
        return None
    raise NoSuchValues(f"no column has values of type {show(found)}")


def _find_fields(found: type, inside: tuple[Any, ...]) -> Convert | None:
    converters: dict[str, Convert] = {}
    for name, annotation in list_fields(found).items():
        try:
            convert = find_converter(annotation, inside)
        except NoSuchValues as error:
            raise NoSuchValues(f"field {name} of {show(found)}: {error}") from error
        if convert is not None:
            converters[name] = convert
    if not converters:
        return None

    def change(value: Any) -> Any:
        changed = {k: make(value[k]) for k, make in converters.items() if k in value}
        return {**value, **changed}

    return change


def list_fields(found: type) -> dict[str, Any]:
    """The fields of a dataclass or a TypedDict, with their annotations; none of other classes."""
    if not is_record(found):
        return {}
    try:
        hints = typing.get_type_hints(found, include_extras=True)
    except NameError as error:
        raise NoSuchValues(f"the annotations of {show(found)} name {error.name!r}") from error
    if typing.is_typeddict(found):
        return {name: _of_key(each) for name, each in hints.items()}
    return {field.name: hints[field.name] for field in dataclasses.fields(found)}


def _of_key(annotation: Any) -> Any:
    """Without `Required` and `NotRequired`."""
    is_marked = typing.get_origin(annotation) in (typing.Required, typing.NotRequired)
    return typing.get_args(annotation)[0] if is_marked else annotation


def _is_abstract(found: type) -> bool:
    """Whether a class only says what one can do with a value."""
    return found.__module__ in ("collections.abc", "typing", "abc", "numbers") or bool(
        getattr(found, "_is_protocol", False)
    )


def _to_uuid(value: Any) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    return uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(value)
