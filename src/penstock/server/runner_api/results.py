"""What a runner sends as the result of a statement: an Arrow stream, kept for its caller."""

import msgspec

from penstock.catalog.jobs import leases
from penstock.catalog.statements import results
from penstock.errors import InvalidRequest, LeaseLost
from penstock.jobs.specs import StatementSpec, decode_spec
from penstock.server.lance.call import Call
from penstock.server.lance.handlers.jobs import job_id
from penstock.server.lance.handlers.rows import arriving
from penstock.server.transport.uploads import UploadBroken


class ReceivedResult(msgspec.Struct):
    received: bool = True


async def receive(call: Call) -> ReceivedResult:
    """Keep the result of a job that this attempt holds."""
    job = await leases.get_held(call.catalog, job_id(call), _read_attempt(call))
    spec = decode_spec(job.kind, job.spec)
    if not isinstance(spec, StatementSpec):
        raise InvalidRequest(
            f"job {job.id} is a {job.kind}, which has no rows to send", detail="finish it instead"
        )
    if job.cancel_requested:
        raise LeaseLost(f"nobody waits for the result of job {job.id}", detail="stop working on it")
    async with arriving(call) as source:
        try:
            await results.store(call.catalog, job.id, source, spec.max_bytes)
        except UploadBroken as error:
            raise InvalidRequest(f"the result is incomplete: {error}", detail="send it") from error
    return ReceivedResult()


def _read_attempt(call: Call) -> int:
    text = call.text("attempt") or ""
    if not text.isdecimal() or len(text) > 9:
        raise InvalidRequest(f"attempt is {text[:20]!r}", detail="send the number of the attempt")
    return int(text)
