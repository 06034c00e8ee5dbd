"""Pauses between tries: they grow up to a bound, and random ones stay within theirs."""

from penstock.retries import Backoff, spread


def test_pauses_grow_up_to_the_longest_and_begin_again_after_a_reset() -> None:
    pauses = Backoff(1.0, 5.0)
    assert [pauses.take() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    pauses.reset()
    assert [pauses.take() for _ in range(2)] == [1.0, 2.0]


def test_the_first_pause_is_told_from_the_next_ones() -> None:
    pauses = Backoff(0.5, 10.0, 1.5)
    assert pauses.is_first
    assert (pauses.take(), pauses.is_first) == (0.5, False)
    assert pauses.take() == 0.75
    pauses.reset()
    assert pauses.is_first


def test_random_pauses_are_as_many_as_wanted_and_each_within_its_bound() -> None:
    for _ in range(100):
        found = list(spread(0.1, 20))
        assert len(found) == 20
        assert all(0 <= pause <= 0.1 * n for n, pause in enumerate(found, 1))
    assert list(spread(0.1, 0)) == []
    assert list(spread(0.1, 5)) != list(spread(0.1, 5))
