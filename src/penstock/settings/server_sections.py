"""Settings of the server towards its clients: listening, authentication, logs."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

# A scheme, a host and perhaps a port, as browsers send it.
Origin = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9+.-]*://[^\s/*?#@,]+$")]


class ServerSettings(Struct, frozen=True, kw_only=True):
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
    console: Annotated[
        bool, Meta(description="Whether to serve the console's pages at `/console`.")
    ] = True
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
    query_seconds: Annotated[
        int,
        Meta(ge=1, description="How long a query may compute before its first or its next rows."),
    ] = 60
    sql_seconds: Annotated[
        int, Meta(ge=1, description="How long a statement of `/v1/sql` may take.")
    ] = 60
    sql_max_rows: Annotated[
        int,
        Meta(
            ge=1,
            # Spark counts rows of a LIMIT in 32 bits.
            le=2_000_000_000,
            description="How many rows the result of a statement may have.",
        ),
    ] = 1_000_000
    sql_max_bytes: Annotated[
        int,
        Meta(
            ge=1_048_576,
            le=1_073_741_824,
            description="How many bytes the result of a statement may have.",
        ),
    ] = 134_217_728
    flight_port: Annotated[
        int,
        Meta(
            ge=0,
            le=65535,
            description="Port for SQL by Arrow Flight, which lancedb's client expects at the port "
            "after the server's; 0 is none.",
        ),
    ] = 0
    flight_host: Annotated[
        str,
        Meta(
            min_length=1,
            description="Address that Flight listens on.",
            extra={"wanted": "an address of this machine, not empty"},
        ),
    ] = "127.0.0.1"
    max_batch_bytes: Annotated[
        int,
        Meta(
            ge=1_048_576,
            description="Memory that a compressed batch of rows may take once it is unpacked.",
        ),
    ] = 268_435_456
    max_head_bytes: Annotated[
        int,
        Meta(ge=1024, description="Size of the largest head, of path and headers, a request has."),
    ] = 65_536
    max_headers: Annotated[int, Meta(ge=16, description="How many headers a request may have.")] = (
        256
    )
    max_connections: Annotated[
        int,
        Meta(
            ge=16,
            description="How many connections there may be; three quarters of the process' file "
            "descriptors at most.",
        ),
    ] = 10_000
    max_address_connections: Annotated[
        int,
        Meta(
            ge=1,
            description="How many of them one address may have, of IPv6 one network of 64 bits; "
            "three quarters of all at most.",
        ),
    ] = 2_000
    idle_seconds: Annotated[
        int,
        Meta(
            ge=1,
            description="How long a connection stays open between two requests, once credentials "
            "were shown on it if they are needed; before that, 5 seconds.",
        ),
    ] = 75
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


# Loopback addresses may do without encryption, for tests and for a local proxy.
_ADDRESS = r"^(|https://[^\s]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/[^\s]*)?)$"
_ADDRESS_WANTED = "an https:// address, or an http:// one of this machine"

Algorithm = Annotated[str, Meta(pattern=r"^((RS|PS|ES)(256|384|512)|EdDSA|Ed25519)$")]


class AuthSettings(Struct, frozen=True, kw_only=True):
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
    session_seconds: Annotated[
        int,
        Meta(
            ge=60,
            le=2_592_000,
            description="How long somebody who signed in at the console stays signed in.",
        ),
    ] = 43_200
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
    oidc_client_id: Annotated[
        str,
        Meta(
            description="What the issuer knows the console as; empty if people sign in there with "
            "keys alone.",
        ),
    ] = ""
    oidc_client_secret: Annotated[
        str, Meta(description="The secret of that client; empty for one that has none.")
    ] = ""
    oidc_redirect_url: Annotated[
        str,
        Meta(
            pattern=_ADDRESS,
            description="Where the issuer sends people back to: the console's address, with "
            "`/console/api/signed-in` at its end; needed with `oidc_client_id`.",
            extra={"wanted": _ADDRESS_WANTED},
        ),
    ] = ""
    oidc_scope: Annotated[
        str, Meta(min_length=1, description="What the issuer is asked to tell of people.")
    ] = "openid"
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


class LogSettings(Struct, frozen=True, kw_only=True):
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
