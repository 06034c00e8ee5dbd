"""Libraries that are not always installed: loaded by the calls that need them, or named."""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from penstock.errors import Unsupported
from penstock.extras import list_missing, show_install, show_some

# How to install each, where that is not its name; rows need pyarrow, and are what clients are for.
PACKAGES = {"lance": "pylance", "IPython": "ipython"}
ROWS = "pyarrow"


def check_extras(what: str, *extras: str, otherwise: str = "") -> None:
    """Refuse `what` where a module of its extras is missing."""
    if missing := list_missing(*extras):
        raise explain_missing(what, missing, *extras, otherwise=otherwise)


def explain_missing(
    what: str, names: Sequence[str], *extras: str, otherwise: str = ""
) -> Unsupported:
    """What says that `what` cannot be done without these modules."""
    noun = "package" if len(names) == 1 else "packages"
    return Unsupported(
        f"{what} needs the Python {noun} {show_some(names)}",
        detail=", or ".join(filter(None, (show_install(*extras), otherwise))),
    )


def load(name: str, what: str) -> ModuleType:
    """Load a library that `what` needs; says how to install it when it is missing."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise
        if package == ROWS:
            raise explain_missing(what, [ROWS], "client") from None
        raise Unsupported(
            f"{what} needs the Python package {package}",
            detail=f"pip install {PACKAGES.get(package, package)}",
        ) from None


class OptionalModule:
    """Stands for such a library until something of it is needed."""

    def __init__(self, name: str, what: str) -> None:
        self._name, self._what = name, what

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(load(self._name, self._what), attribute)
        # From now on this is found without coming here.
        setattr(self, attribute, found)
        return found
