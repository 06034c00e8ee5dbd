"""What an attempt tells of itself on the way: its phases, and how fast rows are done."""

import pytest

from penstock.runner.progress import MAX_PHASES, RECENT_SECONDS, JobProgress


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(clock: Clock) -> JobProgress:
    return JobProgress(clock)


def begin(progress: JobProgress, total: int, done: int = 0) -> None:
    progress.begin("computing")
    progress.tell({"rows_total": total, "rows_done": done})


def test_a_rate_is_told_while_rows_are_computed_and_what_is_left_by_it(
    progress: JobProgress, clock: Clock
) -> None:
    begin(progress, 1000)
    assert progress.take()[0]["rows_per_second"] is None
    clock.now += 5
    # Nothing is done yet: that is no rate of none.
    assert progress.take()[0]["rows_per_second"] is None
    clock.now += 5
    progress.tell({"rows_done": 200})
    told, _ = progress.take()
    assert (told["rows_per_second"], told["seconds_left"], told["phase"]) == (20, 40, "computing")


def test_rows_that_were_there_before_are_not_fast(progress: JobProgress, clock: Clock) -> None:
    begin(progress, 1000, done=900)
    clock.now += 10
    progress.tell({"rows_done": 950})
    told, _ = progress.take()
    assert (told["rows_per_second"], told["seconds_left"]) == (5, 10)


def test_a_rate_follows_what_happened_lately(progress: JobProgress, clock: Clock) -> None:
    begin(progress, 100_000)
    for step in range(1, 101):
        clock.now += 1
        progress.tell({"rows_done": 10 * step})
    for step in range(1, int(RECENT_SECONDS) + 3):
        clock.now += 1
        progress.tell({"rows_done": 1000 + step})
    assert progress.take()[0]["rows_per_second"] == pytest.approx(1, rel=0.1)


def test_few_large_steps_make_a_rate_that_does_not_jump(
    progress: JobProgress, clock: Clock
) -> None:
    begin(progress, 100_000)
    for step in range(1, 11):
        clock.now += 100
        progress.tell({"rows_done": 1000 * step})
        assert progress.take()[0]["rows_per_second"] == pytest.approx(10, rel=0.01)
    clock.now += 50
    assert progress.take()[0]["rows_per_second"] == pytest.approx(10, rel=0.15)


def test_waiting_for_spark_is_no_computing(progress: JobProgress, clock: Clock) -> None:
    begin(progress, 100)
    progress.begin("starting")
    clock.now += 60
    assert progress.take()[0]["rows_per_second"] is None
    progress.begin("computing")
    clock.now += 2
    progress.tell({"rows_done": 20})
    assert progress.take()[0]["rows_per_second"] == 10


def test_at_the_end_the_rate_is_that_of_all_and_nothing_is_left(
    progress: JobProgress, clock: Clock
) -> None:
    begin(progress, 100, done=50)
    clock.now += 10
    progress.tell({"rows_done": 100})
    progress.begin("committing")
    clock.now += 90
    told, _ = progress.take_last()
    assert (told["rows_per_second"], told["seconds_left"], told["phase"]) == (5, None, None)


def test_rows_that_are_taken_back_begin_the_rate_anew(progress: JobProgress, clock: Clock) -> None:
    begin(progress, 100)
    clock.now += 10
    progress.tell({"rows_done": 80})
    progress.tell({"rows_done": 20})
    clock.now += 10
    progress.tell({"rows_done": 40})
    assert progress.take()[0]["rows_per_second"] == 2
    assert progress.take_last()[0]["rows_per_second"] == 5


def test_phases_are_told_once_with_how_long_ago_they_began(
    progress: JobProgress, clock: Clock
) -> None:
    progress.begin("planning")
    clock.now += 1
    progress.begin("computing")
    progress.begin("computing")
    clock.now += 2
    _, phases = progress.take()
    assert [(each.name, each.ago_millis) for each in phases] == [
        ("planning", 3000),
        ("computing", 2000),
    ]
    assert progress.take()[1] == []


def test_a_report_that_was_lost_is_told_again(progress: JobProgress, clock: Clock) -> None:
    progress.begin("planning")
    taken, (_, phases) = clock.now, progress.take()
    clock.now += 1
    progress.begin("computing")
    progress.put_back(phases, taken)
    clock.now += 1
    assert progress.is_news
    told = [(each.name, each.ago_millis) for each in progress.take()[1]]
    assert told == [("planning", 2000), ("computing", 1000)]


def test_a_phase_that_took_no_time_is_not_told(progress: JobProgress, clock: Clock) -> None:
    progress.begin("planning")
    clock.now += 1
    for name in ("starting", "computing", "starting", "computing"):
        progress.begin(name)
        clock.now += 0.0005
    assert [each.name for each in progress.take()[1]] == ["planning", "computing"]


def test_no_more_phases_wait_than_a_report_carries(progress: JobProgress, clock: Clock) -> None:
    for number in range(3 * MAX_PHASES):
        progress.begin(f"part {number}")
        clock.now += 1
    assert len(progress.take()[1]) == MAX_PHASES
