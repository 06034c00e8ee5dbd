"""What a pickle says, read without running any of it: nothing is looked up, made or called.

Objects become `Made`, which tells by what they would be made. Everything here is pure.
"""

import pickletools
from dataclasses import dataclass, field
from typing import Any

# Reading is quick, but done for a request: so many steps take some ten milliseconds.
MAX_STEPS = 20_000

_MARK = object()
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT")
_TEXTS = ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
_BYTES = ("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8")
_EMPTY = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": list}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_PUT, _GET = ("PUT", "BINPUT", "LONG_BINPUT"), ("GET", "BINGET", "LONG_BINGET")


class Unreadable(Exception):
    """The pickle is broken, too long, or does what no pickle of a function does."""


@dataclass(frozen=True, slots=True)
class Named:
    """A class or function that the pickle names."""

    module: str
    name: str


@dataclass(slots=True)
class Made:
    """An object: what it would be made by, of which values, and what is set in it then."""

    by: Any
    values: Any
    state: dict[Any, Any] = field(default_factory=dict)


def parse_pickle(content: bytes) -> Any:
    """The value that a pickle describes; bytes in it are left out."""
    try:
        return _Reader().read(content)
    # The generator raises many kinds of errors for what is no pickle.
    except Unreadable:
        raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise Unreadable(str(error)) from error


class _Reader:
    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def read(self, content: bytes) -> Any:
        for step, (opcode, argument, _) in enumerate(pickletools.genops(content)):
            if step >= MAX_STEPS:
                raise Unreadable(f"it has more than {MAX_STEPS} steps")
            if opcode.name == "STOP":
                return self._stack.pop()
            self._take(opcode.name, argument)
        raise Unreadable("it has no end")

    def _take(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _NUMBERS or name in _TEXTS:
            stack.append(argument)
        elif name in _BYTES:
            stack.append(b"")
        elif name == "MARK":
            stack.append(_MARK)
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in _PUT:
            self._memo[argument] = stack[-1]
        elif name in _GET:
            stack.append(self._memo[argument])
        elif name not in ("PROTO", "FRAME"):
            self._make(name, argument)

    def _make(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name == "TUPLE":
            stack.append(tuple(self._since_mark()))
        elif name in ("LIST", "FROZENSET"):
            stack.append(self._since_mark())
        elif name in ("APPENDS", "ADDITEMS"):
            found = self._since_mark()
            stack[-1].extend(found)
        elif name == "APPEND":
            last = stack.pop()
            stack[-1].append(last)
        elif name in ("SETITEMS", "SETITEM", "DICT"):
            self._set_items(name)
        elif name == "GLOBAL":
            stack.append(Named(*argument.split(" ", 1)))
        elif name == "STACK_GLOBAL":
            last = stack.pop()
            stack.append(Named(stack.pop(), last))
        elif name in ("REDUCE", "NEWOBJ", "NEWOBJ_EX"):
            more = stack.pop() if name == "NEWOBJ_EX" else {}
            values = stack.pop()
            stack.append(Made(stack.pop(), values, dict(more)))
        elif name == "BUILD":
            self._build(stack.pop())
        elif name in ("POP", "POP_MARK", "DUP"):
            self._drop_or_double(name)
        else:
            raise Unreadable(f"it has the step {name}")

    def _since_mark(self) -> list[Any]:
        place = len(self._stack) - 1
        while self._stack[place] is not _MARK:
            place -= 1
        found = self._stack[place + 1 :]
        del self._stack[place:]
        return found

    def _set_items(self, name: str) -> None:
        found = self._stack[-2:] if name == "SETITEM" else self._since_mark()
        if name == "SETITEM":
            del self._stack[-2:]
        elif name == "DICT":
            self._stack.append({})
        target = self._stack[-1]
        # Objects may take items as well; what matters here is none.
        if isinstance(target, dict):
            pairs = zip(found[::2], found[1::2], strict=True)
            target.update((key, value) for key, value in pairs if isinstance(key, str))

    def _build(self, state: Any) -> None:
        target = self._stack[-1]
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(target, Made) and isinstance(part, dict):
                target.state.update(part)

    def _drop_or_double(self, name: str) -> None:
        if name == "DUP":
            self._stack.append(self._stack[-1])
        elif name == "POP":
            self._stack.pop()
        else:
            self._since_mark()
