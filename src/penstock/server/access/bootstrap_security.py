"""Set up a server's security at its start: the gate, the certificate, the child's key."""

import asyncio
import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from penstock.catalog.access import tokens
from penstock.catalog.access.audit import AuditLog
from penstock.catalog.access.permissions import AccessCache
from penstock.catalog.catalog import Catalog
from penstock.database.connect import connect
from penstock.errors import InvalidRequest
from penstock.model.principals import CHILD
from penstock.server.access.gate import Gate
from penstock.server.access.limits import Limiter, Quotas
from penstock.server.access.oidc import Oidc, Provider
from penstock.settings.places import audit_file, database_url
from penstock.settings.sections import Settings

log = logging.getLogger(__name__)

SIGNED_IN_PATH = "/console/api/signed-in"


def check_access(settings: Settings) -> None:
    """Refuse settings that would let everyone in by accident, or that authentication can't use."""
    server = settings.server
    hosts = (server.host, *((server.flight_host,) if server.flight_port else ()))
    open_to = [host for host in hosts if not is_loopback(host)]
    if open_to and not (settings.auth.enabled or server.insecure):
        raise InvalidRequest(
            f"listening on {open_to[0]} would let everybody in who reaches it",
            detail="set auth.enabled = true and make a key with 'penstock token create', "
            "or add --insecure",
        )
    auth = settings.auth
    if auth.oidc_issuer and not auth.enabled:
        raise InvalidRequest(
            "auth.oidc_issuer is set without auth.enabled, and nobody would be asked for a token",
            detail="set auth.enabled = true, or leave auth.oidc_issuer out",
        )
    if auth.oidc_issuer and not auth.oidc_audience:
        raise InvalidRequest(
            "auth.oidc_issuer is set without auth.oidc_audience",
            detail="name the audience that the issuer puts into tokens for this server",
        )
    if auth.oidc_client_id and not (auth.oidc_issuer and auth.oidc_redirect_url):
        raise InvalidRequest(
            "auth.oidc_client_id is set without auth.oidc_issuer and auth.oidc_redirect_url",
            detail="name the issuer, and where it sends people back to",
        )
    if auth.oidc_redirect_url and not auth.oidc_redirect_url.endswith(SIGNED_IN_PATH):
        raise InvalidRequest(
            f"auth.oidc_redirect_url does not end with {SIGNED_IN_PATH}",
            detail="name the console's own address for it",
        )
    if auth.oidc_jwks_url and not auth.oidc_issuer:
        raise InvalidRequest(
            "auth.oidc_jwks_url is set without auth.oidc_issuer", detail="name the issuer"
        )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def make_gate(
    settings: Settings, catalog: Catalog
) -> tuple[Gate | None, list[Coroutine[Any, Any, None]]]:
    """Make the gate, and start its background work."""
    auth = settings.auth
    if not auth.enabled:
        return None, []
    # First, because closing the gate also ends what follows.
    audit = open_audit(settings, catalog)
    watch = None
    if catalog.database.kind == "postgresql":
        watch = await connect(database_url(settings), 1)
    access, oidc = AccessCache(catalog.database, watch), None
    chores = [access.record_for_ever()]
    if auth.oidc_issuer:
        oidc = Oidc(
            Provider(
                auth.oidc_issuer,
                auth.oidc_audience,
                auth.oidc_jwks_url,
                auth.oidc_algorithms,
                auth.oidc_principal_claim,
                auth.oidc_groups_claim,
                auth.oidc_leeway_seconds,
            )
        )
        chores.append(oidc.keep())
    elif not await tokens.list_tokens(catalog.database):
        log.warning("nobody can come in yet: make a key with 'penstock token create'")
    limiter = Limiter(
        Quotas(
            auth.requests_per_second,
            auth.max_queries,
            auth.max_uploads,
            auth.failures_per_second,
        ),
        asyncio.get_running_loop().time,
    )
    chores.append(audit.keep())
    return Gate(access, auth.token_seconds, limiter, audit, oidc), chores


def open_audit(settings: Settings, catalog: Catalog) -> AuditLog:
    """Open the audit log, or raise an error that says why that failed."""
    file = Path(audit_file(settings))
    try:
        return AuditLog(catalog.database, file, settings.auth.audit_days)
    except OSError as error:
        raise InvalidRequest(
            f"auth.audit_file {file} cannot be opened: {error.strerror}",
            detail="name a file that the server's user may write",
        ) from error


async def make_child_key(catalog: Catalog) -> tuple[tokens.Token, str]:
    """A runner's key for the child; revokes keys that killed servers left here."""
    here = f"child of a server on {socket.gethostname()}, pid "
    for old in await tokens.list_tokens(catalog.database, CHILD):
        pid = old.note.removeprefix(here)
        if old.revoked_at is None and pid.isdecimal() and not _is_running(int(pid)):
            await tokens.revoke(catalog.database, old.id)
    clusters = tuple(catalog.queue.clusters)
    new = tokens.NewToken(CHILD, tokens.RUNNER, note=f"{here}{os.getpid()}", clusters=clusters)
    return await tokens.create(catalog.database, new)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid != os.getpid()


def read_tls(settings: Settings) -> dict[str, Any]:
    """uvicorn's TLS options; empty without a certificate."""
    certificate, key = settings.server.tls_certificate, settings.server.tls_key
    if bool(certificate) != bool(key):
        raise InvalidRequest(
            "server.tls_certificate and server.tls_key belong together", detail="set both"
        )
    if not certificate:
        return {}
    for name, file in (("certificate", certificate), ("key", key)):
        if not (os.path.isfile(file) and os.access(file, os.R_OK)):
            raise InvalidRequest(
                f"server.tls_{name} {file} cannot be read", detail="check the path and permissions"
            )
    try:
        # Nobody is there to enter a passphrase.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
    except (ssl.SSLError, ValueError, OSError) as error:
        is_other = getattr(error, "reason", None) == "KEY_VALUES_MISMATCH"
        why = "the key is another certificate's" if is_other else "they cannot be loaded"
        raise InvalidRequest(
            f"server.tls_certificate {certificate} and server.tls_key {key}: {why}",
            detail="name a certificate chain and its own private key, both in PEM, the key "
            "without a passphrase",
        ) from error
    return {"ssl_certfile": certificate, "ssl_keyfile": key}
