"""The attacks that know nothing of what is served, on a server that speaks TLS."""

import logging
from collections.abc import Iterator

import pytest

from tests.attack.registry import gather
from tests.attack.running import run
from tests.attack.world import World, standing
from tests.harness.processes.access import issuing, tls
from tests.harness.processes.s3 import running_store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("sealed")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with (
        running_store() as store,
        issuing() as issuer,
        standing(folder / "world", "", store, issuer, **tls(folder)) as made,
    ):
        yield made


@pytest.mark.parametrize("family", ["tokens", "http"])
def test_no_attack_of_a_family_finds_a_hole_behind_tls(sealed: World, family: str) -> None:
    assert sealed.server.url.startswith("https://")
    holes = run(sealed, gather(family, sealed.place))
    assert not holes, "\n".join(hole[:500] for hole in holes[:20])
