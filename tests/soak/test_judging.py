"""The judge of histories finds what is wrong: a value, a row, a call too many or too few."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.soak.histories import History
from tests.soak.jobs import Ended
from tests.soak.judging import Begun


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path, 1, (), None, ("filled", "chunks", "parts"))


def refresh(history: History, view: str) -> tuple[Begun, Ended]:
    begun = history.judge.begin(view)
    return begun, history.jobs[view].run()


def test_what_is_right_is_found_right(history: History) -> None:
    for view in history.views:
        assert history.judge.end(view, *refresh(history, view), disturbed="") == 0


@pytest.mark.parametrize("view", ["filled", "chunks", "parts"])
def test_a_wrong_value_is_found(history: History, view: str) -> None:
    done = refresh(history, view)
    column, value = {"filled": ("value", "'?'"), "chunks": ("word", "'?'")}.get(
        view, ("total", "-1")
    )
    history.views[view].open().update({column: value}, where=f"{column} IS NOT NULL")
    with pytest.raises(AssertionError, match=r"lacks|twice"):
        history.judge.end(view, *done, disturbed="")


def test_a_lost_row_is_found(history: History) -> None:
    done = refresh(history, "filled")
    history.views["filled"].open().delete("id = 1")
    with pytest.raises(AssertionError, match="lacks"):
        history.judge.end("filled", *done, disturbed="")


@pytest.mark.parametrize("by", [1, -1])
def test_a_call_more_or_less_is_found(history: History, by: int) -> None:
    begun, ended = refresh(history, "chunks")
    first = next(iter(ended.calls))
    ended.calls = ended.calls + Counter([first]) if by > 0 else ended.calls - Counter([first])
    with pytest.raises(AssertionError, match=r"nothing needed|did not call"):
        history.judge.end("chunks", begun, ended, disturbed="")


def test_a_row_that_is_written_again_is_found(history: History) -> None:
    history.judge.end("filled", *refresh(history, "filled"), disturbed="")
    begun = history.judge.begin("filled")
    view = history.views["filled"]
    rows = view.open().to_table(filter="id = 1")
    view.open().delete("id = 1")
    view.open().insert(rows)
    with pytest.raises(AssertionError, match="that stayed"):
        history.judge._check_view("filled", max(history.model.past), begun)


def test_a_value_of_the_column_that_is_wrong_is_found(history: History) -> None:
    begun, ended = refresh(history, "source")
    history.writers.open().update({"value": "'?'"}, where="id = 3")
    with pytest.raises(AssertionError, match="values are wrong"):
        history.judge.end("source", begun, ended, disturbed="")


def test_calls_in_flight_at_a_cut_may_come_again_and_no_others(history: History) -> None:
    begun, ended = refresh(history, "filled")
    ended.cuts = 1
    lines = random.Random(1).sample(sorted(ended.calls), 9)
    ended.calls += Counter(lines[:8])
    history.judge.end("filled", begun, ended, disturbed="")
    begun, ended = refresh(history, "chunks")
    ended.cuts, ended.calls = 1, ended.calls + Counter(lines)
    with pytest.raises(AssertionError, match="8 were in flight"):
        history.judge.end("chunks", begun, ended, disturbed="")


@pytest.mark.parametrize("restored", [False, True])
def test_a_row_that_a_disturbed_fill_left_is_found_unless_a_restore_emptied_it(
    history: History, restored: bool
) -> None:
    begun, ended = refresh(history, "source")
    if restored:
        history.judge.end("source", begun, ended, disturbed="")
        begun, ended = refresh(history, "source")
    history.writers.open().update({"value": "NULL"}, where="id = 1")
    if restored:
        history.judge.end("source", begun, ended, disturbed="other")
        return
    with pytest.raises(AssertionError, match="nobody touched"):
        history.judge.end("source", begun, ended, disturbed="other")


@pytest.mark.parametrize("known", [False, True])
def test_values_that_a_restore_took_away_from_a_commit_of_the_job_are_not_missed(
    history: History, known: bool
) -> None:
    begun, ended = refresh(history, "source")
    earlier: Any = history.writers.open().checkout_version(begun.version)
    earlier.restore()
    version = history.writers.open().version
    if known:
        history.model.restored.append(version)
        history.judge.end("source", begun, ended, disturbed="other")
        return
    with pytest.raises(AssertionError, match="nobody touched"):
        history.judge.end("source", begun, ended, disturbed="other")
