"""Modules that load when they are first used."""

import pickle
import subprocess
import sys

import pytest

from penstock.late import LateModule


def test_a_module_is_loaded_by_the_first_use() -> None:
    code = (
        "import sys\nfrom penstock.late import LateModule\n"
        "found = LateModule('colorsys')\nassert 'colorsys' not in sys.modules\n"
        "print(found.rgb_to_hsv(1, 0, 0), 'colorsys' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "(0.0, 1.0, 1) True\n"


def test_what_a_module_lacks_is_missed() -> None:
    with pytest.raises(AttributeError, match="module 'json' has no attribute 'gone'"):
        _ = LateModule("json").gone


def test_a_late_module_is_sent_by_its_name() -> None:
    late = LateModule("json")
    assert late.dumps([1]) == "[1]"
    sent = pickle.dumps(late)
    assert b"dumps" not in sent
    assert pickle.loads(sent).loads("[2]") == [2]
