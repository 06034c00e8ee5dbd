"""A lake: everything that one server has."""

from typing import TYPE_CHECKING

from penstock.sdk.connection import other_clients
from penstock.sdk.connection.names import Name, read_id
from penstock.sdk.contents.functions import Functions
from penstock.sdk.contents.views import Views
from penstock.sdk.jobs.job import Job, find_job, list_jobs
from penstock.sdk.pictures.markup import table
from penstock.sdk.rows.answers import ask_rows
from penstock.sdk.sql_result import SqlResult

if TYPE_CHECKING:
    from lance.namespace import RestNamespace
    from lancedb.db import DBConnection
    from pyiceberg.catalog.rest import RestCatalog


class Lake(Views, Functions):
    """A connection to a server; `penstock.connect` makes one. Threads may share it."""

    @property
    def url(self) -> str:
        return self._wire.url

    @property
    def why(self) -> str:
        """What made this server the one; empty where its address was given."""
        return self._wire.server.why

    # SQL

    def sql(
        self,
        statement: str,
        *,
        namespace: Name | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        dialect: str = "spark",
    ) -> SqlResult:
        """Run a query over tables and views, and return its rows; nothing is stored.

        namespace: where single names are looked up before the root.
        limit: keep so many rows.
        timeout: give up after so many seconds.
        """
        body = {
            "sql": statement,
            "namespace": None if namespace is None else list(read_id(namespace)),
            "limit": limit,
            "timeout_seconds": timeout,
            "dialect": dialect,
        }
        return SqlResult(ask_rows(self._wire, "/v1/sql", body, timeout))

    # Jobs

    def job(self, id: str) -> Job:
        """A job that exists, by its id or by as much of the beginning as tells it from others."""
        return find_job(self._wire, id)

    def jobs(
        self,
        *,
        status: str | None = None,
        kind: str | None = None,
        table: Name | None = None,
        limit: int | None = 100,
    ) -> list[Job]:
        """The newest jobs, at most so many; None is all.

        status: as of `Job.status`, in any case, or `in_progress` for all that wait or run.
        table: the table or view that they work on.
        """
        body = {
            "status": status,
            "kind": kind,
            "target": None if table is None else "$".join(read_id(table)),
        }
        return list_jobs(self._wire, body, limit)

    # Other clients

    def namespace_client(self) -> "RestNamespace":
        """pylance's client, for `lance.dataset(namespace_client=…, table_id=[…])`."""
        return other_clients.namespace_client(self._wire)

    def lancedb(self) -> "DBConnection":
        """A connection of lancedb to the same server."""
        return other_clients.lancedb(self._wire)

    def iceberg_catalog(self, name: str = "penstock", **properties: str) -> "RestCatalog":
        """pyiceberg's catalog of the Iceberg tables and views."""
        return other_clients.iceberg_catalog(self._wire, name, **properties)

    def readiness(self) -> dict[str, str]:
        """Whether the server can work: `status`, and what is wrong with which part."""
        return dict(self._wire.probe("/readyz"))

    def close(self) -> None:
        """Close the connection; a server that it started goes on until this process ends."""
        self._wire.close()

    def __enter__(self) -> "Lake":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Lake at {self._wire.server}>"

    def _repr_html_(self) -> str:
        kinds = {"table": self.tables(), "view": self.views()}
        rows = [(name, kind) for kind, names in kinds.items() for name in names]
        note = ", ".join(
            f"{len(names):,} {kind}{'' if len(names) == 1 else 's'}"
            for kind, names in kinds.items()
        )
        return table(f"Lake at {self._wire.server}", sorted(rows), ("name", "kind"), note)
