"""What the tests of the package share: the image's steps, done once."""

import pytest

from tests.packaging.image import Image


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    made = Image(tmp_path_factory.mktemp("image"))
    made.build()
    return made
