"""What `udf` may hold, and that whatever else it holds is refused and nothing worse."""

import base64
import contextlib
import hashlib
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidRequest
from penstock.model.envelopes import read_code
from penstock.model.functions import FunctionOutput
from tests.harness.data.functions import b64, envelope, pack

PAYLOAD = pickle.dumps(len)
RIGHT = {
    "format": "penstock/1",
    "kind": "scalar",
    "payload": b64(PAYLOAD),
    "sha256": hashlib.sha256(PAYLOAD).hexdigest(),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def test_our_envelope_tells_all_about_a_function() -> None:
    udf = envelope(
        PAYLOAD,
        "batch",
        batch_size=3,
        timeout_seconds=1,
        on_error={"action": "skip", "max_failed_rows": 4, "max_failed_fraction": 0.5},
        needs={"num_cpus": 1.5},
        env={"python": "2.7", "system": "Linux", "arch": "x86_64", "more": [1]},
        python="3.11",
        unknown={"kept": True},
    )
    code = read_code(udf)
    assert (code.form, code.kind, code.batch_size, code.timeout_seconds) == (
        *("penstock/1", "batch", 3, 1.0),
    )
    assert (code.on_error.action, code.on_error.max_failed_fraction) == ("skip", 0.5)
    assert code.needs.num_cpus == 1.5
    assert (code.on_null, code.may_be_null) == ("call", ())
    assert code.platform == {"python": "3.11", "system": "Linux", "arch": "x86_64"}
    assert code.content == base64.b64decode(udf)
    assert code.sha256 == hashlib.sha256(code.content).hexdigest()


def test_what_nulls_mean_is_bound_with_the_code() -> None:
    code = read_code(envelope(PAYLOAD, on_null="null", may_be_null=[1]))
    output = FunctionOutput("a", "", {"type": "int32"})
    assert code.bind("f", "1", ("x", "y", "z"), (output,)).required == (0, 2)
    assert read_code(envelope(PAYLOAD)).bind("f", "1", ("x", "y"), (output,)).required == ()
    with pytest.raises(InvalidRequest, match="place 1, and there are 1 inputs"):
        code.bind("f", "1", ("x",), (output,))
    with pytest.raises(InvalidRequest, match="column 'a' takes no null"):
        code.bind("f", "1", ("x", "y"), (FunctionOutput("a", "", {}, nullable=False),))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "penstock/2"},
        {"format": None},
        {"format": ["penstock/1"]},
        {"kind": "vector"},
        {"kind": None},
        {"payload": None},
        {"payload": "?"},
        {"payload": 5},
        {"payload": b64(PAYLOAD + b"x")},
        {"sha256": ""},
        {"sha256": None},
        {"sha256": 7},
        {"sha256": "é" * 64},
        {"batch_size": 0},
        {"batch_size": 2**40},
        {"timeout_seconds": 0},
        {"timeout_seconds": 1e300},
        {"on_error": "skip"},
        {"on_error": {"action": "ignore"}},
        {"on_error": {"max_attempts": 0}},
        {"on_error": {"backoff_seconds": -1}},
        {"on_error": {"match": "ValueError"}},
        {"on_error": {"match": [""]}},
        {"on_error": {"max_failed_fraction": 1.5}},
        {"needs": {"num_cpus": 0}},
        {"needs": {"memory": -1}},
        {"needs": []},
        {"on_null": "skip"},
        {"may_be_null": [-1]},
        {"may_be_null": "a"},
        {"env": "x"},
        {"python": 3.11},
    ],
)
def test_an_envelope_that_is_not_right_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_code(pack(RIGHT | change))
    assert refused.value.detail


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"{}", b'{"a": 1}', b"[]", b"5", b'"x"', b"null", b"true"),
        b'{"udf_pickle": 5}',
        b'{"udf_pickle": "?"}',
        b'{"udf_pickle": "AA==", "udf_checksum": 5}',
        b'{"udf_pickle": "AA==", "udf_checksum": "00"}',
        b'{"format": "penstock/1"}',
        b'{"a": ' * 5000,
        b"{\xff}",
    ],
    ids=lambda content: str(content[:30]),
)
def test_what_is_no_function_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read_code(b64(content))


@pytest.mark.parametrize("text", ["?", "a", "é", "====", "AAA", "\x00", "data:;base64,AA=="])
def test_what_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="base64"):
        read_code(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try_to_read(text)


@given(st.binary())
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try_to_read(b64(content))


@given(JSON)
def test_any_json_is_read_or_refused(content: Any) -> None:
    try_to_read(pack(content))


@given(st.sampled_from(sorted({*RIGHT, "on_error", "needs", "env", "batch_size"})), JSON)
def test_any_value_in_an_envelope_is_read_or_refused(key: str, value: Any) -> None:
    try_to_read(pack(RIGHT | {key: value}))


@given(st.sampled_from(["udf_pickle", "udf_checksum"]), JSON)
def test_any_value_in_another_clients_envelope_is_read_or_refused(key: str, value: Any) -> None:
    try_to_read(pack({"udf_pickle": b64(PAYLOAD)} | {key: value}))


def test_the_bytes_are_kept_as_they_came() -> None:
    sent = json.dumps(RIGHT | {"note": "ü"}, indent=3).encode()
    assert read_code(b64(sent)).content == sent


def try_to_read(udf: str) -> None:
    with contextlib.suppress(InvalidRequest):
        assert read_code(udf).content
