"""Texts in quotes: what Spark reads in them, and the one way in which they are written for it."""

import re

ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
SPECIAL = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a",
           # For LIKE, which has the backslash left.
           "%": "\\%", "_": "\\_"}  # fmt: skip
# What Spark and sqlglot read alike.
WRITTEN = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
# Control characters that a text may have.
LINES = "\n\r\t"
# Spark puts its own settings, and what is in the environment, in place of ${…}, in texts too.
SUBSTITUTED = "${"


def read_string(text: str) -> str:
    """The value of a text in quotes of either kind, as Spark 4 reads it."""
    mark, inner = text[0], text[1:-1]
    pieces = re.split(r"(\\.)", inner, flags=re.DOTALL)
    # A doubled quote is one, but not after a backslash.
    single = [piece if n % 2 else piece.replace(mark * 2, mark) for n, piece in enumerate(pieces)]
    return ESCAPE.sub(_unescape, "".join(single))


def read_raw(text: str) -> str:
    """The value of r'…', which has no escapes."""
    return text[2:-1]


def write_string(value: str) -> str:
    """The value in single quotes, with no escapes but those that everybody reads alike."""
    return "'" + value.translate(WRITTEN) + "'"


def find_fault(value: str, kept: str = "") -> str | None:
    """What keeps a text or a name from being written for Spark; `kept` are controls that do not."""
    if SUBSTITUTED in value:
        return "${, which Spark would replace"
    for char in value:
        if (char < " " and char not in kept) or char == "\x7f":
            return "a control character"
        if "\ud800" <= char <= "\udfff":
            return "half a character"
    return None


def _unescape(found: re.Match[str]) -> str:
    four, eight, octal, other = found.groups()
    if four or eight:
        number = int(four or eight, 16)
        return chr(number) if number <= 0x10FFFF else "\ud800"
    if octal:
        return chr(int(octal, 8))
    return SPECIAL.get(other, other)
