"""String literals: how Spark reads them, and the one way in which we write them for it."""

import re

ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
SPECIAL = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a",
           # For LIKE, which keeps the backslash.
           "%": "\\%", "_": "\\_"}  # fmt: skip
# What Spark and sqlglot read alike.
WRITTEN = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
# Control characters that a string may have.
LINES = "\n\r\t"
# Spark replaces ${…} by its settings and the environment, even in strings.
SUBSTITUTED = "${"


def read_string(text: str) -> str:
    """The value of a string in quotes of either kind, as Spark 4 reads it."""
    mark, inner = text[0], text[1:-1]
    pieces = re.split(r"(\\.)", inner, flags=re.DOTALL)
    # A doubled quote is one, but not after a backslash.
    single = [piece if n % 2 else piece.replace(mark * 2, mark) for n, piece in enumerate(pieces)]
    return ESCAPE.sub(_unescape, "".join(single))


def read_raw(text: str) -> str:
    """The value of r'…', which has no escapes."""
    return text[2:-1]


def write_string(value: str) -> str:
    """The value in single quotes, with only escapes that everyone reads alike."""
    return "'" + value.translate(WRITTEN) + "'"


def find_fault(value: str, kept: str = "") -> str | None:
    """Why a string or a name can't be written for Spark; `kept` are allowed control characters."""
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
