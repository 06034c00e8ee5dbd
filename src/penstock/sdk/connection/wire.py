"""HTTP to a server: requests with retries, and errors as our own classes.

A change carries an idempotency key, so sending it again has no second effect.
"""

import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from penstock.errors import InvalidRequest, OutcomeUnknown, PenstockError, Unavailable
from penstock.model.codes import BROKEN_OFF, LANCE_ERRORS
from penstock.model.identifiers import SEPARATOR, Identifier, to_path
from penstock.model.jobs import START_RUNNER
from penstock.retries import Backoff
from penstock.sdk.connection.answer_stream import AnswerStream
from penstock.sdk.connection.server_choice import ServerChoice
from penstock.sdk.connection.waiting import BLOCKING, Waiting

CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 300.0
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 5.0
BUSY = (429, 503)
PARAMETER = re.compile(r"\?(cascade|force)=true")
ROWS_TO_LOOK_AT = "application/vnd.penstock.rows+json"
ARROW_STREAM = "application/vnd.apache.arrow.stream"


class Body:
    """A body that is sent in parts; called once per try."""

    def __init__(self, make: Callable[[], Iterator[bytes]]) -> None:
        self._make = make

    def __call__(self) -> Iterator[bytes]:
        return self._make()

    # Whether it may be sent once more, and whether all of it was sent.
    can_repeat = True
    is_sent = False


class Wire:
    """A connection to a server; threads may share it."""

    def __init__(
        self,
        server: ServerChoice,
        api_key: str | None = None,
        retry_seconds: float = 30.0,
        verify: bool = True,
        waiting: Waiting = BLOCKING,
    ) -> None:
        self.url = _check_url(server.url)
        self.server = ServerChoice(self.url, server.why)
        self.api_key = _check_key(api_key)
        self._retry_seconds = retry_seconds
        self.pause = waiting.pause
        # Loading certificates takes a tenth of a second, and plain HTTP has none.
        verify = verify and self.url.startswith("https")
        # A proxy for the internet cannot reach this machine.
        trust_env = not _is_here(self.url)
        self._http = httpx.Client(
            base_url=self.url,
            headers={"x-api-key": api_key} if api_key else {},
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            verify=verify,
            trust_env=trust_env,
            transport=waiting.transport(verify, trust_env) if waiting.transport else None,
        )

    def greet(self) -> None:
        """Check once that the server answers."""
        try:
            self._http.get("/healthz", timeout=CONNECT_SECONDS)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def read(
        self,
        path: str,
        body: object = None,
        seconds: float = ANSWER_SECONDS,
        params: Mapping[str, object] | None = None,
    ) -> Any:
        """POST a question; returns the decoded answer."""
        return _decode(self._post(path, body, params or {}, None, seconds))

    def read_bytes(self, path: str, body: object = None, timeout: float | None = None) -> bytes:
        """POST a question whose answer is not JSON; raises what broke the answer off.

        Within `timeout` the server answers, or it is not asked again.
        """
        # The server says when the time is up.
        request = self._ask(path, body, ANSWER_SECONDS + (timeout or 0))
        patience = None if timeout is None else min(timeout, self._retry_seconds)
        return self._send(lambda: _receive(self._http, request), patience).content

    def look(self, path: str, body: object = None) -> Any:
        """POST a question for rows to look at, whose long values are cut."""
        request = self._ask(path, body, ANSWER_SECONDS, ROWS_TO_LOOK_AT)
        return _decode(self._send(lambda: self._http.send(request)))

    def read_stream(self, path: str, body: object = None) -> AnswerStream:
        """POST a question whose answer is read while it arrives; its reader closes it."""
        request = self._ask(path, body, ANSWER_SECONDS)
        return AnswerStream(self._send(lambda: _begin(self._http, request)), _read_end)

    def get(self, path: str, **params: object) -> Any:
        given = _to_params(params)
        return _decode(self._send(lambda: self._http.get(path, params=given)))

    def probe(self, path: str) -> Any:
        """Ask once; returns the answer, whatever its status."""
        try:
            return _decode(self._http.get(path, timeout=CONNECT_SECONDS))
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def change(self, path: str, body: object = None, **params: object) -> Any:
        """POST a change, which takes effect once however often it is sent."""
        return _decode(self._post(path, body, params, _new_key(), ANSWER_SECONDS))

    def upload(self, path: str, body: Body, **params: object) -> Any:
        """POST rows as an Arrow stream."""
        headers = {"Content-Type": ARROW_STREAM, "Idempotency-Key": _new_key()}
        given = _to_params(params)
        return _decode(
            self._send(
                lambda: self._http.post(path, content=body(), params=given, headers=headers),
                body=body,
            )
        )

    def pages(self, ask: Callable[[str | None], Any], field: str) -> Iterator[Any]:
        """All entries of a listing, page by page."""
        token: str | None = None
        while True:
            answer = ask(token)
            yield answer[field]
            token = answer.get("page_token") or None
            if token is None:
                return

    def close(self) -> None:
        self._http.close()

    def _ask(self, path: str, body: object, seconds: float, accept: str = "*/*") -> httpx.Request:
        return self._http.build_request(
            "POST",
            path,
            content=b"" if body is None else msgspec.json.encode(body),
            params=_to_params({}),
            headers={"Content-Type": "application/json", "Accept": accept},
            timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS),
        )

    def _post(
        self,
        path: str,
        body: object,
        params: Mapping[str, object],
        key: str | None,
        seconds: float,
    ) -> httpx.Response:
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        content = b"" if body is None else msgspec.json.encode(body)
        timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
        given = _to_params(params)
        return self._send(
            lambda: self._http.post(
                path, content=content, params=given, headers=headers, timeout=timeout
            )
        )

    def _send(
        self,
        send: Callable[[], httpx.Response],
        patience: float | None = None,
        body: Body | None = None,
    ) -> httpx.Response:
        """Send until the answer is not "later", or the time for retries is over."""
        deadline = time.monotonic() + (self._retry_seconds if patience is None else patience)
        pauses = Backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)
        while True:
            wait = pause = pauses.take()
            has_answer = False
            try:
                answer = send()
            except httpx.TransportError as error:
                problem: PenstockError = self._unreachable(error)
            else:
                if answer.is_success:
                    return answer
                problem, has_answer = to_error(answer), True
                # Where there is no runner, somebody has to start one first.
                if answer.status_code not in BUSY or START_RUNNER in problem.detail:
                    raise problem
                wait = max(pause, _retry_after(answer))
            if body is not None and not body.can_repeat:
                raise _broken_off(problem, body, has_answer=has_answer)
            if time.monotonic() + wait > deadline:
                raise problem from None
            # Clients that were refused together should not come back together.
            self.pause(wait + random.uniform(0, pause))

    def _unreachable(self, error: httpx.TransportError) -> Unavailable:
        why = re.sub(r"^\[[^]]*\] ", "", str(error)) or type(error).__name__
        return Unavailable(
            f"no answer from {self.server}: {why}",
            detail="start a server with `penstock serve`, or give the address of one that runs",
        )


def path_of(noun: str, parts: Identifier, operation: str) -> str:
    """The path of an operation on a namespace, table or view, whatever its name contains."""
    return f"/v1/{noun}/{quote(to_path(parts) or SEPARATOR, safe='')}/{operation}"


def _begin(client: httpx.Client, request: httpx.Request) -> httpx.Response:
    """Send a request; of an answer with rows only the head is read."""
    answer = client.send(request, stream=True)
    if not answer.is_success:
        answer.read()
    return answer


def _receive(client: httpx.Client, request: httpx.Request) -> httpx.Response:
    """Send a request; an answer that the server breaks off ends with a mark and an error."""
    answer = client.send(request, stream=True)
    try:
        mark = answer.headers.get(BROKEN_OFF, "").encode()
        parts = list[bytes]()
        try:
            for part in answer.iter_bytes():
                parts.append(part)
        except httpx.TransportError:
            _, found, told = b"".join(parts).rpartition(mark) if mark else (b"", b"", b"")
            if not found:
                raise
            raise _read_end(answer, told) from None
        return httpx.Response(
            answer.status_code, headers=answer.headers, content=b"".join(parts), request=request
        )
    finally:
        answer.close()


def _read_end(answer: httpx.Response, told: bytes) -> PenstockError:
    """The error in the end of an answer."""
    found = msgspec.json.decode(told)
    body = {**found["body"], "instance": answer.headers.get("x-request-id")}
    content = msgspec.json.encode(body)
    return to_error(httpx.Response(found["status"], content=content, request=answer.request))


def to_error(answer: httpx.Response) -> PenstockError:
    """The error that the server raised, by the status and code of its answer."""
    try:
        body = msgspec.json.decode(answer.content)
    except msgspec.MsgspecError:
        body = None
    if not isinstance(body, dict) or "error" not in body:
        shown = f"{answer.request.url} answered {answer.status_code} {answer.text[:200]!r}"
        return _UNKNOWN.get(answer.status_code, PenstockError)(
            shown, detail="is it a Penstock server, and of this release?"
        )
    if isinstance(body["error"], dict):
        # The Iceberg protocol reports errors in another form.
        kind = _UNKNOWN.get(answer.status_code, PenstockError)
        return kind(str(body["error"].get("message")))
    numbers = (answer.status_code, int(body.get("code") or 0))
    found = _CLASSES.get(numbers, PenstockError)
    error = found(_reword(str(body["error"])), detail=_reword(str(body.get("detail") or "")))
    if answer.status_code >= 500:
        error.add_note(f"request {body.get('instance')} in the server's log")
    return error


def _reword(text: str) -> str:
    """Query parameters as the arguments that callers have."""
    return PARAMETER.sub(r"\1=True", text)


def _by_code() -> dict[tuple[int, int], type[PenstockError]]:
    """The class for each status and code; a common parent for those that share one."""
    found: dict[tuple[int, int], type[PenstockError]] = {}
    for kind, numbers in LANCE_ERRORS.items():
        other = found.get(numbers)
        found[numbers] = kind if other is None else _common(kind, other)
    return found


def _common(one: type[PenstockError], other: type[PenstockError]) -> type[PenstockError]:
    return next(kind for kind in one.__mro__ if issubclass(other, kind))


_CLASSES = _by_code()
# Answers of something in between, such as a proxy.
_UNKNOWN: dict[int, type[PenstockError]] = {
    status: kind for kind, (status, _) in LANCE_ERRORS.items() if status in (401, 403, 429, 503)
}


def _decode(answer: httpx.Response) -> Any:
    if not answer.content:
        return None
    try:
        return msgspec.json.decode(answer.content)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"{answer.request.url} does not answer with JSON: {error}",
            detail="is it a Penstock server?",
        ) from error


def _new_key() -> str:
    return str(uuid.uuid4())


def _to_params(params: Mapping[str, object]) -> dict[str, Any]:
    """Query parameters as the server reads them; omits None."""
    shown = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in params.items()
        if value is not None
    }
    return {**shown, "delimiter": SEPARATOR}


def _retry_after(answer: httpx.Response) -> float:
    try:
        return max(0.0, float(answer.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0


def _broken_off(problem: PenstockError, body: Body, *, has_answer: bool) -> PenstockError:
    """What to tell of rows that were on their way and cannot be read again."""
    once = "the rows can be read only once, so they were not sent again"
    if body.is_sent and not has_answer:
        return OutcomeUnknown(
            f"all rows were sent, and then {problem.message}",
            detail="look whether they came in before you give them anew",
        )
    told = f"nothing was written, and {once}: give them anew"
    return type(problem)(problem.message, detail=told)


def _is_here(url: str) -> bool:
    return httpx.URL(url).host in ("localhost", "127.0.0.1", "::1")


def _check_key(key: str | None) -> str | None:
    if key is not None and not (key.isascii() and key.isprintable()):
        raise InvalidRequest(
            "the key has letters that no key has",
            detail="give it as `penstock token create` told it",
        )
    return key


def _check_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise InvalidRequest(
            f"the address is {url!r}", detail="write it as http://HOST:PORT or https://HOST"
        )
    try:
        return str(httpx.URL(url)).rstrip("/")
    except httpx.InvalidURL as error:
        raise InvalidRequest(f"the address is {url!r}: {error}", detail="correct it") from error
