"""Run a server: bind, open the catalog, answer, and close in order when told to stop."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator
from importlib.metadata import version
from types import FrameType
from typing import Any, cast

import uvicorn
import uvloop

from penstock.catalog import maintenance
from penstock.catalog.access import tokens
from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import auto_backfill
from penstock.catalog.jobs import keeper, leases
from penstock.catalog.jobs.due import TriggerRules
from penstock.catalog.jobs.queue import Queue
from penstock.catalog.materialized_views import auto_refresh, schedules
from penstock.catalog.names import lake_identity
from penstock.catalog.upkeep import keeper as upkeep
from penstock.catalog.upkeep.keeper import Rules
from penstock.database.connect import open_catalog
from penstock.database.interface import Database
from penstock.errors import PenstockError, Unavailable
from penstock.lance.storage import files
from penstock.lance.storage.credentials import Vendor
from penstock.lance.storage.lake import Lake
from penstock.server.access.bootstrap_security import (
    check_access,
    is_loopback,
    make_child_key,
    make_gate,
    read_tls,
)
from penstock.server.access.browser_origins import AllowedPages
from penstock.server.access.gate import Gate
from penstock.server.access.oidc_sign_in import Client, OidcSignIn
from penstock.server.app import App
from penstock.server.console.sessions import SessionRequests
from penstock.server.flight.endpoint import FlightEndpoint
from penstock.server.runner_api.child import RunnerChild, lease_prefix, make_child
from penstock.server.transport.connections import ConnectionTracker, TrackedConnection, make_limits
from penstock.server.transport.http import Limits
from penstock.server.transport.listener import Listener, raise_descriptors
from penstock.server.transport.protocol import (
    UNPROVEN_IDLE_SECONDS,
    ClientLimits,
    JoiningProtocol,
    make_protocol,
    watch,
)
from penstock.settings.places import allowed_roots, database_folder, database_url, lake_root
from penstock.settings.sections import Settings, clusters_of
from penstock.settings.storage_sections import StorageSettings

log = logging.getLogger(__name__)


def serve(settings: Settings, on_ready: Callable[[str], None], config: str = "") -> None:
    """Serve until SIGTERM or SIGINT; requests in flight are finished first."""
    uvloop.run(_serve(settings, on_ready, config))


async def open_parts(settings: Settings) -> Catalog:
    """Open the database and the lake that the settings name."""
    lake = Lake(lake_root(settings), allowed_roots(settings), dict(settings.storage.options))
    await lake.run(files.check_root, lake.place(lake.root))
    database = await _open_database(settings, lake)
    return Catalog(
        database,
        lake,
        managed_versions=settings.catalog.managed_versions,
        staged_seconds=settings.catalog.staged_seconds,
        transaction_days=settings.catalog.transaction_days,
        idempotency_seconds=settings.catalog.idempotency_seconds,
        cache_bytes=settings.storage.cache_bytes,
        data_threads=settings.server.data_threads,
        max_data_requests=settings.server.max_data_requests,
        database_folder=database_folder(settings),
        min_free_bytes=settings.storage.min_free_bytes,
        query_seconds=settings.server.query_seconds,
        max_batch_bytes=settings.server.max_batch_bytes,
        sql_seconds=settings.server.sql_seconds,
        sql_max_rows=settings.server.sql_max_rows,
        sql_max_bytes=settings.server.sql_max_bytes,
        vendor=_make_vendor(settings.storage),
        queue=Queue(
            lease_seconds=settings.jobs.lease_seconds,
            heartbeat_seconds=settings.jobs.heartbeat_seconds,
            max_attempts=settings.jobs.max_attempts,
            history_days=settings.jobs.history_days,
            clusters=tuple(clusters_of(settings)),
            default_cluster=settings.jobs.cluster,
        ),
    )


async def _open_database(settings: Settings, lake: Lake) -> Database:
    """Open the catalog's database, which must belong to the lake."""
    begin_anew = settings.catalog.begin_anew

    async def check_setup(database: Database) -> None:
        if not begin_anew:
            await lake_identity.check_setup(database, lake)

    url = database_url(settings)
    database = await open_catalog(url, settings.database.pool_size, check_setup)
    try:
        await lake_identity.claim(database, lake, begin_anew=begin_anew)
    except BaseException:
        await database.close()
        raise
    return database


def _make_vendor(storage: StorageSettings) -> Vendor | None:
    if not storage.vend_role:
        return None
    return Vendor(storage.vend_role, storage.vend_seconds, storage.options, storage.vend_endpoint)


def bind(host: str, port: int) -> socket.socket:
    """Open a listening socket, or raise an error that says why that failed."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        in_use = error.errno == errno.EADDRINUSE
        raise Unavailable(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            detail="stop what uses the port, or choose another with --port"
            if in_use
            else "choose an address of this machine with --host",
        ) from error
    return listener


async def _serve(settings: Settings, on_ready: Callable[[str], None], config: str) -> None:
    check_access(settings)
    tls = read_tls(settings)
    listener = bind(settings.server.host, settings.server.port)
    try:
        catalog = await open_parts(settings)
        try:
            gate, gate_chores = await make_gate(settings, catalog)
        except BaseException:
            await catalog.close()
            raise
    except BaseException:
        listener.close()
        raise
    if not (settings.auth.enabled or is_loopback(settings.server.host)):
        log.warning("listening beyond this machine without authentication")
    limits = Limits(settings.server.max_json_bytes, settings.server.max_page)
    app = App(
        catalog,
        limits,
        settings.iceberg.warehouse,
        gate,
        AllowedPages(settings.server.allowed_origins, is_loopback(settings.server.host)),
        _make_sessions(settings, catalog, gate),
    )
    flight = FlightEndpoint(app, gate)
    server = _Server(
        uvicorn.Config(
            app,
            http=make_protocol(_make_patience(settings)),
            **tls,
            loop="none",
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            backlog=2048,
            timeout_keep_alive=UNPROVEN_IDLE_SECONDS,
            timeout_graceful_shutdown=settings.server.stop_seconds,
        )
    )
    chores = [
        asyncio.create_task(maintenance.run_for_ever(catalog, settings.catalog.maintain_seconds)),
        asyncio.create_task(keeper.run_for_ever(catalog)),
        *(asyncio.create_task(chore) for chore in gate_chores),
    ]
    if settings.auto_backfill.enabled:
        rules = TriggerRules(
            settings.auto_backfill.changes, settings.auto_backfill.cooldown_seconds
        )
        chores.append(asyncio.create_task(auto_backfill.run_for_ever(catalog, rules)))
    if settings.auto_refresh.enabled:
        auto = settings.auto_refresh
        rules = TriggerRules(auto.changes, auto.cooldown_seconds, auto.rows)
        chores.append(asyncio.create_task(auto_refresh.run_for_ever(catalog, rules)))
        chores.append(asyncio.create_task(schedules.run_for_ever(catalog)))
    if settings.upkeep.enabled:
        pace = Rules(settings.upkeep.interval_seconds, settings.upkeep.work_seconds)
        chores.append(asyncio.create_task(upkeep.run_for_ever(catalog, pace)))
    chores.append(asyncio.create_task(watch(server.server_state.connections)))
    host, port = listener.getsockname()[:2]
    child_key = (
        await make_child_key(catalog) if gate is not None and settings.runner.start else None
    )
    if settings.server.tls_certificate and settings.runner.start:
        # The child need not know the certificate's name: it connects on this machine.
        server.inner = bind("127.0.0.1", 0)
        inner_host, inner_port = server.inner.getsockname()[:2]
        child = _make_child(settings, catalog, inner_host, inner_port, config, child_key)
    else:
        child = _make_child(settings, catalog, host, port, config, child_key)

    def begin() -> None:
        scheme = "https" if settings.server.tls_certificate else "http"
        on_ready(f"{scheme}://{_bracket(host)}:{port}")
        if child is not None:
            catalog.queue.note_runner([settings.jobs.cluster])
            child.start()

    server.handshake_seconds = settings.server.head_seconds
    server.tracker = ConnectionTracker(
        make_limits(
            settings.server.max_connections,
            settings.server.max_address_connections,
            raise_descriptors(),
        )
    )
    server.on_started, server.on_exit = begin, catalog.queue.close
    # While the server still answers, so that the runner can give its jobs back.
    server.before_exit = None if child is None else child.stop
    try:
        if settings.server.flight_port:
            await flight.start(settings.server.flight_host, settings.server.flight_port, tls)
        await server.serve(sockets=[listener])
    finally:
        await flight.stop(settings.server.stop_seconds)
        catalog.queue.close()
        if child is not None:
            await child.stop()
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        try:
            if gate is not None:
                await gate.close()
            if child_key is not None:
                await tokens.revoke(catalog.database, child_key[0].id)
        except PenstockError as error:
            log.warning("the end is not on record: %s", error.message)
        await catalog.close()


def _make_sessions(
    settings: Settings, catalog: Catalog, gate: Gate | None
) -> SessionRequests | None:
    """Who signs in at the console; None without one."""
    if not settings.server.console:
        return None
    auth, issuer = settings.auth, None
    if gate is not None and gate.oidc is not None and auth.oidc_client_id:
        client = Client(
            auth.oidc_client_id, auth.oidc_client_secret, auth.oidc_redirect_url, auth.oidc_scope
        )
        issuer = OidcSignIn(gate.oidc, client)
    return SessionRequests(catalog, gate, auth.session_seconds, version("penstock"), issuer)


def _make_patience(settings: Settings) -> ClientLimits:
    server = settings.server
    return ClientLimits(
        max_head_bytes=server.max_head_bytes,
        max_headers=server.max_headers,
        head_seconds=server.head_seconds,
        read_seconds=server.read_seconds,
        idle_seconds=server.idle_seconds,
        trusts_everybody=not settings.auth.enabled,
    )


def _make_child(
    settings: Settings,
    catalog: Catalog,
    host: str,
    port: int,
    config: str,
    key: tuple[tokens.Token, str] | None,
) -> RunnerChild | None:
    if not settings.runner.start:
        return None

    async def release(pid: int, again: bool) -> None:
        catalog.queue.runner_restarts += again
        try:
            await leases.release(catalog, lease_prefix(pid))
        except PenstockError as error:
            log.warning("the runner's leases are left to expire: %s", error.message)

    # A wildcard address cannot be connected to.
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    url = f"http://{_bracket(reachable)}:{port}"
    token = "" if key is None else key[1]
    return make_child(url, os.path.abspath(settings.storage.data), config, release, token)


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Server(uvicorn.Server):
    """uvicorn's server, which reports when it is up and leaves ending the process to us."""

    on_started: Callable[[], None] = staticmethod(lambda: None)
    on_exit: Callable[[], None] = staticmethod(lambda: None)
    # What runs between a first signal and the exit; a second signal does not wait for it.
    before_exit: Callable[[], Coroutine[Any, Any, None]] | None = None
    _exiting: asyncio.Task[None] | None = None
    # A local listener without TLS.
    inner: socket.socket | None = None

    # How long a TLS handshake may take.
    handshake_seconds = 60.0
    tracker: ConnectionTracker

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # We listen ourselves: uvicorn lets a handshake take as long as asyncio does.
        await super().startup([])
        for listener in sockets or ():
            self._listen(listener, self.config.ssl)
        if self.inner is not None:
            self._listen(self.inner, None)
        self.on_started()

    def _listen(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        started = Listener(listener, self._make, self.tracker, tls, self.handshake_seconds)
        started.start(self.config.backlog)
        self.servers.append(cast("asyncio.Server", started))

    def _make(self, visit: TrackedConnection) -> JoiningProtocol:
        make = cast("type[JoiningProtocol]", self.config.http_protocol_class)
        made = make(self.config, self.server_state, {})
        made.tracker, made.visit = self.tracker, visit
        return made

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.before_exit is not None and self._exiting is None:
            self._exiting = asyncio.create_task(self.before_exit())
            self._exiting.add_done_callback(lambda _: self._exit(sig, frame))
        else:
            self._exit(sig, frame)

    def _exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.on_exit()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
