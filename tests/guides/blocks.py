"""The blocks of code of a page, and what the page says that they print."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.harness.root import ROOT

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Begins what one block of a program prints. Nothing else prints it.
MARK = "\x1e"


@dataclass(frozen=True)
class Block:
    kind: str
    code: str
    # What the ```output below it says, where … stands for anything.
    output: str | None = None


def list_blocks(page: str, kind: str) -> list[Block]:
    """The blocks of a kind on a page, in order."""
    return [each for each in _read((ROOT / page).read_text(encoding="utf-8")) if each.kind == kind]


def _read(text: str) -> Iterator[Block]:
    found = BLOCK.findall(text)
    for (kind, code), (below, output) in zip(found, [*found[1:], ("", "")], strict=True):
        if kind != "output":
            yield Block(kind, code, output if below == "output" else None)


def as_program(blocks: list[Block]) -> str:
    """One program of all blocks, which marks where the printing of each begins."""
    return "\n".join(f"print({MARK!r}, end='')\n{each.code}" for each in blocks)


def check_outputs(blocks: list[Block], printed: str) -> None:
    """Each block has printed what the page says."""
    for block, section in zip(blocks, printed.split(MARK)[1:], strict=True):
        if block.output is not None:
            assert matches(block.output, section), f"{block.code}\nprints\n{section}"


def matches(said: str, printed: str) -> bool:
    pattern = re.escape(_trimmed(said)).replace(re.escape("…"), ".*?")
    return re.fullmatch(pattern, _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
