"""Every type of Arrow's with values of it, and nests of them: what a client may send."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

DAY = datetime.date(2020, 2, 29)
MOMENT = datetime.datetime(2020, 2, 29, 1, 2, 3)
TIMES: tuple[tuple[str, Any], ...] = (
    ("s", pa.time32),
    ("ms", pa.time32),
    ("us", pa.time64),
    ("ns", pa.time64),
)


class Case(NamedTuple):
    name: str
    type: Any
    values: list[Any]

    def make(self, rows: int, *, nulls: bool = True) -> pa.Array:
        """So many rows, every third of them null, with an offset into a longer array."""
        values = [
            None if nulls and i % 3 == 2 else self.values[i % len(self.values)]
            for i in range(rows + 1)
        ]
        return build(values, self.type)[1:]


def build(values: list[Any], kind: Any) -> pa.Array:
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(pa.array(values, kind.value_type))
    return pa.array(values, kind)


def list_leaves() -> Iterator[Case]:
    yield Case("null", pa.null(), [None])
    yield Case("bool", pa.bool_(), [True, False])
    for signed in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        yield Case(str(signed), signed, [-1, 0, 2])
    for unsigned in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        yield Case(str(unsigned), unsigned, [0, 255])
    for number in (pa.float16(), pa.float32(), pa.float64()):
        yield Case(str(number), number, [1.5, -2.0])
    for text in (pa.string(), pa.large_string(), pa.string_view()):
        yield Case(str(text), text, ["a", "", "x" * 40, "ü"])
    for raw in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield Case(str(raw), raw, [b"a", b"", b"x" * 40])
    yield Case("binary3", pa.binary(3), [b"abc"])
    for decimal, digits in (("32", 5), ("64", 12), ("128", 20), ("256", 50)):
        kind = getattr(pa, f"decimal{decimal}")(digits, 2)
        yield Case(f"decimal{decimal}", kind, [Decimal("1.20"), Decimal("-3.04")])
    yield Case("date32", pa.date32(), [DAY])
    yield Case("date64", pa.date64(), [DAY])
    for unit, make in TIMES:
        yield Case(f"time_{unit}", make(unit), [MOMENT.time()])
        yield Case(f"timestamp_{unit}", pa.timestamp(unit), [MOMENT])
        yield Case(f"duration_{unit}", pa.duration(unit), [datetime.timedelta(seconds=5)])
    yield Case("timestamp_utc", pa.timestamp("us", "UTC"), [MOMENT])
    yield Case("dictionary", pa.dictionary(pa.int8(), pa.string()), ["a", "b"])
    yield Case("dictionary_int", pa.dictionary(pa.int32(), pa.int64()), [1, 2])
    yield Case("run_ends", pa.run_end_encoded(pa.int32(), pa.string()), ["a", "a", "b"])


def nest(case: Case) -> Iterator[Case]:
    """The type inside every kind of nest."""
    name, kind, values = case
    lists = [values, [], values * 2]
    yield Case(f"list<{name}>", pa.list_(kind), lists)
    yield Case(f"large_list<{name}>", pa.large_list(kind), lists)
    yield Case(f"list_view<{name}>", pa.list_view(kind), lists)
    yield Case(f"large_list_view<{name}>", pa.large_list_view(kind), lists)
    yield Case(f"fixed<{name}>", pa.list_(kind, 2), [[values[0], values[-1]]])
    fields = [pa.field("a", kind), pa.field("b", pa.int8())]
    yield Case(f"struct<{name}>", pa.struct(fields), [{"a": v, "b": 1} for v in values])
    yield Case(f"map<{name}>", pa.map_(pa.string(), kind), [[("k", v)] for v in values])


def list_cases(depth: int) -> list[Case]:
    """All types that are nested so deep; Arrow can't build nests of run-end encoded values."""
    found = list(list_leaves())
    for _ in range(depth):
        inner = [case for case in found if not pa.types.is_run_end_encoded(case.type)]
        found = [each for case in inner for each in nest(case)]
    return found
