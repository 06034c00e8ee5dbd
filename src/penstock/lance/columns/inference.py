"""What an SQL expression computes: the type of its values, and the fields it reads."""

import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.errors import InvalidRequest, PenstockError, Unavailable
from penstock.lance.columns.fields import SYSTEM_COLUMNS, show_path
from penstock.lance.doors import lance, pa
from penstock.lance.errors import translated
from penstock.lance.expressions.check import read_expression

OUT = "__computed"
# Functions that give another value each time; the second kind needs no brackets.
UNSTABLE = {"random", "rand", "uuid", "gen_random_uuid", "now", "today"}
UNSTABLE_WORDS = {"current_timestamp", "current_date", "current_time", "localtimestamp"}
_PROJECTION = re.compile(r"LanceRead: .*?projection=\[(.*)\], num_fragments=", re.DOTALL)


def infer(
    dataset: "lance.LanceDataset", name: str, expression: str
) -> "tuple[pa.DataType, list[str]]":
    """The type of an expression's values, and the paths of the fields that it reads."""
    what = f"the expression of {name}"
    parsed = read_expression(what, expression)
    _check_stable(what, parsed.words)
    # With row addresses, because Lance does not scan for constants alone.
    scanner = dataset.scanner(columns={OUT: parsed.text}, with_row_address=True)
    kind = scanner.projected_schema.field(OUT).type
    if pa.types.is_null(kind):
        raise InvalidRequest(f"{what} has no type", detail="use CAST(NULL AS a type)")
    match = _PROJECTION.search(scanner.explain_plan())
    inputs = _split_paths(match[1], _list_paths(dataset)) if match else None
    if inputs is None:
        raise InvalidRequest(f"{what} has inputs that cannot be told apart", detail="rename them")
    return kind, inputs


def check_alike(dataset: "lance.LanceDataset", expression: str, kind: "pa.DataType") -> bool:
    """Whether Lance accepts an expression over a table, and gives it this type."""
    try:
        with translated():
            return bool(infer(dataset, OUT, expression)[0] == kind)
    except Unavailable:
        raise
    except PenstockError:
        return False


def make_empty(schema: "pa.Schema") -> "lance.LanceDataset":
    """An empty in-memory table with that schema, to ask Lance about."""
    return lance.write_dataset(schema.empty_table(), f"memory://{uuid.uuid4().hex}")


def _check_stable(what: str, words: Sequence[str]) -> None:
    """Refuse expressions that can give another value for the same row."""
    for token, following in zip(words, [*words[1:], ""], strict=True):
        word = token.lower()
        if word in UNSTABLE_WORDS or (word in UNSTABLE and following == "("):
            raise InvalidRequest(
                f"{what} uses {word}, which is not the same each time",
                detail="use only what a row itself says",
            )
        if word.strip("`") in SYSTEM_COLUMNS:
            raise InvalidRequest(
                f"{what} reads {word}, which Lance may change", detail="read columns of the table"
            )


def _list_paths(dataset: "lance.LanceDataset") -> list[str]:
    """Every field that an expression can read, longest path first."""

    def walk(fields: Any, parent: tuple[str, ...]) -> Iterator[str]:
        for field in fields:
            path = (*parent, field.name())
            yield show_path(path)
            yield from walk(field.children(), path)

    return sorted(walk(dataset.lance_schema.fields(), ()), key=len, reverse=True)


def _split_paths(text: str, known: Sequence[str]) -> list[str] | None:
    """Split a list of paths at its commas; some commas may be part of a name."""
    if not text:
        return []
    for path in known:
        if text == path:
            return [path]
        if text.startswith(f"{path}, "):
            rest = _split_paths(text[len(path) + 2 :], known)
            if rest is not None:
                return [path, *rest]
    return None
