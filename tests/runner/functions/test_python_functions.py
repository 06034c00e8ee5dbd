"""Functions as people write them in Python, from the decorator to the values, on real runners."""

from collections.abc import Iterator

import pytest

import penstock
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
