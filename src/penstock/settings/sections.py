"""What can be set: one frozen struct per section, with each key's default, limits and meaning.

The reference page, `penstock config` and the error messages are all made from these fields.
"""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct, field

from penstock.settings.serving import Auth, Log, Server
from penstock.settings.storing import Catalog, Database, Iceberg, Storage
from penstock.settings.working import AutoBackfill, AutoRefresh, Jobs, Runner


class Cluster(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One Spark cluster: the address of its master or of its Connect server, and Spark's conf."""

    master: str = ""
    remote: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.master) == bool(self.remote):
            raise ValueError("a cluster has either a master or a remote")


ClusterName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
Clusters = Annotated[
    Mapping[ClusterName, Cluster],
    Meta(
        description="The Spark clusters that a request can name: each has `master` or `remote`, "
        "and `conf` with Spark's own settings; `local` is there in any case.",
        extra={"wanted": "tables [clusters.NAME], each with either master or remote, and conf"},
    ),
]

LOCAL = Cluster(master="local[*,4]")


class Settings(Struct, frozen=True, kw_only=True):
    """All settings of one program, read once at its start."""

    server: Server = Server()
    storage: Storage = Storage()
    database: Database = Database()
    catalog: Catalog = Catalog()
    iceberg: Iceberg = Iceberg()
    auth: Auth = Auth()
    jobs: Jobs = Jobs()
    auto_backfill: AutoBackfill = AutoBackfill()
    auto_refresh: AutoRefresh = AutoRefresh()
    runner: Runner = Runner()
    clusters: Clusters = field(default_factory=lambda: {"local": LOCAL})
    log: Log = Log()


def clusters_of(settings: Settings) -> dict[str, Cluster]:
    """Every cluster by its name, `local` among them."""
    return {"local": LOCAL, **settings.clusters}
