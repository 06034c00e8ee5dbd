"""Secrets are hidden in texts, however they are written there."""

import json
import os
import subprocess
import sys
from urllib.parse import quote

import pytest

from penstock.jobs.functions.redaction import VARIABLE, Redaction

VALUE = "pa'ss\"wörd/first\nsecond line\\n"


@pytest.mark.parametrize(
    "text",
    [
        VALUE,
        repr(VALUE),
        repr({"key": VALUE}),
        json.dumps({"key": VALUE}),
        str(VALUE.encode()),
        f"https://host/?key={quote(VALUE)}",
        f"https://host/?key={quote(VALUE, safe='')}",
        "only its second line\\n here",
        f"before {VALUE.strip()} after",
    ],
)
def test_a_value_is_hidden_however_it_is_written(text: str) -> None:
    hidden = Redaction([VALUE]).hide(text)
    assert "***" in hidden
    assert "second line" not in hidden
    assert "ss" not in hidden.replace("/?key=", "")


def test_what_is_longer_is_hidden_first() -> None:
    assert Redaction(["token", "token-of-more"]).hide("a token-of-more, a token") == "a ***, a ***"


def test_without_secrets_a_text_stays() -> None:
    assert Redaction(["", ""]).hide("nothing ''") == "nothing ''"


def test_a_function_gets_its_secrets_whatever_another_did_to_the_environment() -> None:
    program = (
        "import os\n"
        "from penstock.jobs.functions import redaction\n"
        "redaction.restore()\n"
        "os.environ['KEY'] = 'another'\n"
        "del os.environ['OTHER']\n"
        "redaction.restore()\n"
        "assert (os.environ['KEY'], os.environ['OTHER']) == ('first', 'second')\n"
        "assert redaction.hide('a first') == 'a ***'\n"
    )
    environ = {**os.environ, VARIABLE: "KEY,OTHER", "KEY": "first", "OTHER": "second"}
    subprocess.run([sys.executable, "-c", program], env=environ, check=True)
