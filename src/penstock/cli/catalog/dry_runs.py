"""What decides whether a change would be refused: dry runs ask before they promise anything."""

from collections.abc import Iterator, Sequence

from penstock.errors import NamespaceNotFound, NotFound, TableAlreadyExists, TableInUse
from penstock.model.identifiers import Identifier
from penstock.sdk.connection.names import show_id
from penstock.sdk.lake import Lake
from penstock.sdk.tables.dependents import Dependent
from penstock.sdk.tables.table import Table
from penstock.sdk.views.iceberg_views import IcebergView
from penstock.sdk.views.view import View


def check_free(lake: Lake, id: Identifier) -> None:
    """Refuse a new name that something has, or whose namespace is missing."""
    for find in (Lake.open, Lake.function):
        try:
            find(lake, id)
        except NamespaceNotFound:
            raise
        except NotFound:
            continue
        raise TableAlreadyExists(
            f"{show_id(id)} already exists", detail="choose another name, or drop it first"
        )


def find_renamed(
    table: Table | View | IcebergView, *, cascade: bool = False, force: bool = False
) -> list[str]:
    """What knows something by its name; raises where that refuses a new one."""
    found = table.dependents()
    names = [each.name for each in _list_naming(found.dependents)]
    if names and not (cascade or force):
        raise TableInUse(
            f"{table.name} is read under this name by {', '.join(names)}",
            detail="use --cascade to let them follow, or --force to let them break",
        )
    return names


def find_dropped(view: Table | View | IcebergView, *, cascade: bool = False) -> list[str]:
    """The views that a drop takes along; raises where what reads it refuses that."""
    found = view.dependents()
    hidden = found.hidden
    readers = [each for each in found if each.kind != "computed_column"]
    names = list(dict.fromkeys(each.name for each in readers))
    if (names and not cascade) or hidden:
        told = [*names, *([f"{hidden} that you may not read"] if hidden else [])]
        raise TableInUse(
            f"{view.name} is read by {', '.join(told)}",
            detail="ask who owns them to drop them first"
            if hidden
            else "drop these first, or use --cascade to drop them along with it",
        )
    return names


def _list_naming(dependents: Sequence[Dependent]) -> Iterator[Dependent]:
    """Iceberg views that name a table, also by way of each other; what is further on does not."""
    for each in dependents:
        if each.kind == "iceberg_view":
            yield each
            yield from _list_naming(each.dependents)
