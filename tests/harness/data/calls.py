"""Files in which the calls of a function leave lines, and functions as bytes that leave them."""

import inspect
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle


def pickled(function: Any) -> bytes:
    """A function by value: workers don't have the tests' modules."""
    module = inspect.getmodule(function)
    if module is None or not module.__name__.startswith(("tests", "test_")):
        return bytes(cloudpickle.dumps(function))
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(function))
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def recorded(path: Path, row: Any) -> None:
    """Leave a line in a file, whichever process this is."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(handle, f"{row}\n".encode())
    finally:
        os.close(handle)


def take_calls(log: Path) -> list[str]:
    """The lines since the last time."""
    found = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return found


def count_calls(log: Path) -> int:
    """How many lines there are until now."""
    return log.read_text().count("\n") if log.exists() else 0


def slowly_double(log: Path) -> Callable[[int], int]:
    """A function that leaves a line for each row, of which it does fifty in a second."""

    def call(id: int) -> int:
        recorded(log, id)
        time.sleep(0.02)
        return id * 2

    return call


def slowly_split(text: str) -> Iterator[dict[str, str]]:
    """A chunker that does fifty rows in a second."""
    time.sleep(0.02)
    for word in text.split(" "):
        yield {"word": word}
