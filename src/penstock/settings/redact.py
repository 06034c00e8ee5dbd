"""What of a setting may be shown: passwords and object store options are hidden."""

import re
from collections.abc import Mapping

HIDDEN = "***"

# Greedy up to the last "@": hiding too much of an odd URL beats showing a piece of its password.
_USER_PASSWORD = re.compile(r"^([^:]*://[^:@/?]*):.*@", re.DOTALL)
_QUERY_PASSWORD = re.compile(r"([?&][^=&]*password)=[^&]*", re.IGNORECASE)


def redact(key: str, value: object) -> object:
    """The value of the dotted key, fit for a screen or a log."""
    if key == "storage.options":
        return dict.fromkeys(value, HIDDEN) if isinstance(value, Mapping) else HIDDEN
    if key == "database.url" and isinstance(value, str):
        return redact_url(value)
    return value


def redact_url(url: str) -> str:
    """A database URL without its passwords."""
    return _QUERY_PASSWORD.sub(rf"\1={HIDDEN}", _USER_PASSWORD.sub(rf"\1:{HIDDEN}@", url))
