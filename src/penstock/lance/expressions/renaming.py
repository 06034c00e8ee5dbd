"""Write an expression of Lance's SQL with other names for columns."""

from collections.abc import Mapping

from penstock.lance.expressions.check import read_expression


def rename_columns(what: str, sql: str, names: Mapping[str, str]) -> str:
    """The expression with the new names of columns, by their old ones; all change at once.

    Whoever asks for it reads the result again: which column a name in another case means, and
    whether Lance can read a new name, only Lance knows.
    """
    parsed = read_expression(what, sql)
    folded = {old.lower(): new for old, new in names.items()}
    pieces, at = [], 0
    for start, end in parsed.columns:
        word = parsed.text[start:end]
        new = names.get(_unquote(word)) if word[0] == "`" else folded.get(word.lower())
        if new is not None:
            pieces += [parsed.text[at:start], _quote(new)]
            at = end
    return "".join([*pieces, parsed.text[at:]])


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _unquote(word: str) -> str:
    return word[1:-1].replace("``", "`")
