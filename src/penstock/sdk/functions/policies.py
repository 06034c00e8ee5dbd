"""Read a decorator's options about jobs: errors, resources, environment; checked at once."""

from collections.abc import Mapping
from typing import Any, Literal

from penstock.errors import InvalidFunction

Action = Literal["fail", "skip", "retry"]
OnNull = Literal["call", "null"]
Policy = Action | Mapping[str, Any]
Environment = Mapping[str, Any]

POLICY = (
    *("action", "max_attempts", "backoff_seconds", "match", "rate_limit"),
    *("max_failed_rows", "max_failed_fraction"),
)
ENVIRONMENT = ("name", "version", "pip", "py_modules", "env_vars")


def read_policy(label: str, given: Policy | None, retries: int | None) -> dict[str, Any] | None:
    """What a failing row means, in the protocol's words."""
    if given is None and retries is None:
        return None
    found: dict[str, Any] = {"action": given} if isinstance(given, str) else dict(given or {})
    if unknown := sorted(found.keys() - set(POLICY)):
        raise InvalidFunction(
            f"on_error of {label} has {unknown[0]!r}", detail="it takes " + ", ".join(POLICY)
        )
    action = found.setdefault("action", "fail")
    if action not in ("fail", "skip", "retry"):
        raise InvalidFunction(
            f"on_error of {label} is {action!r}", detail="use 'fail', 'skip' or 'retry'"
        )
    if "match" in found or "rate_limit" in found:
        for key in ("match", "rate_limit"):
            names = [e.__name__ if isinstance(e, type) else e for e in found.get(key, ())]
            found |= {key: names} if names else {}
    if retries is not None:
        if retries < 0:
            raise InvalidFunction(f"retries of {label} is {retries}", detail="use 0 or more")
        if action == "skip":
            # Retried first; a limit that is never reached makes the rest be skipped.
            found.setdefault("max_failed_fraction", 1.0)
        found |= {"action": "retry", "max_attempts": retries + 1}
    return found


def read_needs(label: str, given: Mapping[str, float | None]) -> dict[str, float]:
    """The resources of a task, as far as they are given."""
    for key, value in given.items():
        if value is not None and value < 0:
            raise InvalidFunction(f"{key} of {label} is {value}", detail="use a positive number")
    return {key: value for key, value in given.items() if value is not None}


def read_environment(label: str, given: Environment | None) -> Environment | None:
    if given is None:
        return None
    if unknown := sorted(given.keys() - set(ENVIRONMENT)):
        raise InvalidFunction(
            f"environment of {label} has {unknown[0]!r}",
            detail="it takes " + ", ".join(ENVIRONMENT),
        )
    return given


def read_concurrency(label: str, given: int | None, *, is_async: bool) -> int | None:
    if given is not None and not is_async:
        raise InvalidFunction(
            f"{label} has concurrency={given}, and is no async function",
            detail="write it as async def; a plain one is called in several threads by "
            "intra_applier_concurrency of its jobs",
        )
    return at_least_one(label, "concurrency", given)


def at_least_one(label: str, what: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise InvalidFunction(f"{what} of {label} is {value}", detail="use 1 or more")
    return value


def positive(label: str, what: str, value: float | None) -> float | None:
    if value is not None and value <= 0:
        raise InvalidFunction(f"{what} of {label} is {value}", detail="use seconds above 0")
    return value
