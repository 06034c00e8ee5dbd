"""Everything at once for half a minute: the short form of `make soak MINUTES=20`."""

from collections import Counter
from pathlib import Path

import pytest

from tests.soak.live.field import Field
from tests.soak.live.measures import Rest, Sample, draw_thirds, is_bounded, is_flat
from tests.soak.live.soak import run_soak


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_short_soak_has_nothing_unexplained(field: Field, tmp_path: Path) -> None:
    soak, sampler = run_soak(field, tmp_path, minutes=0.4, kill_seconds=10)
    assert soak.problems == []
    assert soak.kills.total() > 0
    assert sampler.samples


@pytest.mark.parametrize(("last", "flat"), [(105, True), (200, False)])
def test_memory_that_grows_is_not_flat(last: float, flat: bool) -> None:
    sizes = [100.0] * 20 + [last] * 10
    samples = [Sample(n, size, size, size, 1, 1) for n, size in enumerate(sizes)]
    assert is_flat(samples, "server") == flat


@pytest.mark.parametrize(("last", "bounded"), [((90, 110), True), ((130, 150), False)])
def test_files_may_rise_and_fall_below_what_they_were(last: tuple[int, int], bounded: bool) -> None:
    counts = [80, 120] * 10 + [*last] * 5
    samples = [Sample(n, 1, 1, 1, count, 1) for n, count in enumerate(counts)]
    assert is_bounded(samples, "files") == bounded


def test_the_table_of_a_soak_tells_each_third_and_the_rest() -> None:
    samples = [
        Sample(n, 300, 200, 0, n, 2, {"data": n}, {"SUCCEEDED": n, "FAILED": n // 20}, 10 * n, 1)
        for n in range(31)
    ]
    # The server was away.
    samples.insert(15, Sample(14.5, 0, 0, 0, 15, 2, {"data": 15}, None, 145, 1))
    table = draw_thirds(samples, Rest(Counter({"data": 4}), 1), unexplained=3)
    assert table[2:] == [
        "| server, MiB | 300 | 300 | 300 |  |",
        "| runner, MiB | 200 | 200 | 200 |  |",
        "| JVM, MiB | 0 | 0 | 0 |  |",
        "| files on disk | 6 | 15 | 25 | 4 |",
        "| … in `data` | 5 | 15 | 25 | 4 |",
        "| MiB on disk | 2 | 2 | 2 | 1 |",
        "| requests | 100 | 100 | 100 |  |",
        "| jobs that succeeded | 10 | 10 | 10 |  |",
        "| unexplained | 1 | 1 | 1 |  |",
    ]
