"""Random statements that Lance may answer alone, over a table of values that engines dispute."""

import datetime
import math
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

ROWS = 200
WIDTHS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, None, 1.5, 0.1, -1.5]
TEXTS = ["", "a", "A", "é", "e\u0301", "ß", None, "a%b", "a_b", "a\\b", "a'b", 'a"b', "a\nb",
         "日本", "😀", "\uff5e", " a", "a ", "\x00", "NULL", "%", "_", "İ", "ﬀ"]  # fmt: skip
DATES = ["1970-01-01", "0001-01-01", "9999-12-31", "2024-02-29", "1582-10-04", "1969-12-31",
         "1900-01-01", "2000-01-01", None]  # fmt: skip
COLUMNS = {
    "int": (*WIDTHS, "place.x", "`null`"),
    "float": ("f32", "f64", "place.f"),
    "text": ("s", "`large`", "`a b`", "place.`y z`", "S", "`select`"),
    "date": ("d", "`date`"),
    "time": ("t", "tz"),
    "bool": ("b", "B2"),
}
CONSTANTS = {
    "int": ("0", "-1", "7", "127", "128", "-129", "32768", "2147483647", "2147483648",
            "-2147483648", "9223372036854775807", "-9223372036854775808", "007", "7S", "1L", "+1",
            "- 1", "--1\n1", "-(-1)", "1.0", "1e0", "'7'", "CAST(7 AS INT)"),
    "float": ("0.0", "-0.0", "1.5", "1.5D", "0.1F", "CAST('NaN' AS DOUBLE)", "1"),
    "text": ("''", "'a'", "'é'", "'a%b'", "'a''b'", "'a\\'b'", '"a"', "'a' 'b'", "r'a\\b'",
             "'\\u0061'", "'日本'", "'😀'", "'a '", "'NULL'", "'%'", "'\uff5e'", "1"),
    "date": ("DATE '1970-01-01'", "DATE'2024-02-29'", "DATE '1582-10-04'", "DATE '2000-01-01'",
             "CAST('2000-01-01' AS date)", "'1970-01-01'", "DATE '2024-2-9'", "DATE '1900-01-01'"),
    "time": ("TIMESTAMP '1970-01-01 00:00:00'", "TIMESTAMP_NTZ '1970-01-01'", "'1970-01-01'",
             "DATE '1970-01-01'"),
    "bool": ("true", "FALSE"),
}  # fmt: skip
PATTERNS = ("''", "'%'", "'_'", "'a%'", "'%a%'", "'a_b'", "'__'", "'%b'", "'é'", "'😀'", "'%_%'",
            "'日_'", "'a\\\\%b'", "'a#%b' ESCAPE '#'", "'%\n%'")  # fmt: skip
COMPARED = ("=", "<>", "!=", "<", "<=", ">", ">=", "==", "<=>")
BETWEEN_WORDS = (*[" "] * 9, "/* x */", "\n", " -- x\n", "\t")


def make_table(chance: random.Random) -> pa.Table:
    """The table `t` of the statements."""

    def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([chance.choice(values) for _ in range(ROWS)], kind)

    def bounds(bits: int) -> list[int | None]:
        return [0, 1, -1, 7, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), None]

    dates = [None if each is None else datetime.date.fromisoformat(each) for each in DATES]
    times = [each and datetime.datetime(each.year, each.month, each.day, 12) for each in dates]
    place = {"x": pa.int32(), "y z": pa.string(), "f": pa.float64()}
    places = [None, *({"x": 7, "y z": text, "f": number} for text, number in zip(TEXTS, FLOATS * 3,
              strict=False))]  # fmt: skip
    return pa.table(
        {
            "rid": pa.array(range(ROWS), pa.int64()),
            **{n: column(bounds(bits), getattr(pa, f"int{bits}")()) for n, bits in WIDTHS.items()},
            "null": column(bounds(32), pa.int32()),
            "f32": column(FLOATS, pa.float32()),
            "f64": column(FLOATS, pa.float64()),
            **{name: column(TEXTS, pa.string()) for name in ("s", "a b", "select")},
            "large": column(TEXTS, pa.large_string()),
            "d": column(dates, pa.date32()),
            "date": column(dates, pa.date32()),
            "t": column(times, pa.timestamp("us")),
            "tz": column(times, pa.timestamp("us", "UTC")),
            **{name: column([True, False, None], pa.bool_()) for name in ("b", "b2")},
            "place": column(places, pa.struct(list(place.items()))),
            # Names that are expressions, too.
            **{name: column(["COLUMN"], pa.string()) for name in ("true", "cast(7 as int)", "'a'")},
        }
    )


class Statements:
    """Random statements over `t`; many are more than Lance answers."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def make(self) -> str:
        pick = self._chance.choice
        where = f" WHERE{self._space()}{self._condition(0)}" if pick((True, True, False)) else ""
        if pick((True, False, False, False)):
            return f"SELECT count(*) AS n FROM t{where}"
        outputs = ["rid", *(f"{self._output()} AS c{n}" for n in range(pick(range(4))))]
        return f"SELECT{self._space()}{', '.join(outputs)} FROM {pick(('t', 'T', '`t`'))}{where}"

    def _output(self) -> str:
        return self._condition(1) if self._chance.random() < 0.3 else self._value(self._kind(), 0)

    def _condition(self, depth: int) -> str:
        pick, kind = self._chance.choice, self._kind()
        shape = pick(("both", "not", "compare", "compare", "compare", "in", "between", "null",
                      "like", "bool"))  # fmt: skip
        if depth > 3 and shape in ("both", "not"):
            shape = "null"
        first = self._value(kind, depth)
        if shape == "both":
            word = pick(("AND", "OR", "and"))
            parts = f"{self._condition(depth + 1)}{self._space()} {word} "
            return f"({parts}{self._condition(depth + 1)})"
        if shape == "not":
            return f"NOT ({self._condition(depth + 1)})"
        if shape == "in":
            some = ", ".join(pick(CONSTANTS[kind]) for _ in range(pick((1, 2, 3))))
            return f"{first} {pick(('IN', 'NOT IN'))} ({some})"
        if shape == "between":
            low, high = self._value(kind, depth), self._value(kind, depth)
            return f"{first} {pick(('BETWEEN', 'NOT BETWEEN'))} {low} AND {high}"
        if shape == "null":
            return f"{self._column(kind)} IS {pick(('NULL', 'NOT NULL'))}"
        if shape == "like":
            text = self._value("text", depth)
            return f"{text} {pick(('LIKE', 'NOT LIKE'))} {pick(PATTERNS)}"
        if shape == "bool":
            return self._value("bool", depth)
        return f"{first}{self._space()}{pick(COMPARED)}{self._space()}{self._value(kind, depth)}"

    def _value(self, kind: str, depth: int) -> str:
        pick, part = self._chance.choice, self._chance.random()
        if part < 0.55 or depth > 2:
            return self._column(kind)
        if part < 0.8 or kind in ("date", "time", "bool"):
            return str(pick(CONSTANTS[kind]))
        one, other = self._value(kind, depth + 1), self._value(kind, depth + 1)
        if kind == "text":
            return str(pick((f"({one} || {other})", f"concat({one}, {other}, '')",
                             f"coalesce({one}, {other})")))  # fmt: skip
        if kind == "float":
            return str(pick((f"({one} * {other})", f"({one} + {other})", f"-{self._column(kind)}",
                             f"CAST({one} AS DOUBLE)", f"coalesce({one}, {other})")))  # fmt: skip
        return str(pick((f"length({self._value('text', 2)})", f"CAST({one} AS BIGINT)",
                         f"coalesce({one}, {other})", f"-{self._column(kind)}")))  # fmt: skip

    def _column(self, kind: str) -> str:
        return self._chance.choice(("", "", "", "t.", "T.")) + self._chance.choice(COLUMNS[kind])

    def _kind(self) -> str:
        return self._chance.choice(("int", "int", "int", "text", "text", "text", *COLUMNS))

    def _space(self) -> str:
        return self._chance.choice(BETWEEN_WORDS)
