"""Pickles of another client are read, and nothing in them is run."""

import os
import pickle
import random
from typing import Any

import pytest

from penstock.model.envelopes import read_code
from penstock.model.functions import Needs, OnError
from penstock.model.pickles.options import DEFAULT, read_options
from penstock.model.pickles.reading import MAX_STEPS, Made, Named, Unreadable, parse_pickle
from penstock.model.udtfs import read_udtf
from tests.harness.data.calls import pickled
from tests.harness.data.functions import b64, pack


class Thing:
    """An object by what its pickle says: a class by name, what it is called with, what is set."""

    def __init__(self, path: str, *values: Any, **state: Any) -> None:
        self.path, self.values, self.state = path, values, state


def dump(thing: Any) -> bytes:
    """A pickle of plain values and things, whose classes need not be there."""
    return b"\x80\x04" + _code(thing) + b"."


def _code(thing: Any) -> bytes:
    if isinstance(thing, type):
        return _name(thing.__module__, thing.__name__)
    if isinstance(thing, dict):
        items = b"".join(_code(each) for item in thing.items() for each in item)
        return b"}(" + items + b"u"
    if isinstance(thing, list | tuple):
        inside = b"".join(map(_code, thing))
        return b"](" + inside + b"e" if isinstance(thing, list) else b"(" + inside + b"t"
    if isinstance(thing, Thing):
        module, _, name = thing.path.rpartition(".")
        made = _name(module, name) + _code(thing.values) + b"R"
        return made + (_code(thing.state) + b"b" if thing.state else b"")
    # Of this protocol, a part of a pickle is one by itself.
    return pickle.dumps(thing, 3)[2:-1]


def _name(module: str, name: str) -> bytes:
    return _code(module) + _code(name) + b"\x93"


def udf(**state: Any) -> bytes:
    usual = {"num_cpus": 1.0, "num_gpus": 0.0, "memory": None, "error_handling": None}
    return dump(Thing("geneva.transformer.UDF", **usual | state))


def config(*matchers: Thing, **state: Any) -> Thing:
    state = {"fault_isolation": Thing("g.FaultIsolation", "fail_batch")} | state
    listed = {"_matchers": list(matchers)} if matchers else {}
    return Thing("geneva.debug.error_store.ErrorHandlingConfig", **state, **listed)


def matcher(kind: str, *exceptions: Any, **state: Any) -> Thing:
    return Thing(f"geneva.debug.error_store.{kind}", exceptions=exceptions, **state)


def test_objects_are_told_by_what_they_would_be_made_of() -> None:
    found = parse_pickle(dump(Thing("os.system", "echo", left=[1, 2.5, None, True, ("a", {})])))
    assert isinstance(found, Made)
    assert (found.by, found.values) == (Named("os", "system"), ("echo",))
    assert found.state == {"left": [1, 2.5, None, True, ("a", {})]}


def test_nothing_is_run() -> None:
    class Harm:
        def __reduce__(self) -> Any:
            return os._exit, (1,)

    for protocol in range(6):
        found = parse_pickle(pickle.dumps([Harm(), {"a": 1}], protocol))
        assert isinstance(found[0], Made)


@pytest.mark.parametrize("protocol", range(6))
def test_plain_values_are_what_they_were(protocol: int) -> None:
    same = "the same"
    value: Any = {
        "a": [1, -1, 2**70, 1.5],
        "b": (same, same, None, False),
        "c": {"d": ()},
        "e": [[]],
    }
    assert parse_pickle(pickle.dumps(value, protocol)) == value


def test_what_is_no_pickle_is_unreadable() -> None:
    packed = pickled(lambda n: n + 1)
    chance = random.Random(7)
    for _ in range(3_000):
        broken = bytearray(packed)
        for _ in range(chance.randrange(1, 6)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        try:
            parse_pickle(bytes(broken[: chance.randrange(1, len(broken) + 1)]))
        except Unreadable:
            continue
    for content in (b"", b".", b"0.", b"t.", b"h\x01.", b"I" + b"9" * 5000 + b"\n.", b"}(K\x01u."):
        with pytest.raises(Unreadable):
            parse_pickle(content)
    with pytest.raises(Unreadable, match=str(MAX_STEPS)):
        parse_pickle(b"N0" * MAX_STEPS + b"N.")


def test_other_pickles_have_no_options() -> None:
    for content in (b"", b"\x80\x05N.", pickled(len), dump(Thing("other.UDF", batch_size=3))):
        assert read_options(content) == DEFAULT


def test_how_to_run_a_function_is_read() -> None:
    assert read_options(udf()) == DEFAULT
    found = read_options(udf(batch_size=7, timeout=2.5, num_gpus=1.0, num_cpus=2.0, memory=2**30))
    assert (found.batch_size, found.timeout_seconds) == (7, 2.5)
    assert found.needs == Needs(num_cpus=2.0, num_gpus=1.0, memory=2**30)
    assert read_options(udf(batch_size=7, checkpoint_size=5)).batch_size == 5


@pytest.mark.parametrize(
    "state",
    [
        {"batch_size": 0},
        {"batch_size": 2**40},
        {"batch_size": "7"},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"memory": 2**5000},
        {"memory": True},
        {"num_cpus": -1},
        {"error_handling": {"fault_isolation": "skip_rows"}},
        {"error_handling": Thing("x.y", _matchers=7, fault_isolation=Thing("x.z", ()))},
        {"partition_by_indexed_column": 5},
    ],
)
def test_what_cannot_be_is_left_at_the_default(state: dict[str, Any]) -> None:
    assert read_options(udf(**state)) == DEFAULT


@pytest.mark.parametrize(
    ("handling", "meant"),
    [
        (config(matcher("Skip", Exception)), OnError(action="skip")),
        (
            config(matcher("Skip", Exception, max_skip_count=3, max_skip_fraction=0.5)),
            OnError(action="skip", max_failed_rows=3, max_failed_fraction=0.5),
        ),
        # Rows are skipped after any exception, or none.
        (config(matcher("Skip", KeyError)), OnError()),
        (config(matcher("Fail", KeyError), matcher("Skip", Exception)), OnError()),
        (
            config(matcher("Retry", OSError, ValueError, max_attempts=5)),
            OnError(action="retry", max_attempts=5, match=("OSError", "ValueError")),
        ),
        (
            config(matcher("Retry", Exception, max_attempts=2)),
            OnError(action="retry", max_attempts=2),
        ),
        (
            config(matcher("Retry", OSError, max_attempts=4), matcher("Skip", Exception)),
            OnError(action="retry", max_attempts=4, match=("OSError",), max_failed_fraction=1.0),
        ),
        (
            config(fault_isolation=Thing("g.FaultIsolation", "skip_rows")),
            OnError(action="skip"),
        ),
        (
            config(
                retry_config=Thing(
                    "g.UDFRetryConfig",
                    retry=Thing("tenacity.retry.x", exception_types=(OSError,)),
                    stop=Thing("tenacity.stop.x", max_attempt_number=6),
                )
            ),
            OnError(action="retry", max_attempts=6, match=("OSError",)),
        ),
        (config(), OnError()),
    ],
)
def test_what_an_error_means_is_read(handling: Thing, meant: OnError) -> None:
    assert read_options(udf(error_handling=handling)).on_error == meant


def test_exceptions_of_the_users_own_are_named() -> None:
    made = Thing("geneva.cloudpickle.cloudpickle._make_skeleton_class", type, "Busy", (Exception,))
    handling = config(matcher("Retry", made, max_attempts=2))
    assert read_options(udf(error_handling=handling)).on_error.match == ("Busy",)


def test_envelopes_have_the_options_of_their_pickles() -> None:
    handling = config(matcher("Skip", Exception))
    payload = udf(error_handling=handling, batch_size=3)
    code = read_code(pack({"udf_pickle": b64(payload)}))
    assert (code.on_error.action, code.batch_size, code.kind) == ("skip", 3, None)
    told = dump(
        Thing(
            "geneva.transformer.UDTF", error_handling=handling, partition_by_indexed_column="vector"
        )
    )
    spec = {"udtf": pack({"udtf_payload": b64(told)}), "error_handling": None}
    found = read_udtf("udtf", spec)
    assert found is not None
    assert (found.on_error.action, found.partition_by_indexed_column) == ("skip", "vector")
    found = read_udtf("udtf", spec | {"error_handling": {"action": "fail"}})
    assert found is not None
    assert found.on_error == OnError()
