"""What can be set: one frozen struct per section, with each key's default, limits and meaning.

The reference page, `penstock config` and the error messages are all made from these fields.
"""

import os.path
from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

# A scheme, a host and perhaps a port, as browsers send it.
Origin = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9+.-]*://[^\s/*?#@,]+$")]


class Server(Struct, frozen=True, kw_only=True):
    """Where the server listens and what it accepts."""

    host: Annotated[
        str,
        Meta(
            min_length=1,
            description="Address the server listens on.",
            extra={"flag": "--host", "wanted": "an address of this machine, not empty"},
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Meta(
            ge=0,
            le=65535,
            description="Port the server listens on; 0 takes a free one.",
            extra={"flag": "--port"},
        ),
    ] = 2333
    insecure: Annotated[
        bool,
        Meta(
            description="Whether to listen beyond this machine without authentication.",
            extra={"flag": "--insecure"},
        ),
    ] = False
    allowed_origins: Annotated[
        tuple[Origin, ...],
        Meta(
            description="Web origins whose pages may use a server without authentication.",
            extra={"wanted": "a list of origins, each as https://console.example, without a path"},
        ),
    ] = ()
    max_json_bytes: Annotated[
        int, Meta(ge=1024, description="Size of the largest JSON body a request may have.")
    ] = 16_777_216
    max_page: Annotated[
        int, Meta(ge=1, description="Largest number of entries in one page of a listing.")
    ] = 10_000
    data_threads: Annotated[
        int, Meta(ge=1, le=256, description="How many data operations run at the same time.")
    ] = 8
    max_data_requests: Annotated[
        int,
        Meta(ge=1, description="How many data operations may run and wait before one is refused."),
    ] = 64
    max_head_bytes: Annotated[
        int,
        Meta(ge=1024, description="Size of the largest head, of path and headers, a request has."),
    ] = 65_536
    head_seconds: Annotated[
        int, Meta(ge=1, description="How long a client may take to send the head of a request.")
    ] = 10
    read_seconds: Annotated[
        int, Meta(ge=1, description="How long a client may be silent in the middle of a body.")
    ] = 60
    tls_certificate: Annotated[
        str,
        Meta(
            description="File with the certificate chain, in PEM; with it the server speaks TLS.",
            extra={"wanted": "the path of a file"},
        ),
    ] = ""
    tls_key: Annotated[
        str,
        Meta(
            description="File with the certificate's private key, in PEM.",
            extra={"wanted": "the path of a file"},
        ),
    ] = ""
    stop_seconds: Annotated[
        int, Meta(ge=0, description="How long a stop waits for requests in flight.")
    ] = 30


# A path, or a URI whose scheme the object store knows.
_PLACE = r"^((s3|gs|az|memory|file)://|(?![^/]*://))"
_PLACE_WANTED = "a path or an s3://, gs://, az://, file:// or memory:// URI"

Place = Annotated[str, Meta(pattern=_PLACE, min_length=1)]


class Storage(Struct, frozen=True, kw_only=True):
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


class Database(Struct, frozen=True, kw_only=True):
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


class Catalog(Struct, frozen=True, kw_only=True):
    """How the catalog treats versions and what it cleans up."""

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


class Iceberg(Struct, frozen=True, kw_only=True):
    """The Iceberg REST catalog under `/iceberg`."""

    warehouse: Annotated[
        str,
        Meta(
            pattern=r"^(?!(namespaces|views|tables|config|oauth)$)[A-Za-z0-9_-]{1,64}$",
            description="The name of the one warehouse, which is also the prefix of its paths.",
            extra={"wanted": "letters, digits, - and _; no word of the protocol's paths"},
        ),
    ] = "penstock"


# Our own addresses may do without encryption, for tests and for a proxy on this machine.
_ADDRESS = r"^(|https://[^\s]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/[^\s]*)?)$"
_ADDRESS_WANTED = "an https:// address, or an http:// one of this machine"

Algorithm = Annotated[str, Meta(pattern=r"^((RS|PS|ES)(256|384|512)|EdDSA|Ed25519)$")]


class Auth(Struct, frozen=True, kw_only=True):
    """Who may come in."""

    enabled: Annotated[bool, Meta(description="Whether every request needs a key or a token.")] = (
        False
    )
    token_seconds: Annotated[
        int,
        Meta(
            ge=10,
            le=86_400,
            description="How long a token from `/iceberg/v1/oauth/tokens` is valid.",
        ),
    ] = 3600
    oidc_issuer: Annotated[
        str,
        Meta(
            pattern=_ADDRESS,
            description="The OpenID Connect issuer whose tokens are accepted; empty for none.",
            extra={"wanted": _ADDRESS_WANTED},
        ),
    ] = ""
    oidc_audience: Annotated[
        tuple[str, ...],
        Meta(
            description="The audiences that a token may be for; needed with `oidc_issuer`.",
            extra={"wanted": "a list of texts"},
        ),
    ] = ()
    oidc_jwks_url: Annotated[
        str,
        Meta(
            pattern=_ADDRESS,
            description="Where the issuer's public keys are; empty to ask the issuer.",
            extra={"wanted": _ADDRESS_WANTED},
        ),
    ] = ""
    oidc_algorithms: Annotated[
        tuple[Algorithm, ...],
        Meta(
            min_length=1,
            description="The algorithms that a token may be signed with.",
            extra={"wanted": "a list of RS256, ES256 and the like, all of public keys"},
        ),
    ] = ("RS256", "ES256")
    oidc_principal_claim: Annotated[
        str, Meta(min_length=1, description="The claim that names the principal.")
    ] = "sub"
    oidc_groups_claim: Annotated[
        str, Meta(min_length=1, description="The claim that names the principal's groups.")
    ] = "groups"
    oidc_leeway_seconds: Annotated[
        int, Meta(ge=0, le=300, description="How far the issuer's clock may be from ours.")
    ] = 30
    requests_per_second: Annotated[
        int, Meta(ge=0, description="Requests a second of one principal; 0 for any number.")
    ] = 0
    failures_per_second: Annotated[
        int,
        Meta(
            ge=0,
            description="Requests a second of one address whose credentials are missing or wrong, "
            "before it is not listened to; 0 for any number.",
        ),
    ] = 20
    max_queries: Annotated[
        int, Meta(ge=0, description="Queries of one principal at the same time; 0 for any number.")
    ] = 32
    max_uploads: Annotated[
        int, Meta(ge=0, description="Uploads of one principal at the same time; 0 for any number.")
    ] = 8
    audit_file: Annotated[
        str,
        Meta(
            description="File that gets a line of JSON for each change; empty means `audit.jsonl` "
            "in the data folder.",
            extra={"wanted": "the path of a file"},
        ),
    ] = ""
    audit_days: Annotated[
        int, Meta(ge=1, description="How long the catalog can list what was audited.")
    ] = 90


class Jobs(Struct, frozen=True, kw_only=True):
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


class AutoBackfill(Struct, frozen=True, kw_only=True):
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


class AutoRefresh(Struct, frozen=True, kw_only=True):
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


class Runner(Struct, frozen=True, kw_only=True):
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


class Log(Struct, frozen=True, kw_only=True):
    """What is logged, and how."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="The least level logged.")
    ] = "info"
    format: Annotated[
        Literal["auto", "human", "json"],
        Meta(
            description="Shape of a log line; `human` and `json` tell every request in one, `auto` "
            "is `human` with the requests only on a terminal."
        ),
    ] = "auto"


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


def lake_root(settings: Settings) -> str:
    """Where new tables go: an absolute path, or a URI without a trailing slash."""
    root = settings.storage.root
    return _absolute_place(root) if root else _in_data(settings, "lake")


def allowed_roots(settings: Settings) -> tuple[str, ...]:
    """Further places where tables may be registered, in the shape of `lake_root`."""
    return tuple(_absolute_place(root) for root in settings.storage.allowed_roots)


def audit_file(settings: Settings) -> str:
    """The file that gets a line for each change."""
    return _absolute(settings.auth.audit_file or _in_data(settings, "audit.jsonl"))


def database_url(settings: Settings) -> str:
    """The database's URL; what follows `sqlite:///` is an absolute path."""
    url = settings.database.url
    if not url:
        return f"sqlite:///{_in_data(settings, 'catalog.sqlite')}"
    if url.startswith("sqlite:///"):
        return f"sqlite:///{_absolute(url.removeprefix('sqlite:///'))}"
    return url


def _in_data(settings: Settings, name: str) -> str:
    return _absolute(os.path.join(settings.storage.data, name))


def _absolute_place(place: str) -> str:
    path = place.removeprefix("file://")
    scheme, separator, rest = path.partition("://")
    return f"{scheme}://{rest.rstrip('/')}" if separator else _absolute(path)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))
