"""Everything at once for half a minute: the short form of `make soak MINUTES=20`."""

from pathlib import Path

import pytest

from tests.soak.live.field import open_field
from tests.soak.live.measures import Sample, is_flat
from tests.soak.live.soak import QUICKLY, run_soak


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_short_soak_has_nothing_unexplained(tmp_path: Path) -> None:
    with open_field(tmp_path, settings=QUICKLY) as field:
        soak, sampler = run_soak(field, tmp_path, minutes=0.6)
    assert soak.problems == []
    assert soak.kills.total() > 0
    assert sampler.samples


@pytest.mark.parametrize(("last", "flat"), [(105, True), (200, False)])
def test_memory_that_grows_is_not_flat(last: float, flat: bool) -> None:
    sizes = [100.0] * 20 + [last] * 10
    samples = [Sample(n, size, size, size, 1, 1) for n, size in enumerate(sizes)]
    assert is_flat(samples, "server") == flat
