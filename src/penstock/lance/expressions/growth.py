"""Bound the size of an expression's values before anything is evaluated.

A size is a constant, plus a multiple of what each column of the row holds. All intermediate values
count together, because they can be in memory at the same time.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.lance.expressions import functions
from penstock.lance.expressions.tree import Call, Cast, Chain, Column, Constant, Node

# Per row, for all expressions of a request together: Lance evaluates 8,192 rows at once.
MAX_BYTES = 16_384
# How many times the size of a column.
MAX_TIMES = 64
# A pattern's length times its repetitions: what Lance has to compile for each batch.
MAX_PATTERN = 2_000
# The text form of a list's numbers and commas, relative to their size as numbers.
PRINTED = 4
NUMBER_BYTES = 64
# Where time depends on two texts: one may have any length only if the other is short.
MAX_COMPARED = 256

_COUNTED = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_REFERENCE = re.compile(r"[\\$]")
_SCALARS = re.compile(
    r"U?Int(8|16|32|64)|Float(16|32|64)|(Large)?(Utf8|Binary)|(Utf8|Binary)View|Boolean|Date(32|64)"
    r"|(Timestamp|Time32|Time64|Duration)\([^()\[\]]{1,60}\)"
    r"|Timestamp\([a-zA-Z]+, ?Some\([^()]*\)\)"
    r"|Decimal(128|256)\(\d{1,2}, ?-?\d{1,2}\)"
)


class Unbounded(Exception):
    """A value can be larger than allowed; the message says which and what to do."""


@dataclass(slots=True)
class Size:
    bytes: int = 0
    times: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "Size") -> "Size":
        return Size(self.bytes + other.bytes, self.times + other.times)

    def __mul__(self, factor: int) -> "Size":
        grown = {name: times * factor for name, times in self.times.items()}
        return Size(self.bytes * factor, Counter(grown))


class Budget:
    """How much the expressions of one request may make from a row."""

    def __init__(self) -> None:
        self._spent = Size()

    def spend(self, node: Node) -> None:
        """Count the size of a node; raises when that is too much."""
        self._measure(node)

    def _measure(self, node: Node) -> Size:
        match node:
            case Column(name):
                return Size(0, Counter({name: 1}))
            case Constant(_, size):
                return Size(size)
            case Cast(value):
                grown = self._measure(value) * (1 if isinstance(value, Constant) else PRINTED)
                return self._count("a cast", grown + Size(NUMBER_BYTES))
            case Chain():
                sizes = [self._measure(part) for part in node.operands]
                if node.computes:
                    return Size(FIXED)
                return self._count("||", sum(sizes, Size()))
            case Call():
                sizes = [self._measure(part) for part in node.arguments]
                return self._count(node.function, _grow(node, sizes))

    def _count(self, what: str, size: Size) -> Size:
        self._spent += size
        times = max(self._spent.times.values(), default=0)
        if self._spent.bytes > MAX_BYTES or times > MAX_TIMES:
            raise Unbounded(
                f"{what} would make up to {self._spent.bytes} bytes and {times} times a column's "
                f"value of each row; {MAX_BYTES} bytes and {MAX_TIMES} times are granted"
            )
        return size


FIXED = functions.FIXED_BYTES


def _grow(call: Call, sizes: list[Size]) -> Size:
    """The size of a function's value, from its arguments and their sizes."""
    name = call.function
    whole = sum(sizes, Size())
    if name in functions.FIXED:
        return Size(FIXED)
    if name in functions.SUM:
        return whole + Size(16 * len(sizes))
    if name in functions.TIMES:
        return whole * functions.TIMES[name] + Size(16)
    if name in RULES:
        return RULES[name](call, sizes)
    reason = functions.REFUSED.get(name, "Lance's SQL does not have it")
    raise Unbounded(f"the function {name} is not offered: {reason}")


def _repeat(call: Call, sizes: list[Size]) -> Size:
    return sizes[0] * _whole(call, 1) + Size(16) if sizes else Size()


def _pad(call: Call, sizes: list[Size]) -> Size:
    # Up to four bytes each, whatever the fill is.
    return sum(sizes, Size()) + Size(4 * _whole(call, 1))


def _series(call: Call, sizes: list[Size]) -> Size:
    numbers = [_whole(call, at, negative=True) for at in range(len(sizes))]
    if len(numbers) < 2:
        numbers = [0, *numbers, 0][:2]
    first, last, step = [*numbers[:3], 1][:3]
    return Size(8 * (2 + abs(last - first) // max(1, abs(step))))


def _replace(call: Call, sizes: list[Size]) -> Size:
    if len(sizes) < 3:
        return sum(sizes, Size())
    old, new = _text(call, 1), _text(call, 2)
    # An empty pattern matches before every character.
    factor = len(new.encode()) // max(1, len(old.encode())) + 1
    return sizes[0] * factor + Size(len(new.encode()))


def _replace_matches(call: Call, sizes: list[Size]) -> Size:
    _pattern(call, sizes)
    if len(sizes) < 3:
        return sum(sizes, Size())
    new = _text(call, 2)
    factor = len(new.encode()) + 1 + len(_REFERENCE.findall(new))
    return sizes[0] * factor + Size(len(new.encode()))


def _match(call: Call, sizes: list[Size]) -> Size:
    pattern = _pattern(call, sizes)
    return sizes[0] * (1 + pattern.count("(")) if sizes else Size()


def _search(call: Call, sizes: list[Size]) -> Size:
    _pattern(call, sizes)
    return Size(FIXED)


def _join(call: Call, sizes: list[Size]) -> Size:
    """concat_ws: the first argument goes between the others."""
    return sum(sizes, Size()) + (sizes[0] * len(sizes) if sizes else Size())


def _print(call: Call, sizes: list[Size]) -> Size:
    """array_to_string: numbers become text, with a separator and a text for null."""
    between = sum(len(_text(call, at)) for at in range(1, len(sizes)))
    return sizes[0] * (PRINTED + between) + Size(16) if sizes else Size()


def _replace_items(call: Call, sizes: list[Size]) -> Size:
    """array_replace: each item, of at least one byte, is replaced by a constant."""
    if len(sizes) < 3:
        return sum(sizes, Size())
    if not isinstance(call.arguments[2], Constant):
        raise Unbounded(f"{call.function} takes a constant as what it puts in")
    return sizes[0] * max(1, sizes[2].bytes // 4) + sizes[2]


def _format(call: Call, sizes: list[Size]) -> Size:
    return Size(32 * (1 + len(_text(call, 1)))) if len(sizes) > 1 else Size()


def _cast(call: Call, sizes: list[Size]) -> Size:
    kind = _text(call, 1) if len(sizes) > 1 else ""
    if not _SCALARS.fullmatch(kind):
        raise Unbounded(f"{call.function} to {kind!r} is not offered: name a type of single values")
    return sizes[0] * PRINTED + Size(NUMBER_BYTES)


def _field(call: Call, sizes: list[Size]) -> Size:
    # Lance uses the second argument without checking that it exists.
    if len(sizes) < 2:
        raise Unbounded("get_field takes a value and the name of a field in it")
    return sizes[0]


def _distance(call: Call, sizes: list[Size]) -> Size:
    if not any(isinstance(part, Constant) and part.size <= MAX_COMPARED for part in call.arguments):
        raise Unbounded(
            f"{call.function} takes time by both texts: make one a constant of at most "
            f"{MAX_COMPARED} characters"
        )
    return Size(FIXED)


def _pattern(call: Call, sizes: list[Size]) -> str:
    pattern = _text(call, 1) if len(sizes) > 1 else ""
    weight = max(1, len(pattern))
    for low, high in _COUNTED.findall(pattern):
        weight *= max(1, *(int(number[:6]) for number in (low, high) if number))
    if weight > MAX_PATTERN:
        raise Unbounded(f"the pattern of {call.function} is too large: repeat fewer parts in it")
    return pattern


def _whole(call: Call, at: int, *, negative: bool = False) -> int:
    """A literal integer."""
    part = call.arguments[at] if at < len(call.arguments) else None
    if isinstance(part, Chain) and part.operators == ("-",) and len(part.operands) == 1:
        part, sign = part.operands[0], -1
    else:
        sign = 1
    if isinstance(part, Constant) and isinstance(part.value, int):
        return part.value * sign if negative else max(0, part.value * sign)
    raise Unbounded(
        f"argument {at + 1} of {call.function} says how large its value is: write a whole number"
    )


def _text(call: Call, at: int) -> str:
    part = call.arguments[at]
    if isinstance(part, Constant) and isinstance(part.value, str):
        return part.value
    raise Unbounded(f"argument {at + 1} of {call.function} must be a text in quotes")


RULES: dict[str, Callable[[Call, list[Size]], Size]] = {
    "repeat": _repeat,
    "array_repeat": _repeat,
    "list_repeat": _repeat,
    "lpad": _pad,
    "rpad": _pad,
    "range": _series,
    "generate_series": _series,
    "replace": _replace,
    "regexp_replace": _replace_matches,
    "regexp_match": _match,
    "regexp_count": _search,
    "regexp_instr": _search,
    "regexp_like": _search,
    "concat_ws": _join,
    "to_char": _format,
    "date_format": _format,
    "arrow_cast": _cast,
    "arrow_try_cast": _cast,
    "get_field": _field,
    "levenshtein": _distance,
    **dict.fromkeys(("array_to_string", "array_join", "list_to_string", "list_join"), _print),
    **dict.fromkeys(
        (f"{kind}_replace{which}" for kind in ("array", "list") for which in ("", "_n", "_all")),
        _replace_items,
    ),
}
