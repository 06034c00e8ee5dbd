"""Where a change comes from: the caller's trace, and the keys under which it happens only once."""

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key: whose it is, and a digest of the request that came with it.

    The digest grows while a streamed body arrives; nobody asks for it before the last byte.
    """

    principal: str
    value: str
    # Of this arrival; when the same request comes again, it has another.
    request: str = field(default_factory=lambda: uuid.uuid4().hex)
    digest: "_Hash" = field(default_factory=hashlib.sha256, compare=False)

    @property
    def fingerprint(self) -> str:
        return self.digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Origin:
    """What a catalog rule needs to know of the request behind a change."""

    trace_id: str = ""
    # Several when requests share a commit.
    keys: tuple[Key, ...] = ()
    # Who asked for the change; empty where authentication is off.
    principal: str = ""
    # The names under which they hold grants.
    grantees: tuple[str, ...] = ()
    # The id of the runner's key that was shown; empty with any other.
    runner_key: str = ""


NOBODY = Origin()
