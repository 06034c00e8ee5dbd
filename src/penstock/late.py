"""Modules that are loaded when they are first used: the one way to import something heavy late.

A package with such modules names them in its `doors.py`. There a type checker reads plain imports,
and a program gets a `LateModule` for each, so that whoever needs one imports it at the top.
"""

from importlib import import_module
from typing import Any


class LateModule:
    """Stands for a module until something of it is needed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(self._name), attribute)
        # From now on this is found without coming here.
        setattr(self, attribute, found)
        return found

    def __reduce__(self) -> tuple[type["LateModule"], tuple[str]]:
        """Functions that are sent to workers take the name along, and nothing that was loaded."""
        return LateModule, (self._name,)
