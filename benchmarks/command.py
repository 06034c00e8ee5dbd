"""A benchmark as a command: how much it measures, and where its figures go."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

Effort = TypeVar("Effort")
Figures = TypeVar("Figures")


def start(
    about: str | None,
    full: Effort,
    quick: Effort,
    run: Callable[[Effort, Path], Figures],
    show: Callable[[Figures], str],
) -> None:
    """Measure in a folder that is removed afterwards, and tell the figures."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="a smoke run, not for comparisons")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the raw figures there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        figures = run(quick if options.quick else full, Path(folder).resolve())
    print(show(figures))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures)))
