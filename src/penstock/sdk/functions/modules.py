"""Tell the user's own modules, which workers don't have, from installed ones."""

import sys
import sysconfig
from pathlib import Path
from types import ModuleType

OURS = "penstock"
# Folders that package managers install to.
INSTALLED = {"site-packages", "dist-packages"}


def is_own(name: str) -> bool:
    """Whether a module is the user's: neither Python's, nor installed, nor ours."""
    top = name.partition(".")[0]
    if top == "__main__":
        return True
    if top in (OURS, "") or top in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or INSTALLED & set(Path(file).parts):
        return False
    return not Path(file).is_relative_to(sysconfig.get_path("stdlib"))


def list_own() -> list[ModuleType]:
    """The user's modules that are loaded."""
    found = [(name, module) for name, module in list(sys.modules.items()) if name != "__main__"]
    return [module for name, module in found if isinstance(module, ModuleType) and is_own(name)]
