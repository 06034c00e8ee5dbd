"""Which answers are kept under a key, for errors that no client can bring about at will."""

from collections.abc import Awaitable, Callable

import pytest

from penstock import errors
from penstock.catalog.catalog import Catalog
from penstock.catalog.names import idempotency
from penstock.errors import PenstockError
from penstock.model.origins import IdempotencyKey
from penstock.server.access.idempotency import Arrival, IdempotentRequests
from penstock.server.iceberg.errors import to_reply
from penstock.server.transport.http import Message, Reply
from tests.harness.clients.idempotency_keys import new_key

pytestmark = pytest.mark.anyio

OF_THE_MOMENT = (
    errors.Unavailable,
    errors.OutcomeUnknown,
    errors.NotAuthenticated,
    errors.Forbidden,
    errors.OutsideLake,
    errors.TooManyRequests,
    errors.ConcurrentCommit,
    errors.PenstockError,
)
EARNED = (
    errors.InvalidRequest,
    errors.InvalidView,
    errors.DialectLost,
    errors.Unsupported,
    errors.ViewNotFound,
    errors.NamespaceNotFound,
    errors.ViewAlreadyExists,
    errors.NamespaceNotEmpty,
    errors.RequirementFailed,
    errors.Unprocessable,
)


class Client:
    """Repeats one request under one key; counts how often it was really run."""

    def __init__(self, catalog: Catalog) -> None:
        self.once = IdempotentRequests(catalog)
        self.value = new_key()
        self.runs = 0

    async def ask(self, run: Callable[[], Awaitable[Reply]], body: bytes = b"x") -> int:
        arrival = Arrival(IdempotencyKey("", self.value), _receiver(body))
        await arrival.drain()

        async def count() -> Reply:
            self.runs += 1
            return await run()

        try:
            return (await self.once.answer(arrival, count, to_reply, _no_recovery)).status
        except PenstockError as error:
            return to_reply(error).status


def _receiver(body: bytes) -> Callable[[], Awaitable[Message]]:
    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    return receive


async def _no_recovery(_: idempotency.KeyRecord) -> Reply:
    raise AssertionError("there is no effect to recover")


async def succeed() -> Reply:
    return Reply(204)


@pytest.mark.parametrize("kind", OF_THE_MOMENT)
async def test_an_error_of_the_moment_is_not_kept(
    catalog: Catalog, kind: type[PenstockError]
) -> None:
    client = Client(catalog)

    async def fail() -> Reply:
        raise kind("no")

    refused = await client.ask(fail)
    assert refused >= 400
    assert await client.ask(fail) == refused
    assert await client.ask(succeed, b"another body") == 204
    assert client.runs == 3


@pytest.mark.parametrize("kind", EARNED)
async def test_an_error_that_the_request_earned_is_kept(
    catalog: Catalog, kind: type[PenstockError]
) -> None:
    client = Client(catalog)

    async def fail() -> Reply:
        raise kind("no")

    refused = await client.ask(fail)
    assert 400 <= refused < 500
    assert await client.ask(succeed) == refused
    assert await client.ask(succeed, b"another body") == 422
    assert client.runs == 1


async def test_a_bug_is_not_kept_and_does_not_block_the_key(catalog: Catalog) -> None:
    client = Client(catalog)

    async def fail() -> Reply:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await client.ask(fail)
    assert await client.ask(succeed) == 204
    assert await client.ask(fail) == 204
    assert client.runs == 3


async def test_keys_of_different_principals_are_different(catalog: Catalog) -> None:
    value = new_key()
    await idempotency.record_answer(catalog, IdempotencyKey("ann", value), 200, "of ann")
    assert await idempotency.find(catalog.database, IdempotencyKey("bob", value)) is None
    found = await idempotency.find(catalog.database, IdempotencyKey("ann", value))
    assert found is not None
    assert found.answer == "of ann"


async def test_an_answer_that_another_has_noted_is_given(catalog: Catalog) -> None:
    value = new_key()
    assert await idempotency.record_answer(catalog, IdempotencyKey("", value), 200, "first") is None
    second = await idempotency.record_answer(catalog, IdempotencyKey("", value), 409, "second")
    assert second is not None
    assert (second.status, second.answer) == (200, "first")
