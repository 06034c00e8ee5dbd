"""One server with two runners for all tests of kills and soaks; they replace what they kill."""

from collections.abc import Iterator

import pytest

from tests.soak.live.field import Field, open_field
from tests.soak.live.soak import QUICKLY


@pytest.fixture(scope="session")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with open_field(tmp_path_factory.mktemp("field"), settings=QUICKLY) as opened:
        yield opened
