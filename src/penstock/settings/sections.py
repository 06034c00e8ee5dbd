"""All settings: one frozen struct per section, with each key's default, limits and meaning.

The reference page, `penstock config` and the error messages are generated from these fields.
"""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct, field

from penstock.settings.job_sections import (
    AutoBackfillSettings,
    AutoRefreshSettings,
    JobSettings,
    RunnerSettings,
    SecretSettings,
    UpkeepSettings,
)
from penstock.settings.server_sections import AuthSettings, LogSettings, ServerSettings
from penstock.settings.storage_sections import (
    CatalogSettings,
    DatabaseSettings,
    IcebergSettings,
    StorageSettings,
)


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

    server: ServerSettings = ServerSettings()
    storage: StorageSettings = StorageSettings()
    database: DatabaseSettings = DatabaseSettings()
    catalog: CatalogSettings = CatalogSettings()
    iceberg: IcebergSettings = IcebergSettings()
    auth: AuthSettings = AuthSettings()
    jobs: JobSettings = JobSettings()
    auto_backfill: AutoBackfillSettings = AutoBackfillSettings()
    auto_refresh: AutoRefreshSettings = AutoRefreshSettings()
    upkeep: UpkeepSettings = UpkeepSettings()
    runner: RunnerSettings = RunnerSettings()
    secrets: SecretSettings = SecretSettings()
    clusters: Clusters = field(default_factory=lambda: {"local": LOCAL})
    log: LogSettings = LogSettings()


def clusters_of(settings: Settings) -> dict[str, Cluster]:
    """Every cluster by name, including `local`."""
    return {"local": LOCAL, **settings.clusters}
