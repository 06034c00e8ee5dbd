"""Functions on record: their code, and how fast they were."""

from typing import Any

import pytest

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import backfills
from penstock.catalog.functions import function_code
from penstock.jobs.specs import BackfillSpec
from penstock.model.functions import Function, FunctionOutput

pytestmark = pytest.mark.anyio


def make_function(sha256: str, version: str = "1") -> Function:
    return Function(
        name="f",
        version=version,
        sha256=sha256,
        form="pickle",
        kind=None,
        inputs=("a",),
        outputs=(FunctionOutput("b", "", {"type": "int8"}),),
    )


def spec(function: Function) -> BackfillSpec:
    return BackfillSpec(table=(), table_id="t", column="c", binding="b", function=function)


async def record(catalog: Catalog, *made: Function) -> None:
    for function in made:
        await catalog.database.write(function_code.record_in, function, b"\x00\xff code")


async def finish(catalog: Catalog, function: Function, **result: Any) -> None:
    await catalog.database.write(backfills.record_watermark, spec(function), result)


async def test_code_is_kept_by_its_hash(catalog: Catalog) -> None:
    await record(catalog, make_function("x"), make_function("x", "2"), make_function("y"))
    rows = await catalog.database.fetch(
        "SELECT sha256, content, version, rate FROM function_code ORDER BY sha256"
    )
    found = [(row[0], bytes(row[1]), row[2], row[3]) for row in rows]
    assert found == [("x", b"\x00\xff code", "2", None), ("y", b"\x00\xff code", "1", None)]


async def test_the_rate_is_what_the_last_job_measured(catalog: Catalog) -> None:
    function = make_function("x")
    await record(catalog, function)
    assert await function_code.find_rate(catalog.database, function) is None
    for rate in (10, 2.5):
        await finish(catalog, function, rate=rate)
        assert await function_code.find_rate(catalog.database, function) == rate


@pytest.mark.parametrize("rate", [None, "fast", True, 0, -1, float("inf"), float("nan"), []])
async def test_what_is_no_rate_is_not_recorded(catalog: Catalog, rate: Any) -> None:
    function = make_function("x")
    await record(catalog, function)
    await finish(catalog, function, rate=rate)
    assert await function_code.find_rate(catalog.database, function) is None


async def test_other_code_of_the_same_version_is_as_fast(catalog: Catalog) -> None:
    old, new, other = make_function("x"), make_function("y"), make_function("z", "2")
    await record(catalog, old, new, other)
    await finish(catalog, old, rate=10.0)
    assert await function_code.find_rate(catalog.database, new) == 10.0
    assert await function_code.find_rate(catalog.database, other) is None
    await finish(catalog, new, rate=20.0)
    assert await function_code.find_rate(catalog.database, new) == 20.0
    assert await function_code.find_rate(catalog.database, old) == 10.0
