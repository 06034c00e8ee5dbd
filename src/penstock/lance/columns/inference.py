"""What an SQL expression says of the column that it computes: its type, and what it reads."""

import re
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import InvalidRequest, PenstockError, Unavailable
from penstock.lance.columns.fields import SYSTEM_COLUMNS, show_path
from penstock.lance.expressions.check import read_expression

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

OUT = "__computed"
# Functions whose value is not the same each time they are asked; the second kind needs no brackets.
UNSTABLE = {"random", "rand", "uuid", "gen_random_uuid", "now", "today"}
UNSTABLE_WORDS = {"current_timestamp", "current_date", "current_time", "localtimestamp"}
_PROJECTION = re.compile(r"LanceRead: .*?projection=\[(.*)\], num_fragments=", re.DOTALL)


def infer(dataset: "LanceDataset", name: str, expression: str) -> "tuple[pa.DataType, list[str]]":
    """The type of an expression's values, and the paths of the fields that it reads."""
    import pyarrow.types as t

    what = f"the expression of {name}"
    parsed = read_expression(what, expression)
    _check_stable(what, parsed.words)
    # With row addresses, because Lance does not scan for constants alone.
    scanner = dataset.scanner(columns={OUT: parsed.text}, with_row_address=True)
    kind = scanner.projected_schema.field(OUT).type
    if t.is_null(kind):
        raise InvalidRequest(f"{what} has no type", detail="use CAST(NULL AS a type)")
    match = _PROJECTION.search(scanner.explain_plan())
    inputs = _split_paths(match[1], _list_paths(dataset)) if match else None
    if inputs is None:
        raise InvalidRequest(f"{what} has inputs that cannot be told apart", detail="rename them")
    return kind, inputs


def check_alike(dataset: "LanceDataset", expression: str, kind: "pa.DataType") -> bool:
    """Whether Lance takes an expression over a table, and gives it this type."""
    from penstock.lance.errors import translated

    try:
        with translated():
            return bool(infer(dataset, OUT, expression)[0] == kind)
    except Unavailable:
        raise
    except PenstockError:
        return False


def make_empty(schema: "pa.Schema") -> "LanceDataset":
    """A table of that schema, in memory, to ask Lance about."""
    import lance

    return lance.write_dataset(schema.empty_table(), f"memory://{uuid.uuid4().hex}")


def _check_stable(what: str, words: Sequence[str]) -> None:
    """Refuse what would not give the same value for the same row each time."""
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


def _list_paths(dataset: "LanceDataset") -> list[str]:
    """Every field that an expression can read, the longest path first."""

    def walk(fields: Any, parent: tuple[str, ...]) -> Iterator[str]:
        for field in fields:
            path = (*parent, field.name())
            yield show_path(path)
            yield from walk(field.children(), path)

    return sorted(walk(dataset.lance_schema.fields(), ()), key=len, reverse=True)


def _split_paths(text: str, known: Sequence[str]) -> list[str] | None:
    """Split a list of paths at its commas, some of which may belong to a name."""
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
