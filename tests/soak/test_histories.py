"""Random histories of many views on one source: the short form of `make soak`."""

from pathlib import Path

import pytest

from tests.soak.histories import INGREDIENTS, run_history

FEW, MANY = range(2), range(100, 106)


def run(folder: Path, seed: int, *ingredients: str) -> None:
    folder = folder / str(seed)
    folder.mkdir()
    done = run_history(folder, seed, ingredients)
    assert done.jobs > 5


@pytest.mark.parametrize("seed", FEW)
def test_a_history_ends_right_with_exactly_the_calls_of_the_model(
    tmp_path: Path, seed: int
) -> None:
    run(tmp_path, seed, "at_once", "filters", "compaction", "restores", "prints")


@pytest.mark.slow
@pytest.mark.parametrize("ingredient", INGREDIENTS)
def test_histories_with_one_ingredient(tmp_path: Path, ingredient: str) -> None:
    for seed in range(2, 5):
        run(tmp_path, seed, ingredient)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_histories_with_everything(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, *INGREDIENTS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20010, 20015])
def test_histories_of_a_column_alone(tmp_path: Path, seed: int) -> None:
    assert run_history(tmp_path, seed, views=()).jobs > 5
