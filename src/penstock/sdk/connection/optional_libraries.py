"""Optional libraries of the SDK, loaded by the calls that need them."""

from importlib import import_module
from types import ModuleType

from penstock.errors import Unsupported
from penstock.model.extras import explain_missing

# How to install each, where that is not its name; rows need pyarrow, and are what clients are for.
PACKAGES = {"lance": "pylance", "IPython": "ipython"}
ROWS = "pyarrow"


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
