"""Redact settings: hide passwords and object store options."""

import re
from collections.abc import Mapping

import msgspec

HIDDEN = "***"

# Greedy up to the last "@": better hide too much of an odd URL than show part of its password.
_USER_PASSWORD = re.compile(r"^([^:]*://[^:@/?]*):.*@", re.DOTALL)
_SECRET = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)
_QUERY_PASSWORD = re.compile(r"([?&][^=&]*password)=[^&]*", re.IGNORECASE)


def redact(key: str, value: object) -> object:
    """The value of the dotted key, safe for a screen or a log."""
    if key == "storage.options":
        return dict.fromkeys(value, HIDDEN) if isinstance(value, Mapping) else HIDDEN
    if key == "clusters":
        if not isinstance(value, Mapping):
            return HIDDEN
        return {name: _redact_cluster(cluster) for name, cluster in value.items()}
    if key == "auth.oidc_client_secret" and value:
        return HIDDEN
    if key == "database.url" and isinstance(value, str):
        return redact_url(value)
    return value


def _redact_cluster(cluster: object) -> object:
    """A cluster as plain data; Spark settings that look secret are hidden."""
    shown: object = msgspec.to_builtins(cluster)
    conf = shown.get("conf") if isinstance(shown, dict) else None
    if not isinstance(shown, dict) or not isinstance(conf, dict):
        return shown
    return shown | {
        "conf": {name: HIDDEN if _SECRET.search(name) else text for name, text in conf.items()}
    }


def redact_url(url: str) -> str:
    """A database URL without its passwords."""
    return _QUERY_PASSWORD.sub(rf"\1={HIDDEN}", _USER_PASSWORD.sub(rf"\1:{HIDDEN}@", url))
