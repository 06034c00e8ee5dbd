"""SQL for locations: those below the lake's root are stored relative to it.

In our SQL, `relative($1)` is a location as stored and `absolute(t.location)` as everyone else sees
it; the root is in `lake_mark`. So moving a lake changes one row. A location stored as absolute
begins with `/` or contains `://`, which no path below a root does.
"""

import re
from functools import lru_cache

# The root with a trailing slash; empty before a server has started on the catalog.
ROOT = "(SELECT root FROM lake_mark WHERE name = 'catalog')"

_CALL = re.compile(r"\b(absolute|relative)\(([\w.$]+)\)")


@lru_cache(maxsize=1024)
def expand(sql: str) -> str:
    """Expand our two location functions to plain SQL."""
    return _CALL.sub(lambda found: _FORMS[found[1]](found[2]), sql)


def is_relative(column: str) -> str:
    """The SQL condition that a stored location is below the lake's root."""
    return f"({column} <> '' AND {column} NOT LIKE '/%' AND {column} NOT LIKE '%://%')"


def _absolute(column: str) -> str:
    return f"CASE WHEN {is_relative(column)} THEN {ROOT} || {column} ELSE {column} END"


def _relative(value: str) -> str:
    text = f"CAST({value} AS TEXT)"
    return (
        f"CASE WHEN substr({text}, 1, length({ROOT})) = {ROOT} "
        f"THEN substr({text}, length({ROOT}) + 1) ELSE {text} END"
    )


_FORMS = {"absolute": _absolute, "relative": _relative}
