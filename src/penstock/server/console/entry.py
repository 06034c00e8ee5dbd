"""The entry to the console: its files, the page for every other path, and sessions."""

from functools import cache

from penstock.errors import PenstockError
from penstock.model.codes import INTERNAL, UNSUPPORTED
from penstock.server.console import files
from penstock.server.console.sessions import SessionRequests
from penstock.server.lance.errors import error_reply, to_reply
from penstock.server.transport.exchange import Exchange
from penstock.server.transport.http import Reply

NAME, FILES, API = "console", "assets", "api"
LOOKING = ("GET", "HEAD")
# What any browser asks for first.
AT_HOME = Reply(302, headers=((b"location", b"/console"), (b"vary", b"accept")))

_read_files = cache(files.read_files)


class ConsoleProtocol:
    """Everything under /console."""

    def __init__(self, sessions: SessionRequests) -> None:
        self._sessions = sessions

    async def answer(self, exchange: Exchange) -> Reply:
        exchange.operation = "console"
        within = exchange.segments[1:]
        if within[:1] == [API]:
            return await self._sessions.answer(exchange, within[1:])
        if exchange.method not in LOOKING:
            return self._refuse_method(exchange)
        found, headers = _read_files(), exchange.headers.values
        if within[:1] != [FILES]:
            return files.to_reply(found.find_page(), headers, files.ASK_AGAIN)
        # As it was sent: what is encoded, or steps to another folder, is no file's path.
        file, kept = found.find("/".join(within[1:]))
        if file is None:
            return error_reply(
                404,
                UNSUPPORTED,
                "the console has no such file",
                "reload the page: the server may have been upgraded",
                exchange.request_id,
                files.HEADERS,
            )
        return files.to_reply(file, headers, kept)

    def fail(self, error: PenstockError, exchange: Exchange) -> Reply:
        return to_reply(error, exchange.request_id)

    def fail_internally(self, exchange: Exchange) -> Reply:
        return error_reply(
            500,
            INTERNAL,
            "internal error",
            "report it with the instance id; the server's log has the details",
            exchange.request_id,
        )

    def _refuse_method(self, exchange: Exchange) -> Reply:
        return error_reply(
            405,
            UNSUPPORTED,
            f"the console does not answer to {exchange.method}",
            "use GET",
            exchange.request_id,
            ((b"allow", b"GET"),),
        )


def is_browser(exchange: Exchange) -> bool:
    """Whether somebody looks at the server's root with a browser."""
    return (
        not exchange.segments
        and exchange.method in LOOKING
        and "text/html" in exchange.headers.values.get("accept", "")
    )
