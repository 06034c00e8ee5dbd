"""A function's version, derived from its code: the same for the same code, however it is pickled.

It is a hash of the syntax tree, so comments and layout don't matter; of what the code refers to in
the user's own modules (functions, classes, constants); and of what it closes over. The decorator
does not count: another timeout is no other function. Installed packages count only by name.
"""

import ast
import functools
import hashlib
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from penstock.sdk.functions.modules import is_own

LENGTH = 16
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
PLAIN = (str, bytes, int, float, complex, bool, type(None))


def find_version(call: Callable[..., Any], told: str = "", classes: Sequence[type] = ()) -> str:
    """A few digits that change with the code, with what is told of how it is called, and with the
    classes of what it is given."""
    digest, seen = hashlib.sha256(told.encode()), set[int]()
    for line in chain(_describe(call, seen), *(_describe(each, seen) for each in classes)):
        digest.update(line.encode() + b"\x00")
    return digest.hexdigest()[:LENGTH]


def _describe(found: Any, seen: set[int]) -> Iterator[str]:
    """Everything that identifies this piece of code, as text."""
    if isinstance(found, PLAIN):
        yield repr(found)
        return
    if id(found) in seen:
        return
    seen.add(id(found))
    if isinstance(found, list | tuple | set | frozenset | dict):
        yield from _describe_container(found, seen)
    elif isinstance(found, functools.partial):
        yield from _describe(found.func, seen)
        yield from _describe((found.args, found.keywords), seen)
    elif isinstance(found, types.MethodType):
        yield from _describe(found.__func__, seen)
        yield from _describe(found.__self__, seen)
    elif isinstance(found, types.FunctionType):
        yield from _describe_function(found, seen)
    elif isinstance(found, type) and is_own(found.__module__):
        yield _read_source(found) or found.__qualname__
        for member in vars(found).values():
            inner = getattr(member, "__func__", member)
            if isinstance(inner, types.FunctionType):
                yield from _describe_function(inner, seen, with_source=False)
    elif isinstance(inner := getattr(found, "call", None), types.FunctionType | type):
        # One of our own wrappers around a function.
        yield from _describe(inner, seen)
    elif is_own(type(found).__module__):
        yield from _describe(type(found), seen)
        yield from _describe(getattr(found, "__dict__", None), seen)
    else:
        kind = found if isinstance(found, type) or hasattr(found, "__qualname__") else type(found)
        yield f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', repr(kind))}"


def _describe_container(found: Any, seen: set[int]) -> Iterator[str]:
    yield type(found).__name__
    items = found.items() if isinstance(found, dict) else found
    if isinstance(found, set | frozenset):
        items = sorted(found, key=repr)
    for item in items:
        yield from _describe(item, seen)


def _describe_function(
    found: types.FunctionType, seen: set[int], *, with_source: bool = True
) -> Iterator[str]:
    if not is_own(found.__module__):
        yield f"{found.__module__}.{found.__qualname__}"
        return
    if with_source:
        yield _read_source(found) or repr(list(_list_code(found.__code__)))
    names = set(_list_names(found.__code__))
    for name in sorted(names & found.__globals__.keys()):
        yield name
        yield from _describe_value(found.__globals__[name], seen)
    for cell in found.__closure__ or ():
        try:
            yield from _describe_value(cell.cell_contents, seen)
        except ValueError:
            continue
    yield from _describe_value(found.__defaults__, seen)


def _describe_value(found: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(found, types.ModuleType):
        yield found.__name__
    else:
        yield from _describe(found, seen)


def _read_source(found: Any) -> str | None:
    """The syntax tree without docstrings and decorators, as text."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(found)))
    except (OSError, TypeError, SyntaxError):
        return None
    if not tree.body or not isinstance(tree.body[0], DEFINITIONS):
        # A lambda's line may contain anything.
        return None
    tree.body[0].decorator_list = []
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def _list_code(code: types.CodeType) -> Iterator[str]:
    """What a compiled function does, without its place."""
    yield code.co_code.hex()
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _list_code(constant)
        else:
            yield repr(constant)


def _list_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _list_names(constant)
