"""Processes that unpickle nothing: the server, and the runner beside Spark.

A pickle is a program. Only Spark's Python workers, which are processes of their own, may run one.
Python tells of every name that a pickle asks for before it looks it up, whichever library reads it,
so that it can be refused here. What has no names in it is a value, and harmless.
"""

import sys
from typing import Any


def refuse_pickles() -> None:
    """From now on, and for good, a pickle that names anything can't be read in this process."""
    sys.addaudithook(_check)


def _check(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "pickle.find_class":
        # Loaded by now: it is pickle's own event.
        from pickle import UnpicklingError

        raise UnpicklingError(f"a pickle asks for {arguments[0]}.{arguments[1]}: not read here")
