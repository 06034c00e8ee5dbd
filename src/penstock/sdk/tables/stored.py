"""What tables and materialized views have in common: rows that are stored, columns, history."""

from typing import TYPE_CHECKING, Any, Self

from penstock.errors import PenstockError
from penstock.sdk.connection.names import Name, read_new_id
from penstock.sdk.connection.optional_libraries import load
from penstock.sdk.connection.other_clients import namespace_client
from penstock.sdk.pictures.cells import rows_table
from penstock.sdk.show import show_filler
from penstock.sdk.tables.columns import Columns
from penstock.sdk.tables.history import History
from penstock.sdk.tables.readable import Readable
from penstock.sdk.tables.upkeep import Upkeep

if TYPE_CHECKING:
    import lance

# How many rows a notebook shows.
SHOWN = 5


class Stored(Readable, Columns, History, Upkeep):
    """A name with rows of its own, on its main branch at the newest version unless asked else."""

    def describe(self) -> dict[str, Any]:
        """Location, properties, version, schema and statistics, as the server tells them."""
        body = {"load_detailed_metadata": True, "branch": self._branch, "version": self._at}
        found: dict[str, Any] = self._read("describe", body)
        return found

    def location(self) -> str:
        """Where its files are."""
        return str(self._read("describe", None)["location"])

    def to_lance(self) -> "lance.LanceDataset":
        """The dataset itself, for all that Lance can do; commits go through the catalog."""
        library: Any = load("lance", "to_lance()")
        client = namespace_client(self._wire)
        found: lance.LanceDataset = library.dataset(namespace_client=client, table_id=list(self.id))
        if self._branch is not None:
            found = found.checkout_version((self._branch, self._at))
        elif self._at is not None:
            found = found.checkout_version(self._at)
        return found

    def rename(self, name: Name, *, cascade: bool = False, force: bool = False) -> Self:
        """Give it another name, and return it under that.

        A name without a namespace stays in its own; `shop.items` moves it. Materialized views that
        read it follow. Iceberg views know it by its name, so they refuse this; with `cascade` they
        follow, and `force` lets them break.
        """
        wanted = read_new_id(name, self.id)
        body = {"new_table_name": wanted[-1], "new_namespace_id": list(wanted[:-1])}
        self._change("rename", body, cascade=cascade, force=force)
        return type(self)(self._wire, wanted, branch=self._branch)

    def __repr__(self) -> str:
        kind = type(self).__name__
        try:
            shown = f"version {self.version()}, {self.count():,} rows"
        except PenstockError as error:
            shown = error.message
        where = f" on {self._branch}" if self._branch else ""
        return f"<{kind} {self.name}{where}, {shown}>"

    def _repr_html_(self) -> str:
        # What is not known without looking at rows is not waited for.
        fillers = {
            name: show_filler(each) for name, each in self._list_computed(count_rows=False).items()
        }
        count = self.count()
        shown = f", of which {SHOWN} are shown" if count > SHOWN else ""
        where = f" on {self._branch}" if self._branch else ""
        note = f"version {self.version()}, {count:,} row{'' if count == 1 else 's'}{shown}"
        title = f"{type(self).__name__} {self.name}{where}"
        return rows_table(title, self._query()._look(SHOWN), fillers, note)
