"""Settings of what is stored: files, records, versions and views."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct, field

# A path, or a URI with a scheme that the object store knows.
_PLACE = r"^((s3|gs|az|memory|file)://|(?![^/]*://))"
_PLACE_WANTED = "a path or an s3://, gs://, az://, file:// or memory:// URI"

Place = Annotated[str, Meta(pattern=_PLACE, min_length=1)]


class StorageSettings(Struct, frozen=True, kw_only=True):
    """Where the files of the catalog and of the tables are."""

    data: Annotated[
        str,
        Meta(
            min_length=1,
            description="Folder of the catalog and the lake.",
            extra={"flag": "--data", "wanted": "the path of a folder"},
        ),
    ] = "./penstock-data"
    root: Annotated[
        str,
        Meta(
            pattern=_PLACE,
            description="Where new tables go: a path or an `s3://`, `gs://` or `az://` URI; "
            "empty means `lake` in the data folder.",
            extra={"wanted": _PLACE_WANTED},
        ),
    ] = ""
    allowed_roots: Annotated[
        tuple[Place, ...],
        Meta(
            description="Further places where tables may be registered.",
            extra={"wanted": f"a list, each entry {_PLACE_WANTED}"},
        ),
    ] = ()
    vend_role: Annotated[
        str,
        Meta(
            pattern=r"^(|arn:[a-z0-9-]+:iam::\d*:role/[\w+=,.@/-]+)$",
            description="The AWS role that clients get credentials of, each for one table on S3; "
            "empty to give none.",
            extra={"wanted": "the ARN of a role"},
        ),
    ] = ""
    vend_seconds: Annotated[
        int, Meta(ge=900, le=43_200, description="How long such credentials last.")
    ] = 3600
    vend_endpoint: Annotated[
        str,
        Meta(
            pattern=r"^(|https?://[^\s/]+)$",
            description="Address of the token service; empty for that of the region.",
            extra={"wanted": "an http:// or https:// address without a path"},
        ),
    ] = ""
    min_free_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description="With less than that free on the disk of the lake or of a SQLite catalog, "
            "the server is not ready.",
        ),
    ] = 67_108_864
    cache_bytes: Annotated[
        int, Meta(ge=0, description="Memory for what Lance keeps of indexes and file metadata.")
    ] = 268_435_456
    options: Annotated[
        Mapping[str, str],
        Meta(
            description="Options for the object store client, such as its region and keys; "
            "their values are never printed.",
        ),
    ] = field(default_factory=dict)


class DatabaseSettings(Struct, frozen=True, kw_only=True):
    """Where the catalog keeps its records."""

    url: Annotated[
        str,
        Meta(
            pattern=r"^(?:|sqlite:///.+|postgres(?:ql)?://.+)$",
            description="`sqlite:///relative/path`, `sqlite:////absolute/path` or "
            "`postgresql://user:password@host/name`; empty means `catalog.sqlite` in the data "
            "folder.",
            extra={"flag": "--database", "wanted": "sqlite:///PATH or postgresql://..."},
        ),
    ] = ""
    pool_size: Annotated[
        int, Meta(ge=1, description="How many connections to PostgreSQL are kept.")
    ] = 8


class CatalogSettings(Struct, frozen=True, kw_only=True):
    """How the catalog treats versions and what it cleans up."""

    begin_anew: Annotated[
        bool,
        Meta(
            description="Whether a catalog may take a lake over that belongs to another one, whose "
            "tables it does not know; for one start.",
            extra={"flag": "--begin-anew"},
        ),
    ] = False
    managed_versions: Annotated[
        bool, Meta(description="Whether the catalog arbitrates commits of tables declared here.")
    ] = True
    transaction_days: Annotated[
        int, Meta(ge=0, description="How long a finished transaction can be described.")
    ] = 7
    idempotency_seconds: Annotated[
        int,
        Meta(ge=60, description="How long a request that carries an `Idempotency-Key` is known."),
    ] = 1800
    staged_seconds: Annotated[
        int,
        Meta(
            ge=0,
            description="Age after which a staged manifest that never became a version is removed.",
        ),
    ] = 3600
    maintain_seconds: Annotated[
        int, Meta(ge=1, description="Pause between two rounds of maintenance.")
    ] = 300


class IcebergSettings(Struct, frozen=True, kw_only=True):
    """The Iceberg REST catalog under `/iceberg`."""

    warehouse: Annotated[
        str,
        Meta(
            pattern=r"^(?!(namespaces|views|tables|config|oauth)$)[A-Za-z0-9_-]{1,64}$",
            description="The name of the one warehouse, which is also the prefix of its paths.",
            extra={"wanted": "letters, digits, - and _; no word of the protocol's paths"},
        ),
    ] = "penstock"
