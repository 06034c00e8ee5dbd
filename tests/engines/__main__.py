"""`python -m tests.engines`: published engines against a server, unmodified (`make engines`)."""

import argparse
import datetime
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from tests.engines.cache import Cache, Missing
from tests.engines.checks import Refused
from tests.engines.kit import run as kit
from tests.engines.lance_spark import run as lance_spark
from tests.engines.place import Place, open_place
from tests.engines.pyiceberg import run as pyiceberg
from tests.engines.results import Outcome, Result, Run, Runs, merge, table
from tests.engines.spark import run as spark
from tests.engines.together import run as together
from tests.engines.trino import run as trino


class Engine(Protocol):
    """A module that knows how to run one engine."""

    def run(self, place: Place) -> Iterator[Result]:
        """Carry out its operations."""

    def versions(self, place: Place) -> dict[str, str]:
        """What is used, fetching it first."""


ENGINES: dict[str, Engine] = {
    "kit": kit,
    "spark": spark,
    "trino": trino,
    "pyiceberg": pyiceberg,
    "together": together,
    "lance_spark": lance_spark,
}


def main() -> int:
    given = _parse(sys.argv[1:])
    runs: Runs = {}
    missing = False
    for name in given.only:
        try:
            runs[name] = _run(name, ENGINES[name], given.keep)
        except Missing as lack:
            missing = True
            print(f"{name}: not run: {lack}", flush=True)
    if runs:
        print("\n".join(["", *table(runs)]))
    if given.json:
        merge(given.json, runs)
    return 1 if missing or any(run.failures() for run in runs.values()) else 0


def _run(name: str, engine: Engine, keep: Path | None) -> Run:
    """One engine against a server of its own, told as it goes on."""
    started = time.monotonic()
    results = []
    with open_place(Cache()) as place:
        versions = engine.versions(place)
        print(f"{name}: {', '.join(map(' '.join, versions.items()))}", flush=True)
        try:
            for result in _carry_out(engine, place):
                results.append(result)
                note = f": {result.note}" if result.note else ""
                print(f"{name}: {result.outcome:5} {result.operation}{note}", flush=True)
        finally:
            if keep and place.log.exists():
                keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(place.log, keep / f"{name}.log")
    print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
    return Run(datetime.datetime.now(datetime.UTC).date(), versions, results)


def _carry_out(engine: Engine, place: Place) -> Iterator[Result]:
    try:
        yield from engine.run(place)
    except Refused as error:
        yield Result("start", Outcome.FAILS, str(error))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.engines", description=__doc__)
    parser.add_argument("--only", type=_names, default=list(ENGINES), help=", ".join(ENGINES))
    parser.add_argument("--json", type=Path, metavar="FILE", help="put the results there")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep engines' own logs there")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    names = [each for each in text.split(",") if each]
    if unknown := sorted(set(names) - ENGINES.keys()):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(ENGINES)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
