"""What annotations make of columns' values, and of what functions return: packed by the SDK."""

import base64
import dataclasses
import datetime
import decimal
import enum
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.jobs.functions.results import BadResult, from_list
from penstock.sdk.functions.packing import pack_udf
from penstock.sdk.functions.types import to_arrow
from tests.harness.jobs.kernel import Bench, bench

UTC = datetime.UTC
DAY, CLOCK = datetime.date(2026, 2, 3), datetime.time(4, 5, 6, 7)
NAIVE = datetime.datetime.combine(DAY, CLOCK)
AWARE = NAIVE.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
SPAN = datetime.timedelta(days=1, microseconds=5)
ID = uuid.UUID("12345678-1234-5678-1234-567812345678")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


@dataclasses.dataclass
class Shape:
    name: str
    color: Color | None
    points: list[Point]
    id: uuid.UUID | None = None


class Facts(TypedDict):
    size: int
    kind: Color
    middle: Annotated[list[float], penstock.vector(2)]


def fill(folder: Path, function: Any, data: Any, **more: Any) -> Bench:
    """A table whose column, or columns, the function fills, as the SDK declares it."""
    content = base64.b64decode(pack_udf(function, function.inputs))
    outputs = more.pop("outputs", None) or {"value": to_arrow(function.data_type)}
    table = bench(
        *(folder, pa.table(data), None, function.inputs, outputs),
        content=content,
        kind=function.kind,
        fragments=1,
        on_null=function.on_null,
        **more,
    )
    assert table.run() is None
    return table


@pytest.mark.parametrize(
    ("kind", "values", "arrow"),
    [
        (decimal.Decimal, [decimal.Decimal("1.50"), decimal.Decimal(-3)], pa.decimal128(38, 18)),
        (datetime.date, [DAY], pa.date32()),
        (datetime.datetime, [NAIVE], pa.timestamp("us")),
        (datetime.time, [CLOCK], pa.time64("us")),
        (datetime.timedelta, [SPAN, -SPAN], pa.duration("us")),
        (Annotated[datetime.datetime, "timestamp[us, tz=UTC]"], [AWARE], pa.timestamp("us", "UTC")),
        (Color, [Color.RED, Color.BLUE], pa.string()),
        (Level, [Level.HIGH], pa.int64()),
        (uuid.UUID, [ID], pa.string()),
        (list[Color], [[Color.RED, None], []], pa.list_(pa.string())),
        (tuple[float, ...], [(1.0, 2.0)], pa.list_(pa.float64())),
        (Point, [Point(1), Point(2, 1.5)], pa.struct([("x", pa.int64()), ("y", pa.float64())])),
    ],
    ids=str,
)
def test_values_come_back_as_what_they_went_in(
    tmp_path: Path, kind: Any, values: list[Any], arrow: pa.DataType
) -> None:
    """What one function writes, another one of the same annotation reads."""

    def make(at: int) -> Any:
        return values[at]

    def check(given: Any, at: int) -> bool:
        wanted = values[at]
        return bool(given == wanted and type(given) is type(wanted))

    make.__annotations__ |= {"return": kind}
    check.__annotations__ |= {"given": kind}
    made = penstock.udf(make)
    assert to_arrow(made.data_type or {}) == arrow
    written = fill(tmp_path, made, {"at": range(len(values))}).values()
    data = {"given": pa.array(written, arrow), "at": range(len(values))}
    assert all(fill(tmp_path, penstock.udf(check), data).values())


def test_dataclasses_within_dataclasses_go_in_and_out(tmp_path: Path) -> None:
    @penstock.udf
    def mirror(shape: Shape) -> Shape:
        assert shape.color in (Color.RED, None)
        points = [Point(-each.x, each.y) for each in shape.points]
        return dataclasses.replace(shape, name=shape.name.upper(), points=points)

    shapes: list[dict[str, Any]] = [
        {"name": "a", "color": "red", "points": [{"x": 1, "y": 2.0}], "id": str(ID)},
        {"name": "b", "color": None, "points": [], "id": None},
    ]
    kind = to_arrow(mirror.data_type or {})
    found = fill(tmp_path, mirror, {"shape": pa.array([*shapes, None], kind)}).values()
    shapes[0] |= {"name": "A", "points": [{"x": -1, "y": 2.0}]}
    shapes[1] |= {"name": "B"}
    assert found == [*shapes, None]


def test_a_value_that_is_no_member_is_its_rows_failure(tmp_path: Path) -> None:
    @penstock.udf(on_error="skip")
    def paint(color: Color) -> str:
        return color.name

    data = {"color": ["red", "green", "blue"]}
    table = fill(tmp_path, paint, data, on_error={"action": "skip"})
    assert table.values() == ["RED", None, "BLUE"]
    assert [error.message for error in table.errors()] == ["'green' is not a valid Color"]


def test_arrays_of_numpy_are_given_as_such(tmp_path: Path) -> None:
    @penstock.udf
    def total(vector: np.ndarray[Any, Any]) -> float:
        return float(vector.sum())

    assert fill(tmp_path, total, {"vector": [[1.0, 2.0], None]}).values() == [3.0, None]


@pytest.mark.parametrize("returns", ["a dict", "a dataclass"])
def test_the_fields_of_a_row_are_columns(tmp_path: Path, returns: str) -> None:
    @dataclasses.dataclass
    class Found:
        size: int
        kind: Color

    def look(text: str) -> Any:
        if returns == "a dict":
            return {"size": len(text), "kind": Color.RED, "middle": [0.0, 1.0]}
        return Found(len(text), Color.BLUE)

    look.__annotations__["return"] = Facts if returns == "a dict" else Found
    function = penstock.udf(look)
    assert function.fields is not None
    outputs = {name: to_arrow(kind) for name, kind in function.fields.items()}
    table = fill(tmp_path, function, {"text": ["a", None, "ccc"]}, outputs=outputs)
    assert table.values("size") == [1, None, 3]
    word = "red" if returns == "a dict" else "blue"
    assert table.values("kind") == [word, None, word]
    if "middle" in outputs:
        assert outputs["middle"] == pa.list_(pa.float32(), 2)
        assert table.values("middle")[2] == [0.0, 1.0]


def test_chunkers_may_yield_dataclasses() -> None:
    @penstock.chunker
    def split(text: str) -> Iterator[Point]:
        yield Point(len(text))

    assert list(split.outputs) == ["x", "y"]


def test_zones_of_datetimes_are_those_of_the_column() -> None:
    utc = AWARE.astimezone(UTC)
    kinds = (pa.timestamp("us"), pa.timestamp("us", "UTC"))
    naive, aware = (from_list([AWARE, NAIVE], pa.field("c", kind)).to_pylist() for kind in kinds)
    assert naive == [utc.replace(tzinfo=None), NAIVE]
    assert aware == [utc, NAIVE.replace(tzinfo=UTC)]


@pytest.mark.parametrize(
    "kind", [pa.decimal128(38, 18), pa.list_(pa.decimal128(38, 18)), pa.decimal128(10, 2)]
)
def test_decimals_that_do_not_fit_are_refused(kind: pa.DataType) -> None:
    value = decimal.Decimal(10) ** 30
    with pytest.raises(BadResult):
        from_list([[value] if pa.types.is_list(kind) else value], pa.field("c", kind))
    with pytest.raises(BadResult):
        from_list([10**9 if kind.equals(pa.decimal128(10, 2)) else value], pa.field("c", kind))
