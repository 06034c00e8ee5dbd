"""Which versions go, and which fragments are merged, for any table."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog.upkeep.plans import (
    Needed,
    Retention,
    choose_excluded,
    plan_removal,
    to_ranges,
)
from penstock.lance.upkeep.compaction import FragmentSize
from penstock.model.tables import VersionRange

TARGET = 1_000


def plan(written: dict[int, int], now: int, *rules: int, **needed: object) -> list[int]:
    return plan_removal(written, now, Retention(*rules), Needed(**needed)).remove  # type: ignore[arg-type]


def test_a_version_ages_from_when_it_was_replaced() -> None:
    written = {1: 0, 2: 10_000, 3: 20_000}
    # Version 2 was what everybody read until 20 seconds.
    assert plan(written, 21_000, 5) == [1]
    assert plan(written, 24_999, 5) == [1]
    assert plan(written, 25_000, 5) == [1, 2]
    assert plan(written, 10**9, 0) == [1, 2]
    assert plan({1: 5_000, 2: 0}, 6_000, 2) == []


def test_the_newest_versions_stay_however_old_they_are() -> None:
    written = dict.fromkeys(range(1, 11), 0)
    assert plan(written, 10**9, 0, 3) == list(range(1, 8))
    assert plan(written, 10**9, 0, 99) == []
    assert plan({}, 0, 0) == []


def test_what_is_needed_stays_and_is_told() -> None:
    written = {n: n * 1000 for n in range(1, 7)}
    done = plan_removal(written, 10**6, Retention(), Needed({1: "tag", 3: "view"}, 5_000))
    # Jobs since second 5 may have begun with what was the newest then.
    assert done.remove == [2]
    assert done.kept == {"tag": 1, "view": 1, "job": 2, "newest": 1}


@given(
    st.dictionaries(st.integers(1, 50), st.integers(0, 100_000), max_size=30),
    st.integers(0, 200_000),
    st.integers(0, 100),
    st.integers(1, 10),
    st.sets(st.integers(1, 50)),
)
def test_every_version_goes_or_is_told_to_stay(
    written: dict[int, int], now: int, age: int, keep: int, needed: set[int]
) -> None:
    rules = Needed(dict.fromkeys(needed, "tag"))
    done = plan_removal(written, now, Retention(age, keep), rules)
    assert len(done.remove) + sum(done.kept.values()) == len(written)
    assert not set(done.remove) & needed
    assert not set(done.remove) & set(sorted(written)[-keep:])
    ranges = to_ranges(done.remove)
    assert [v for each in ranges for v in range(each.start, each.end or 0)] == done.remove


def test_neighbours_share_a_range() -> None:
    assert to_ranges([1, 2, 3, 7, 9, 10]) == [
        VersionRange(1, 4),
        VersionRange(7, 8),
        VersionRange(9, 11),
    ]


def sizes(*rows: int) -> list[FragmentSize]:
    return [FragmentSize(n, count, 0, count) for n, count in enumerate(rows)]


def chosen(found: list[FragmentSize], small: int = 4, share: float = 0.1) -> list[int]:
    excluded = choose_excluded(found, TARGET, small, share)
    return [each.id for each in found if each.id not in excluded]


def test_so_many_small_neighbours_are_merged() -> None:
    assert chosen(sizes(1, 1, 1)) == []
    assert chosen(sizes(1, 1, 1, 1)) == [0, 1, 2, 3]
    assert chosen(sizes(900, 1, 1, 1, 1)) == [1, 2, 3, 4]
    assert chosen(sizes(1, 1, 900, 1, 1)) == []
    # Older ones of about the size of all newer ones are merged with them; larger ones wait.
    assert chosen(sizes(4, 1, 1, 1, 1)) == [0, 1, 2, 3, 4]
    assert chosen(sizes(9, 1, 1, 1, 1)) == [1, 2, 3, 4]
    assert chosen([]) == []


def test_fragments_of_which_much_was_deleted_are_written_anew() -> None:
    found = [FragmentSize(0, 900, 100, 1), FragmentSize(1, 950, 50, 1), FragmentSize(2, 0, 5, 1)]
    assert chosen(found) == [0, 2]


def test_rows_are_written_anew_about_as_often_as_their_fragment_doubles() -> None:
    rows: list[int] = []
    written = 0
    for _ in range(4_000):
        rows.append(1)
        merged = set(chosen(sizes(*rows), small=10))
        if merged:
            total = sum(rows[n] for n in merged)
            first, last = min(merged), max(merged)
            assert merged == set(range(first, last + 1))
            written += total
            rows = [*rows[:first], total, *rows[last + 1 :]]
    assert sum(rows) == 4_000
    assert len(rows) < 30
    assert written < 4_000 * 5
