"""Functions that were registered as source text: imported in workers, and nowhere else."""

import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.model.envelopes import ENTRY_FILE


def import_function(files: Mapping[str, str], entrypoint: str, sha256: str) -> Any:
    """What the entry file calls `entrypoint`; the other files can be imported by their names."""
    others = {path: text for path, text in files.items() if path != ENTRY_FILE}
    if others:
        _install(_Files(others))
    # Each function has a module of its own, which stays: dataclasses and pickles look it up.
    name = f"user_function_{sha256[:16]}"
    module = types.ModuleType(name)
    sys.modules[name] = module
    _run(files[ENTRY_FILE], f"<{name}.py>", module)
    return getattr(module, entrypoint)


class _Files(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules from texts."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self.roots = {path.partition("/")[0].removesuffix(".py") for path in files}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        base = fullname.replace(".", "/")
        for file, is_package in ((f"{base}.py", False), (f"{base}/__init__.py", True)):
            if file in self._files:
                return importlib.util.spec_from_loader(
                    fullname, self, origin=file, is_package=is_package
                )
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        assert module.__spec__ is not None
        file = str(module.__spec__.origin)
        _run(self._files[file], f"<{file}>", module)


def _install(files: _Files) -> None:
    """Import from these files first; what another function called so before is forgotten."""
    for name in [name for name in sys.modules if name.partition(".")[0] in files.roots]:
        del sys.modules[name]
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not (isinstance(finder, _Files) and finder.roots & files.roots)
    ]
    sys.meta_path.insert(0, files)


def _run(text: str, name: str, module: types.ModuleType) -> None:
    # Tracebacks show lines of a file that is nowhere.
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), module.__dict__)
