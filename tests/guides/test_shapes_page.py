"""The page that tells which queries are followed incrementally says what the server does."""

import re

import pyarrow as pa
import pytest

from tests.harness.root import ROOT
from tests.harness.views.definitions import make

HOW = {"by rows": "rows", "by keys": "keys", "as a whole": "whole"}
# Types that only Spark knows.
DECLARED = {
    "explode": ("w", pa.string()),
    "max_by": ("top", pa.int64()),
    " OVER ": ("n", pa.int64()),
}
FIRST = {"max_by": "name", "name, count(*) OVER": "name", "id, count(*) OVER": "id"}


def list_rows() -> list[tuple[str, str, str]]:
    page = (ROOT / "docs/guides/views/query.md").read_text()
    table = page.split("| construct | for example |")[1].split("\n\n")[0]
    found = []
    for line in table.splitlines()[2:]:
        construct, example, followed, _ = (part.strip() for part in line.strip("|").split(" | "))
        found.append((construct, re.sub(r"^(`+)(.*)\1$", r"\2", example), followed))
    return found


@pytest.mark.parametrize(("construct", "example", "followed"), list_rows())
def test_every_construct_is_followed_as_the_page_says(
    construct: str, example: str, followed: str
) -> None:
    fields = [column for word, column in DECLARED.items() if word in example]
    first = next((name for word, name in FIRST.items() if word in example), None)
    if first is not None:
        fields.insert(0, (first, pa.int64() if first == "id" else pa.string()))
    made = make(example, schema=pa.schema(fields) if fields else None)
    assert made.shape == HOW[followed], (construct, made.obstacle)
    assert bool(made.obstacle) == (followed == "as a whole")
