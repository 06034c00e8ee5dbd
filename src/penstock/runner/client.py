"""The client for a server's runner protocol, over HTTP."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import httpx
import msgspec

from penstock.errors import ConcurrentCommit, InvalidRequest, LeaseLost, PenstockError, Unavailable
from penstock.model.functions import RowError
from penstock.model.jobs import LogLine

T = TypeVar("T")

ARROW_STREAM = "application/vnd.apache.arrow.stream"
REQUEST_SECONDS = 15
# Requests that write tables, on storage that may be slow.
STORAGE_SECONDS = 60


class Lease(msgspec.Struct, frozen=True):
    """A job that this runner holds, for one attempt."""

    id: str
    kind: str
    attempt: int
    # As JSON; `LeasedAttempt.spec` decodes it.
    spec: msgspec.Raw
    cluster: str
    lease_seconds: float
    heartbeat_seconds: float
    manifest: str | None = None


class Leases(msgspec.Struct, frozen=True):
    jobs: tuple[Lease, ...] = ()


class PhaseBegun(msgspec.Struct, frozen=True):
    """Something else that an attempt has begun to do, and how long ago."""

    name: str
    ago_millis: int


class AttemptReport(msgspec.Struct, frozen=True):
    """What an attempt tells of itself."""

    progress: Mapping[str, Any] = msgspec.field(default_factory=dict)
    logs: Sequence[LogLine] = ()
    phases: Sequence[PhaseBegun] = ()


class HeartbeatReply(msgspec.Struct, frozen=True):
    """The server's answer to a heartbeat."""

    cancel: bool = False
    lease_seconds: float = 0
    pause: bool = False
    obstacle: str = ""


class AttemptEnd(msgspec.Struct, frozen=True):
    """How an attempt ended."""

    state: str
    result: Mapping[str, Any] = msgspec.field(default_factory=dict)
    error: str = ""
    retryable: bool = False


class _FinishReply(msgspec.Struct, frozen=True):
    state: str


class _ErrorRows(msgspec.Struct, frozen=True):
    rows: tuple[int, ...]


# A server takes a bit more.
MAX_TROUBLE = 1500


class ServerClient:
    """A server's runner protocol; threads may share it. Unavailable means: try again later."""

    def __init__(self, url: str, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=REQUEST_SECONDS)

    def lease(
        self, runner: str, clusters: Sequence[str], free: int, wait_seconds: float
    ) -> tuple[Lease, ...]:
        """Wait for jobs, up to a time limit, and lease as many as there is room for."""
        body = {
            "runner": runner,
            "clusters": list(clusters),
            "free": free,
            "wait_seconds": wait_seconds,
        }
        content = self._post("/v1/runner/lease", body, wait_seconds + REQUEST_SECONDS)
        return _read(content, Leases).jobs

    def tell_trouble(self, runner: str, clusters: Sequence[str], trouble: str) -> None:
        """Say why no jobs are leased."""
        body = {"runner": runner, "clusters": list(clusters), "trouble": trouble[:MAX_TROUBLE]}
        self._post("/v1/runner/lease", body)

    def heartbeat(self, lease: Lease, report: AttemptReport) -> HeartbeatReply:
        """Extend a lease; raises LeaseLost when it is not ours any more."""
        body = {"attempt": lease.attempt, **msgspec.structs.asdict(report)}
        content = self._post(f"/v1/runner/job/{lease.id}/heartbeat", body)
        return _read(content, HeartbeatReply)

    def finish(self, lease: Lease, ending: AttemptEnd, report: AttemptReport) -> str:
        """Report how the attempt ended; returns the job's state, QUEUED when there is another."""
        body = {
            "attempt": lease.attempt,
            **msgspec.structs.asdict(ending),
            **msgspec.structs.asdict(report),
        }
        content = self._post(f"/v1/runner/job/{lease.id}/finish", body)
        return _read(content, _FinishReply).state

    def errors(self, lease: Lease, rows: Sequence[RowError], view: str = "") -> None:
        """Record rows that a function failed on in the ledger; may be repeated."""
        body = {"attempt": lease.attempt, "errors": rows, "view": view or None}
        self._post(f"/v1/runner/job/{lease.id}/errors", body, STORAGE_SECONDS)

    def error_rows(self, lease: Lease) -> frozenset[int]:
        """The ledger's rows that the job's column failed on."""
        body = {"attempt": lease.attempt}
        content = self._post(f"/v1/runner/job/{lease.id}/error_rows", body, STORAGE_SECONDS)
        return frozenset(_read(content, _ErrorRows).rows)

    def send_result(self, lease: Lease, parts: Sequence[Any]) -> None:
        """Send the rows of a statement, an Arrow stream in pieces; may be repeated."""
        size = sum(len(part) for part in parts)
        headers = {"Content-Type": ARROW_STREAM, "Content-Length": str(size)}
        path = f"/v1/runner/job/{lease.id}/result"
        params = {"attempt": lease.attempt}
        self._send(path, lambda: iter(parts), headers, STORAGE_SECONDS, params)

    def publish(self, versions: Sequence[Mapping[str, Any]]) -> None:
        """Create versions of several tables, all or none; may be repeated."""
        self._post("/v1/table/version/batch-create", {"entries": versions}, STORAGE_SECONDS)

    def close(self) -> None:
        self._http.close()

    def _post(self, path: str, body: object, seconds: float = REQUEST_SECONDS) -> bytes:
        headers = {"Content-Type": "application/json"}
        return self._send(path, lambda: msgspec.json.encode(body), headers, seconds)

    def _send(
        self,
        path: str,
        content: Callable[[], Any],
        headers: Mapping[str, str],
        seconds: float,
        params: Mapping[str, Any] | None = None,
    ) -> bytes:
        try:
            answer = self._http.post(
                path, content=content(), headers=headers, timeout=seconds, params=params
            )
        except httpx.TransportError as error:
            raise Unavailable(f"the server does not answer: {error or type(error)}") from error
        if answer.status_code == 200:
            return answer.content
        raise _refusal(path, answer)


def _read(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"the server's answer cannot be read: {error}", detail="is it a Penstock server?"
        ) from error


def _refusal(path: str, answer: httpx.Response) -> PenstockError:
    shown = f"{path}: {answer.status_code} {answer.text[:300]}"
    # A job that is gone was finished without us.
    if answer.status_code in (404, 409) and "/job/" in path:
        return LeaseLost(shown)
    if answer.status_code == 409:
        return ConcurrentCommit(shown)
    if answer.status_code >= 500 or answer.status_code == 429:
        return Unavailable(shown)
    return InvalidRequest(
        f"the server refuses the runner: {shown}", detail="check the address, token and release"
    )
