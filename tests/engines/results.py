"""What was run with which engine, and what came of it; results.json keeps it for the docs."""

import datetime
import enum
from collections.abc import Iterator
from pathlib import Path

import msgspec

KEPT = Path(__file__).with_name("results.json")


class Outcome(enum.StrEnum):
    """What came of one operation."""

    WORKS = "works"
    LIMIT = "limit"
    FAILS = "fails"


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation of one engine; the note says what the engine said, or what was counted."""

    operation: str
    outcome: Outcome
    note: str = ""


class Run(msgspec.Struct, frozen=True):
    """All that was run with one engine."""

    date: datetime.date
    versions: dict[str, str]
    results: list[Result]

    def failures(self) -> list[Result]:
        return [each for each in self.results if each.outcome is Outcome.FAILS]


Runs = dict[str, Run]


def read(path: Path = KEPT) -> Runs:
    """The runs that a file holds; a file that is not there holds none."""
    return msgspec.json.decode(path.read_bytes(), type=Runs) if path.exists() else {}


def merge(path: Path, runs: Runs) -> None:
    """Put these runs into a file, in place of the same engines' earlier ones."""
    kept = {**read(path), **runs}
    text = msgspec.json.format(msgspec.json.encode(kept), indent=2)
    path.write_bytes(text + b"\n")


def grid(runs: Runs) -> Iterator[tuple[str, list[Result | None]]]:
    """Each operation that any of them carried out, and what came of it in each."""
    found = {name: {each.operation: each for each in run.results} for name, run in runs.items()}
    for operation in dict.fromkeys(each for results in found.values() for each in results):
        yield operation, [found[name].get(operation) for name in runs]


def table(runs: Runs) -> Iterator[str]:
    """The same for a terminal."""
    rows = list(grid(runs))
    width = max((len(operation) for operation, _ in rows), default=0)
    yield " " * width + "".join(f"  {name:>11}" for name in runs)
    for operation, cells in rows:
        marks = "".join(f"  {each.outcome if each else '-':>11}" for each in cells)
        yield f"{operation:{width}}{marks}"
