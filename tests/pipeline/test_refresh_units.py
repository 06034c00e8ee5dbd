"""Rows are shared out to tasks: all of them, each once, evenly."""

import random

import numpy as np
import pytest
from msgspec import structs

from penstock.datasets.needed import Needed
from penstock.pipeline.plan.masks import pack
from penstock.pipeline.spark.refreshing.rows import MIN_UNIT_ROWS, make_tasks, make_units


def whole(fragment: int, rows: int) -> Needed:
    return Needed(fragment=fragment, physical_rows=rows, start=0, end=rows, rows=rows)


def some_needed(chance: random.Random) -> list[Needed]:
    needed = []
    for id in range(chance.randrange(1, 5)):
        size = chance.randrange(1, 400)
        mask = np.array([chance.random() < 0.3 for _ in range(size)])
        each = whole(id, size)
        if mask.any() and chance.random() < 0.5:
            each = structs.replace(each, rows=int(mask.sum()), need=pack(mask))
        needed.append(each)
    return needed


def offsets(needed: Needed) -> list[tuple[int, int]]:
    mask = needed.mask(needed.need)
    return [
        (needed.fragment, at) for at in range(needed.start, needed.end) if mask is None or mask[at]
    ]


@pytest.mark.parametrize("seed", range(20))
def test_every_row_is_in_one_unit_of_one_task(seed: int) -> None:
    chance = random.Random(seed)
    needed, slots = some_needed(chance), chance.randrange(1, 5)
    size = chance.choice([None, chance.randrange(1, 300)])
    units = make_units(needed, slots, size)
    tasks = make_tasks(units, slots)
    given = sorted(row for each in needed for row in offsets(each))
    found = sorted(
        row for task in tasks for unit in task for each in unit.needed for row in offsets(each)
    )
    assert found == given
    assert len({unit.key for unit in units}) == len(units)
    if size is not None:
        assert max(unit.rows for unit in units) <= size + size // 10


@pytest.mark.parametrize("sizes", [[2_000_000], [1_000_000] * 3, [250_000] * 8, [9_000_000, 5]])
def test_slots_have_about_as_much_to_do(sizes: list[int]) -> None:
    needed = [whole(id, size) for id, size in enumerate(sizes)]
    tasks = make_tasks(make_units(needed, 2, None), 2)
    rows = [sum(unit.rows for unit in task) for task in tasks]
    assert len(tasks) == 2
    assert max(rows) - min(rows) <= sum(sizes) * 0.05


def test_few_rows_are_one_task() -> None:
    assert len(make_units([whole(0, 10), whole(1, MIN_UNIT_ROWS - 10)], 8, None)) == 1
