"""Functions as people write them in Python, from the decorator to the values, on real runners."""

import asyncio
import dataclasses
import datetime
import enum
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, TypedDict

import pytest

import penstock
from penstock.errors import InvalidRequest, JobCanceled
from tests.harness.data.calls import count_calls, take_calls
from tests.harness.data.tables import new_name
from tests.harness.processes.runners import RunnerProcess
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

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


def test_async_calls_overlap_and_a_canceled_job_repeats_none_that_ended(
    lake: penstock.Lake, docs: penstock.Table, tmp_path: Path
) -> None:
    log, slow = str(tmp_path / "calls"), str(tmp_path / "slow")
    Path(slow).touch()

    @penstock.udf(concurrency=8)
    async def ask(id: int) -> int:
        with open(log, "a") as file:  # noqa: ASYNC230
            file.write(f"{id}\n")
        await asyncio.sleep(60 if id >= 16 and os.path.exists(slow) else 0.05)  # noqa: ASYNC240
        return 2 * id

    table = lake.create_table(f"{docs.id[0]}.asked", {"id": list(range(24))})
    table.add_column("twice", ask)
    assert table.preview("twice", rows=3).values == [0, 2, 4]
    assert sorted(map(int, take_calls(Path(log)))) == [0, 1, 2]
    job = table.backfill("twice", wait=False)
    until(lambda: count_calls(Path(log)) == 24)
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=60, progress=False)
    assert sorted(map(int, take_calls(Path(log)))) == list(range(24))
    Path(slow).unlink()
    assert table.backfill("twice").function_calls == 8
    assert sorted(map(int, take_calls(Path(log)))) == list(range(16, 24))
    assert table.select("twice").to_list() == [{"twice": 2 * n} for n in range(24)]
