"""What can be set: the defaults hold their own limits."""

import msgspec
import pytest

from penstock.settings.keys import SettingKey, list_keys
from penstock.settings.sections import Settings


@pytest.mark.parametrize("key", list_keys(), ids=lambda key: key.dotted)
def test_each_default_is_a_right_value_with_one_sentence_about_it(key: SettingKey) -> None:
    assert msgspec.convert(key.default, key.type) == key.default
    assert key.description.endswith(".")
    assert key.description.count(". ") == 0


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().server.port = 1  # type: ignore[misc]
