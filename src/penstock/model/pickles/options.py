"""How to run a function, where another client says it only in the pickle.

What cannot be read, or cannot be had here, is left at the default. Everything here is pure.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from penstock.model.functions import Action, Needs, OnError
from penstock.model.pickles.reading import Made, Named, Unreadable, parse_pickle

# Classes of that client: the function itself, and each of the three things an error may mean.
FUNCTIONS = "geneva.transformer"
RETRY, SKIP, FAIL = "Retry", "Skip", "Fail"
SKIP_ROWS = "skip_rows"
ALL = ("Exception", "BaseException")
MAX_NAMES, MAX_NAME = 100, 200


class PickledOptions(Struct, frozen=True, kw_only=True):
    """What a pickled function says of itself."""

    batch_size: int | None = None
    timeout_seconds: float | None = None
    on_error: OnError = OnError()
    needs: Needs = Needs()
    partition_by_indexed_column: str | None = None


DEFAULT = PickledOptions()


def read_options(payload: bytes) -> PickledOptions:
    """Read the options out of a pickle; the defaults where it is no function of that client's."""
    try:
        found = parse_pickle(payload)
    except Unreadable:
        return DEFAULT
    if not isinstance(found, Made) or not isinstance(found.by, Named):
        return DEFAULT
    if found.by.module != FUNCTIONS:
        return DEFAULT
    state = found.state
    rows = (_whole(state.get(name), 1, 2**31 - 1) for name in ("checkpoint_size", "batch_size"))
    cpus = _number(state.get("num_cpus"), 0, 10_000)
    indexed = state.get("partition_by_indexed_column")
    return PickledOptions(
        batch_size=next((each for each in rows if each is not None), None),
        timeout_seconds=_number(state.get("timeout"), 0, 30 * 86400) or None,
        on_error=_read_on_error(state.get("error_handling")),
        needs=Needs(
            # One is what it says of every function.
            num_cpus=None if cpus == 1 else cpus or None,
            num_gpus=_number(state.get("num_gpus"), 0, 10_000) or None,
            memory=_whole(state.get("memory"), 1, 2**50),
        ),
        partition_by_indexed_column=indexed if isinstance(indexed, str) and indexed else None,
    )


def _read_on_error(config: Any) -> OnError:
    if not isinstance(config, Made):
        return OnError()
    state = config.state
    matchers = [each for each in _list(state.get("_matchers")) if isinstance(each, Made)]
    retries = [each for each in matchers if _kind(each) == RETRY]
    attempts, names = _read_retries(retries) if matchers else _read_stop(state.get("retry_config"))
    skip = _find_skip(matchers) if matchers else _find_isolation(config)
    rows, fraction = (None, None) if skip is None else _read_limits(skip)
    if attempts < 2:
        action: Action = "fail" if skip is None else "skip"
        return OnError(action=action, max_failed_rows=rows, max_failed_fraction=fraction)
    if skip is not None and rows is None and fraction is None:
        # With a limit, rows that are tried in vain are skipped.
        fraction = 1.0
    return OnError(
        action="retry",
        max_attempts=attempts,
        match=names,
        max_failed_rows=rows,
        max_failed_fraction=fraction,
    )


def _read_retries(retries: list[Made]) -> tuple[int, tuple[str, ...]]:
    """How often a row is tried, and after which exceptions; no names are all."""
    tried = (_whole(each.state.get("max_attempts"), 1, 1000) for each in retries)
    attempts = max((each for each in tried if each is not None), default=1)
    return attempts, _list_names(name for each in retries for name in _exceptions(each))


def _read_stop(config: Any) -> tuple[int, tuple[str, ...]]:
    """The same of a configuration without matchers."""
    state = config.state if isinstance(config, Made) else {}
    retry, stop = state.get("retry"), state.get("stop")
    most = stop.state.get("max_attempt_number") if isinstance(stop, Made) else None
    found = _list(retry.state.get("exception_types")) if isinstance(retry, Made) else []
    return _whole(most, 1, 1000) or 1, _list_names(found)


def _find_skip(matchers: list[Made]) -> Made | None:
    """The rule by which rows are skipped, if it is about all exceptions that are not retried."""
    for each in matchers:
        if _kind(each) == FAIL:
            return None
        if _kind(each) == SKIP and set(ALL) & set(_list_names(_exceptions(each), ())):
            return each
    return None


def _find_isolation(config: Made) -> Made | None:
    """The configuration itself, if it says that rows which fail are skipped."""
    isolation = config.state.get("fault_isolation")
    values = isolation.values if isinstance(isolation, Made) else ()
    return config if SKIP_ROWS in _list(values) else None


def _read_limits(skip: Made) -> tuple[int | None, float | None]:
    rows = _whole(skip.state.get("max_skip_count"), 0, 2**62)
    return rows, _number(skip.state.get("max_skip_fraction"), 0, 1)


def _exceptions(matcher: Made) -> list[Any]:
    return _list(matcher.state.get("exceptions"))


def _list_names(found: Iterable[Any], without: tuple[str, ...] = ALL) -> tuple[str, ...]:
    """The names of exceptions; none when all are meant."""
    names = tuple(dict.fromkeys(filter(None, map(_name, found))))[:MAX_NAMES]
    return () if set(without) & set(names) else names


def _name(kind: Any) -> str:
    """The name of a class, also of one that the pickle itself has."""
    made_of = _list(kind.values) if isinstance(kind, Made) else []
    name = kind.name if isinstance(kind, Named) else made_of[1] if len(made_of) > 1 else ""
    if not isinstance(name, str) or not name.isprintable() or len(name) > MAX_NAME:
        return ""
    return name


def _kind(matcher: Made) -> str:
    return matcher.by.name if isinstance(matcher.by, Named) else ""


def _list(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else []


def _whole(value: Any, least: int, most: int) -> int | None:
    found = _number(value, least, most)
    return None if found is None else int(found)


def _number(value: Any, least: float, most: float) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # No comparison holds for what is not a number.
    return value if is_number and least <= value <= most else None
