"""lancedb's log-structured writes: no table here has them, and clients that ask are told so."""

import msgspec

from penstock.catalog.names import tables
from penstock.errors import Unsupported
from penstock.server.lance.call import Body, Call
from penstock.server.operation import Handler


class NoSpec(msgspec.Struct):
    lsm_write_spec: None = None


class NoStats(msgspec.Struct):
    lsm_stats: None = None


_body = msgspec.json.Decoder(Body)


async def get_spec(call: Call) -> NoSpec:
    await _check_call(call)
    return NoSpec()


async def get_stats(call: Call) -> NoStats:
    await _check_call(call)
    return NoStats()


def refuse(what: str, detail: str) -> Handler[Call, None]:
    """A handler that says what this server does not do, and what to do instead."""

    async def answer(call: Call) -> None:
        await _check_call(call)
        raise Unsupported(f"this server has no {what}", detail=detail)

    return answer


async def _check_call(call: Call) -> None:
    call.decode(_body)
    await tables.get(call.catalog.database, call.id)
