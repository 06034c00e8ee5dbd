"""Files in which the calls of a function leave lines, and functions as bytes that leave them."""

import inspect
import os
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
