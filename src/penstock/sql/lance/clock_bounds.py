"""Times that are a fixed way from the clock, such as `now() - INTERVAL 7 DAYS`.

A bound is the clock and steps from it that `model/moments.py` takes as Spark does, in UTC.
"""

from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
MONTHS = {"MONTH": 1, "YEAR": 12}
# Lance reads times of other centuries in another way.
MAX_YEARS = 100
MAX_STEPS = 8


@dataclass(frozen=True, slots=True)
class ClockBound:
    kind: Literal["timestamp", "date"]
    steps: tuple[str, ...] = ()

    def add(self, step: str) -> "ClockBound":
        return replace(self, steps=(*self.steps, step))

    def to_day(self, kind: Literal["timestamp", "date"] = "date") -> "ClockBound":
        """The midnight before."""
        return ClockBound(kind, (*self.steps, "d"))


def find_bound(node: exp.Expr) -> ClockBound | None:
    """The bound that an expression of Spark's stands for; None when it is anything else."""
    found = _find(node, 0)
    return found if found is not None and _is_near(found) else None


def _find(node: exp.Expr, depth: int) -> ClockBound | None:
    if depth > MAX_STEPS:
        return None
    match node:
        case exp.CurrentDate(this=None):
            return ClockBound("date", ("d",))
        case exp.CurrentTimestamp(this=None) | exp.Localtimestamp(this=None):
            return ClockBound("timestamp")
        case exp.Paren():
            return _find(node.this, depth + 1)
        case exp.Add() | exp.Sub():
            inner = _find(node.this, depth + 1)
            sign = -1 if isinstance(node, exp.Sub) else 1
            return None if inner is None else _shift(inner, node.expression, sign)
        case exp.TsOrDsAdd():
            # date_add and date_sub take the date of a timestamp.
            inner, days = _find(node.this, depth + 1), _read_int(node.expression)
            if inner is None or days is None or _unit(node) != "DAY":
                return None
            return inner.to_day().add(f"u{days * MICROS['DAY']}")
        case exp.Cast() | exp.TryCast() | exp.TsOrDsToDate():
            wanted = node.args.get("to")
            is_date = wanted is None or wanted.this is exp.DType.DATE
            inner = _find(node.this, depth + 1)
            return inner.to_day() if inner and is_date and not node.args.get("format") else None
        case exp.TimestampTrunc() if _unit(node) == "DAY":
            inner = _find(node.this, depth + 1)
            return None if inner is None else inner.to_day("timestamp")
    return None


def _shift(bound: ClockBound, by: exp.Expr, sign: int) -> ClockBound | None:
    """A bound plus or minus an interval, or a date plus or minus days."""
    if not isinstance(by, exp.Interval):
        days = _read_int(by)
        if bound.kind != "date" or days is None:
            return None
        return bound.add(f"u{sign * days * MICROS['DAY']}")
    count, unit = _read_int(by.this), _unit(by)
    if count is None:
        return None
    if unit in MONTHS:
        return bound.add(f"m{sign * count * MONTHS[unit]}")
    # A date and an interval of hours make a timestamp.
    if unit not in MICROS or (bound.kind == "date" and unit != "DAY"):
        return None
    return bound.add(f"u{sign * count * MICROS[unit]}")


def _read_int(node: exp.Expr | None) -> int | None:
    """A whole number, also one that sqlglot has multiplied by -1."""
    match node:
        case exp.Literal():
            text = node.name.strip()
            return int(text) if text.lstrip("+-").isdecimal() and len(text) < 12 else None
        case exp.Neg():
            inner = _read_int(node.this)
            return None if inner is None else -inner
        case exp.Mul():
            left, right = _read_int(node.this), _read_int(node.expression)
            return None if left is None or right is None else left * right
    return None


def _unit(node: exp.Expr) -> str:
    unit = node.args.get("unit")
    name = unit.name.upper() if isinstance(unit, exp.Var | exp.Literal) else ""
    return name.removesuffix("S")


def _is_near(bound: ClockBound) -> bool:
    years = {"u": MICROS["DAY"] * 365, "m": 12, "d": 1}
    return sum(abs(int(step[1:] or 0)) / years[step[0]] for step in bound.steps) <= MAX_YEARS
