"""Settings of jobs: how they wait, which start by themselves, and the runner."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct, field


class JobSettings(Struct, frozen=True, kw_only=True):
    """How jobs wait, how long a runner may be silent, and how long finished ones are kept."""

    lease_seconds: Annotated[
        int,
        Meta(
            ge=1,
            description="How long a runner may be silent before its job goes to the next one.",
        ),
    ] = 30
    heartbeat_seconds: Annotated[
        int, Meta(ge=1, description="Pause between two reports of a runner about a job.")
    ] = 1
    max_attempts: Annotated[
        int, Meta(ge=1, description="How often a job is begun before it has failed for good.")
    ] = 3
    history_days: Annotated[
        int, Meta(ge=0, description="How long a finished job can be described.")
    ] = 30
    cluster: Annotated[
        str,
        Meta(min_length=1, description="The cluster of a request that names none."),
    ] = "local"


class AutoBackfillSettings(Struct, frozen=True, kw_only=True):
    """When columns that were added with `auto_backfill` are filled without a request."""

    enabled: Annotated[
        bool, Meta(description="Whether this server requests backfills by itself.")
    ] = True
    changes: Annotated[
        int,
        Meta(ge=1, description="How many new versions of a table make a backfill worthwhile."),
    ] = 1
    cooldown_seconds: Annotated[
        int,
        Meta(
            ge=0,
            description="How long a backfill waits after the first change, so that others join it, "
            "and after the last backfill of the column.",
        ),
    ] = 5


class AutoRefreshSettings(Struct, frozen=True, kw_only=True):
    """When materialized views that were created with `auto_refresh` are refreshed by themselves."""

    enabled: Annotated[
        bool, Meta(description="Whether this server requests refreshes by itself.")
    ] = True
    changes: Annotated[
        int,
        Meta(
            ge=1,
            description="How many new versions of what a view reads make a refresh worthwhile.",
        ),
    ] = 1
    rows: Annotated[
        int,
        Meta(
            ge=0,
            description="How many changed rows do, with fewer versions; 0: rows are not counted.",
        ),
    ] = 0
    cooldown_seconds: Annotated[
        int,
        Meta(
            ge=0,
            description="How long a refresh waits after the first change, so that others join it, "
            "and after the last refresh of the view.",
        ),
    ] = 5


class UpkeepSettings(Struct, frozen=True, kw_only=True):
    """When this server keeps tables small that have a policy for it."""

    enabled: Annotated[bool, Meta(description="Whether this server carries policies out.")] = True
    interval_seconds: Annotated[
        int,
        Meta(ge=1, description="How long a table is left alone after its policy was carried out."),
    ] = 300
    work_seconds: Annotated[
        int,
        Meta(
            ge=1,
            le=300,
            description="How long a run begins new pieces before other tables have their turn.",
        ),
    ] = 10


class RunnerSettings(Struct, frozen=True, kw_only=True):
    """The runner that works beside the server."""

    start: Annotated[
        bool,
        Meta(
            description="Whether `penstock serve` starts a runner as its child.",
            extra={"flag": "--no-runner"},
        ),
    ] = True
    jobs: Annotated[
        int, Meta(ge=1, le=64, description="How many jobs a runner works on at the same time.")
    ] = 2
    warm: Annotated[
        bool,
        Meta(description="Whether a runner starts its Spark session before the first job comes."),
    ] = True


class SecretSettings(Struct, frozen=True, kw_only=True):
    """Where a runner finds the secrets that registered functions name; nobody else has them."""

    variables: Annotated[
        Mapping[str, str],
        Meta(
            description="The variables of a runner's environment that hold secrets, by the names "
            "that functions have for them; they are taken out of it before Spark starts.",
        ),
    ] = field(default_factory=dict)
    folder: Annotated[
        str,
        Meta(
            description="A folder with a file for each other secret, named after it, as Docker and "
            "Kubernetes mount them, which is read for each job; empty for none.",
        ),
    ] = ""
