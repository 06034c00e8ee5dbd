"""Other writers while a backfill runs: nobody's values are lost, and the column is right."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import LeaseLost
from penstock.jobs.engine.attempt import JobCanceled
from penstock.jobs.spark.tasks import Engine
from tests.harness.jobs.computed_tables import ComputedTable, compute, documents
from tests.harness.jobs.held_attempt import HeldAttempt, once
from tests.harness.processes.servers import Server


def interrupted(table: ComputedTable, work: Callable[[], object], **options: object) -> HeldAttempt:
    """A backfill between whose computation and commit somebody does something."""
    attempt = HeldAttempt(on_fence=once(work))
    table.fill(attempt, **options)
    return attempt


WRITERS: dict[str, Callable[[ComputedTable], object]] = {
    "append": lambda table: table.open().insert(documents(900, 5)),
    "delete": lambda table: table.open().delete("id % 7 = 0"),
    "delete a fragment": lambda table: table.open().delete("id < 25"),
    "update an input": lambda table: table.open().update({"text": "'new'"}, where="id >= 90"),
    "compact": lambda table: table.open().optimize.compact_files(target_rows_per_fragment=60),
    "add a column": lambda table: table.open().add_columns({"more": "id * 2"}),
    "index": lambda table: table.open().create_scalar_index("id", "BTREE"),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("granularity", [None, 2])
def test_a_backfill_ends_right_whatever_others_do_meanwhile(
    server: Server, engine: Engine, writer: str, granularity: int | None
) -> None:
    table = compute(server, engine)
    interrupted(table, lambda: WRITERS[writer](table), commit_granularity=granularity)
    expected = table.expected()
    # Rows that were written after the plan wait for the next backfill.
    found = {id: value for id, value in table.values().items() if id < 90}
    assert found == {id: value for id, value in expected.items() if id < 90}
    table.fill()
    assert table.values() == expected
    assert table.loose_files() == set()


def test_only_a_fragment_that_changed_is_computed_twice(server: Server, engine: Engine) -> None:
    table = compute(server, engine)

    def rewrite_the_first_fragment() -> None:
        table.open().delete("id < 20")
        table.open().optimize.compact_files(target_rows_per_fragment=25)

    attempt = interrupted(table, rewrite_the_first_fragment)
    assert attempt.told["function_calls"] == 100 + 5
    assert table.values() == table.expected()


def test_the_watermark_is_the_version_up_to_which_all_is_filled(
    server: Server, engine: Engine
) -> None:
    table = compute(server, engine)
    before = table.open().version
    append = once(lambda: table.open().insert(documents(900, 5)))
    done = table.fill(HeldAttempt(on_fence=append))
    assert done.watermark is not None
    assert (done.version, done.watermark.version) == (before + 2, before)
    done = table.fill()
    assert done.watermark is not None
    assert (done.version, done.watermark.version) == (before + 3, before + 3)
    assert table.fill(where="id = 1").watermark is None


def test_a_value_that_somebody_wrote_meanwhile_is_not_kept_back_by_where(
    server: Server, engine: Engine
) -> None:
    table = compute(server, engine, fragments=1)
    interrupted(
        table, lambda: table.open().update({"value": "-1"}, where="id = 50"), where="id < 10"
    )
    found = table.values()
    assert found[50] == -1
    assert {id: found[id] for id in range(10)} == {id: table.expected()[id] for id in range(10)}


def test_a_cancel_changes_nothing_and_leaves_nothing(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    before = table.open().version

    def cancel() -> None:
        raise JobCanceled

    attempt = HeldAttempt(on_fence=cancel)
    with pytest.raises(JobCanceled):
        table.fill(attempt)
    assert table.loose_files() != set()
    table.sweep(attempt)
    assert table.open().version == before
    assert table.loose_files() == set()


def test_a_cancel_between_groups_keeps_whole_groups(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    commits: list[int] = []

    def second() -> None:
        commits.append(1)
        if len(commits) == 2:
            raise JobCanceled

    attempt = HeldAttempt(on_fence=second)
    with pytest.raises(JobCanceled):
        table.fill(attempt, commit_granularity=2)
    table.sweep(attempt, commit_granularity=2)
    assert sum(value is None for value in table.values().values()) == 50
    assert table.loose_files() == set()


def test_a_later_attempt_uses_the_files_of_an_earlier_one(server: Server, engine: Engine) -> None:
    table = compute(server, engine)

    def die() -> None:
        raise LeaseLost

    first = HeldAttempt(on_fence=die)
    with pytest.raises(LeaseLost):
        table.fill(first)
    second = HeldAttempt(job=first.job, number=2)
    done = table.fill(second)
    assert (done.function_calls, done.rows) == (0, 100)
    assert table.values() == table.expected()
    assert table.loose_files() == set()


def test_an_earlier_attempt_does_not_sweep_the_files_of_a_later_one(
    server: Server, engine: Engine
) -> None:
    table = compute(server, engine)

    def sweep_too_late() -> None:
        table.sweep(HeldAttempt(job=second.job, number=1))

    second = HeldAttempt(number=2, on_fence=sweep_too_late)
    table.fill(second)
    assert table.values() == table.expected()


def test_a_later_attempt_finds_the_commit_of_an_earlier_one(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    first = HeldAttempt()
    done = table.fill(first, force=True)
    again = table.fill(HeldAttempt(job=first.job, number=2), force=True)
    assert (again.version, again.rows, again.function_calls) == (done.version, 100, 0)
    assert table.open().version == done.version


def test_force_computes_fresh_rows_again(server: Server, engine: Engine) -> None:
    table = compute(server, engine)
    table.fill()
    assert table.fill(force=True).rows == 100


@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_random_histories_end_with_every_value_right(
    server: Server, engine: Engine, seed: int
) -> None:
    chance = random.Random(seed)
    table = compute(server, engine, rows=60, fragments=3)
    next_id = 1000
    for _ in range(12):
        step = chance.choice(["append", "delete", "update", "compact", "some", "all", "restore"])
        ids = f"id % 11 = {chance.randrange(11)}"
        if step == "append":
            table.open().insert(documents(next_id, 9))
            next_id += 9
        elif step == "delete":
            table.open().delete(ids)
        elif step == "update":
            table.open().update({"text": f"'{'u' * chance.randrange(9)}'"}, where=ids)
        elif step == "compact":
            table.open().optimize.compact_files(target_rows_per_fragment=40)
        elif step == "some":
            table.fill(where=ids)
        elif step == "all":
            table.fill()
        else:
            dataset = table.open()
            earlier: Any = dataset.checkout_version(chance.randrange(2, dataset.version + 1))
            earlier.restore()
    table.fill()
    assert table.values() == table.expected()
    assert table.loose_files() == set()
