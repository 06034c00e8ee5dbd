"""The origin of a change: the caller's trace, and the request's idempotency keys."""

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An idempotency key: its owner, and a digest of its request.

    The digest grows while a streamed body arrives; it is only read after the last byte.
    """

    principal: str
    value: str
    # Unique for each arrival; a repetition of the request has another.
    request: str = field(default_factory=lambda: uuid.uuid4().hex)
    digest: "_Hash" = field(default_factory=hashlib.sha256, compare=False)

    @property
    def fingerprint(self) -> str:
        return self.digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Origin:
    """What catalog rules need to know about the request behind a change."""

    trace_id: str = ""
    # Several when requests share a commit.
    keys: tuple[IdempotencyKey, ...] = ()
    # Who requested the change; empty where authentication is off.
    principal: str = ""
    # The names under which they hold grants.
    grantees: tuple[str, ...] = ()
    # The id of the runner's key that was used; empty with any other.
    runner_key: str = ""


NOBODY = Origin()
