"""Locations that the settings name, as absolute paths and URIs."""

import os.path

from penstock.settings.sections import Settings


def lake_root(settings: Settings) -> str:
    """Where new tables go: an absolute path, or a URI without a trailing slash."""
    root = settings.storage.root
    return absolute_place(root) if root else _in_data(settings, "lake")


def allowed_roots(settings: Settings) -> tuple[str, ...]:
    """Further places where tables may be registered, in the form of `lake_root`."""
    return tuple(absolute_place(root) for root in settings.storage.allowed_roots)


def audit_file(settings: Settings) -> str:
    """The file with a line for each change."""
    return _absolute(settings.auth.audit_file or _in_data(settings, "audit.jsonl"))


def database_url(settings: Settings) -> str:
    """The database's URL; what follows `sqlite:///` is an absolute path."""
    url = settings.database.url
    if not url:
        return f"sqlite:///{_in_data(settings, 'catalog.sqlite')}"
    if url.startswith("sqlite:///"):
        return f"sqlite:///{_absolute(url.removeprefix('sqlite:///'))}"
    return url


def database_folder(settings: Settings) -> str:
    """The folder of a database file; empty for any other database."""
    url = database_url(settings)
    prefix = "sqlite:///"
    return os.path.dirname(url.removeprefix(prefix)) if url.startswith(prefix) else ""


def _in_data(settings: Settings, name: str) -> str:
    return _absolute(os.path.join(settings.storage.data, name))


def absolute_place(place: str) -> str:
    """A given path or URI, as an absolute path or a URI without a trailing slash."""
    path = place.removeprefix("file://")
    scheme, separator, rest = path.partition("://")
    return f"{scheme}://{rest.rstrip('/')}" if separator else _absolute(path)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))
