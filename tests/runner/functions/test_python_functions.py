"""Functions as people write them in Python, from the decorator to the values, on real runners."""

import dataclasses
import datetime
import enum
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, TypedDict

import pytest

import penstock
from penstock.errors import InvalidRequest
from tests.harness.data.tables import new_name
from tests.harness.processes.runners import RunnerProcess
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.timeout(400)

TEXTS = ["one", None, "three", None]


@pytest.fixture
def lake(server: Server, runner: RunnerProcess) -> Iterator[penstock.Lake]:
    with penstock.connect(server.url) as found:
        yield found


@pytest.fixture
def docs(lake: penstock.Lake) -> penstock.Table:
    space = new_name()
    lake.create_namespace(space)
    return lake.create_table(f"{space}.docs", {"id": [1, 2, 3, 4], "text": TEXTS})


@penstock.udf
def size(text: str) -> int:
    return len(text)


@penstock.udf
def is_missing(text: str | None) -> bool:
    return text is None


class Kind(enum.Enum):
    SHORT = "short"
    LONG = "long"


@dataclasses.dataclass
class Line:
    sku: str
    price: Decimal
    kind: Kind | None = None


class Total(TypedDict):
    total: Annotated[Decimal, "decimal128(12, 2)"]
    kinds: list[Kind]


@penstock.udf
def add_up(lines: list[Line], day: datetime.date) -> Total:
    later = Decimal(day.day)
    kinds = [each.kind for each in lines if each.kind is not None]
    return {"total": sum((each.price for each in lines), later), "kinds": kinds}


@penstock.udf
def sort(text: str) -> Line:
    return Line(text.upper(), Decimal(len(text)), Kind.LONG if len(text) > 3 else Kind.SHORT)


def test_values_are_what_annotations_say(lake: penstock.Lake, docs: penstock.Table) -> None:
    docs.add_column("line", sort)
    docs.backfill("line")
    assert docs.select("line").to_list()[2]["line"] == {
        "sku": "THREE",
        "price": Decimal(5),
        "kind": "long",
    }
    line = {"sku": "a", "price": Decimal("1.25"), "kind": "short"}
    rows = {
        "lines": [[line, line | {"kind": None}], [], None],
        "day": [datetime.date(2026, 1, 2)] * 3,
    }
    orders = lake.create_table(f"{docs.id[0]}.orders", rows)
    orders.add_columns(add_up).add_column("whole", add_up)
    orders.backfill("total")
    orders.backfill("whole")
    found = orders.select("total", "kinds", "whole").to_list()
    assert [each["total"] for each in found] == [Decimal("4.50"), Decimal("2.00"), None]
    assert [each["kinds"] for each in found] == [["short"], [], None]
    assert found[0]["whole"] == {"total": Decimal("4.50"), "kinds": ["short"]}
    lake.create_function(f"{docs.id[0]}.sort", sort)
    docs.add_column("again", f"{docs.id[0]}.sort")
    docs.backfill("again")
    assert docs.count("again IS NOT NULL") == 2


def test_a_column_that_does_not_fit_is_told_when_it_is_named(docs: penstock.Table) -> None:
    with pytest.raises(InvalidRequest, match="column id is int64, and the function takes string"):
        docs.add_column("size", size, inputs=["id"])
    docs.add_column("size", size)
    with pytest.raises(InvalidRequest, match="as text"):
        docs.alter_column("size", size, inputs=["id"])


@penstock.chunker(outputs={"letter": str})
def letters(text: str) -> Iterator[dict[str, str]]:
    for letter in text:
        yield {"letter": letter}


def test_nulls_cost_no_call_unless_they_are_asked_for(
    lake: penstock.Lake, docs: penstock.Table
) -> None:
    docs.add_column("size", size).add_column("missing", is_missing)
    assert docs.preview("size").values == [3, None, 5, None]
    plan = docs.explain_backfill("size")
    assert (plan.function_calls, plan["rows_null"]) == (2, 2)
    job = docs.backfill("size")
    assert (job.function_calls, job.rows_done, int(job.properties["rows_null"])) == (2, 4, 2)
    assert docs.computed_columns()["size"]["rows_by_state"]["fresh"] == 4
    assert docs.backfill("missing").function_calls == 4
    found = docs.select("size", "missing").to_list()
    assert [(r["size"], r["missing"]) for r in found] == [
        (3, False),
        (None, True),
        (5, False),
        (None, True),
    ]
    docs.update({"text": "now"}, where="id = 2")
    assert docs.backfill("size").function_calls == 1
    view = lake.create_view(f"{docs.id[0]}.letters", docs.select("id"), chunker=letters)
    assert (view.refresh().function_calls, view.count()) == (3, 11)
