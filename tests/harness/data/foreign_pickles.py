"""Pickles as Geneva's client makes them: of objects whose classes only its modules have."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tests.harness.data.calls import pickled

Named = Callable[[str, str], type]


def dump(make: Callable[[Named], Any]) -> bytes:
    """A pickle that names classes of modules which are there only while it is made."""
    made: dict[str, ModuleType] = {}

    def named(module: str, name: str) -> type:
        parts = module.split(".")
        for count in range(1, len(parts) + 1):
            path = ".".join(parts[:count])
            made.setdefault(path, ModuleType(path))
            sys.modules[path] = made[path]
        kind = type(name, (), {"__module__": module})
        setattr(made[module], name, kind)
        return kind

    try:
        return pickled(make(named))
    finally:
        for path in made:
            del sys.modules[path]


def wrap(func: Any, name: str = "UDF", *, skips: bool = False, **state: Any) -> bytes:
    """A function in an object of that client's; it may say that rows which fail are skipped."""

    def make(named: Named) -> Any:
        handling = None
        if skips:
            skip = fill(named("geneva.debug.error_store", "Skip"), exceptions=(Exception,))
            config = named("geneva.debug.error_store", "ErrorHandlingConfig")
            handling = fill(config, _matchers=[skip])
        kind = named("geneva.transformer", name)
        return fill(kind, func=func, name="f", manifest=None, error_handling=handling, **state)

    return dump(make)


def fill(kind: type, **state: Any) -> Any:
    """An object with these attributes."""
    made = kind()
    made.__dict__.update(state)
    return made
