"""Rows are shared out to tasks: all of them, each once, evenly."""

import random
from typing import Any

import numpy as np
import pytest
from msgspec import json, structs

from penstock.jobs.engine.row_ranges import NeededRows
from penstock.jobs.refresh.rows.kernel import join_masks
from penstock.jobs.refresh.rows.run import MIN_UNIT_ROWS, make_tasks, make_units
from penstock.lance.diff.masks import pack


def whole(fragment: int, rows: int) -> NeededRows:
    return NeededRows(fragment=fragment, physical_rows=rows, start=0, end=rows, rows=rows)


def some_needed(chance: random.Random) -> list[NeededRows]:
    needed = []
    for id in range(chance.randrange(1, 5)):
        size = chance.randrange(1, 400)
        mask = np.array([chance.random() < 0.3 for _ in range(size)])
        each = whole(id, size)
        if mask.any() and chance.random() < 0.5:
            each = structs.replace(each, rows=int(mask.sum()), need=pack(mask))
        needed.append(each)
    return needed


def offsets(needed: NeededRows) -> list[tuple[int, int]]:
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


def masked(*masks: "np.ndarray[Any, Any]") -> NeededRows:
    """Rows of a fragment: those that are needed, that the view has, and that have values there."""
    (offsets,) = masks[0].nonzero()
    start, end = int(offsets[0]), int(offsets[-1]) + 1
    need, was, kept = (pack(mask[start:end]) for mask in masks)
    return structs.replace(
        whole(0, len(masks[0])),
        start=start,
        end=end,
        rows=len(offsets),
        need=need,
        was=was,
        kept=(kept,),
    )


def test_each_part_of_a_fragment_has_its_own_masks() -> None:
    size = 100_000
    chance = np.random.default_rng(5)
    need = chance.random(size) < 0.5
    was, kept = need & (chance.random(size) < 0.5), need & (chance.random(size) < 0.5)
    units = make_units([masked(need, was, kept)], 2, 100)
    parts = [part for unit in units for part in unit.needed]
    assert len(parts) > 400
    for name, mask in (("need", need), ("was", was), ("kept", kept)):
        found = np.zeros(size, bool)
        for part in parts:
            packed = part.kept[0] if name == "kept" else getattr(part, name)
            if packed is not None:
                found |= part.mask(packed)
        assert np.array_equal(found, mask), name
    # All of them together are about as long as those of the whole.
    assert len(json.encode(units)) < 20 * size // 8


def test_a_unit_knows_what_the_view_has_of_all_its_parts() -> None:
    every = np.ones(105, bool)
    (unit,) = make_units([masked(every, every, every)], 1, 100)
    assert [part.rows for part in unit.needed] == [100, 5]
    (mask,) = join_masks(unit, lambda each: each.was).values()
    assert mask.all()
