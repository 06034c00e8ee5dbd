"""The version of a function follows all that decides what it computes, and what is packed of it."""

import base64
import functools
import subprocess
import sys
from typing import Any

import pytest

import penstock
from penstock.errors import InvalidFunction
from penstock.sdk.functions.packing import pickle, virtual_column
from penstock.sdk.functions.versions import find_version

FACTOR = 2


@penstock.udf
def double(id: int) -> int:
    return id * FACTOR


def test_the_version_follows_what_nulls_mean() -> None:
    def size(text: str) -> int:
        return len(text or "")

    versions = [penstock.udf(on_null=each)(size).version for each in ("null", "call")]
    assert versions == [penstock.udf(size).version, find_version(size)]
    assert len(set(versions)) == 2


def version_of(source: str, **names: Any) -> str:
    """The version of the function `f` of a text, as if it were typed in."""
    names |= {"__name__": "__main__"}
    exec(source, names)
    return find_version(names["f"])


def test_the_version_follows_the_code() -> None:
    def one(a: int) -> int:
        # A comment.
        return a + 1

    def helped(a: int) -> int:
        return double(a)

    first = find_version(one)
    commented = one

    def one(a: int) -> int:  # type: ignore[no-redef]
        """With a docstring."""
        return a + 1

    assert find_version(one) == first == find_version(commented)

    def one(a: int) -> int:  # type: ignore[no-redef]
        return a + 2

    assert find_version(one) != first
    assert penstock.udf(timeout=5)(helped).version == penstock.udf(helped).version
    assert penstock.udf(version="7")(helped).version == "7"


def test_the_version_follows_what_the_code_refers_to() -> None:
    def of(number: int) -> str:
        def f(a: int) -> int:
            return a + number

        return find_version(f)

    assert of(1) == of(1) != of(2)
    text = "def f(a): return a + N"
    assert version_of(text, N=1) == version_of(text, N=1) != version_of(text, N=2)
    nested = "def g(a): return a {}\ndef f(a): return g(a)"
    assert version_of(nested.format("+ 1")) != version_of(nested.format("+ 2"))
    assert version_of(text, N=[1, {"a": 2}]) != version_of(text, N=[1, {"a": 3}])
    assert version_of("def f(a): return f(a - 1)")
    added = [functools.partial(lambda a, b: a + b, n) for n in (1, 2)]
    assert find_version(added[0]) != find_version(added[1])


def test_methods_of_a_class_count() -> None:
    def make(scale: int) -> Any:
        class Scale:
            def __call__(self, a: int) -> int:
                return a * scale

        return Scale

    assert find_version(make(1)) == find_version(make(1)) != find_version(make(2))


class Adder:
    def __init__(self, number: int) -> None:
        self.number = number

    def add(self, a: int) -> int:
        return a + self.number


def test_what_a_method_is_bound_to_counts() -> None:
    assert find_version(Adder(1).add) == find_version(Adder(1).add)
    assert find_version(Adder(1).add) != find_version(Adder(2).add)
    assert penstock.udf(Adder(1).add).inputs == ("a",)


@penstock.udf
def factorial(number: int) -> int:
    return number * factorial(number - 1) if number else FACTOR


def test_a_pickle_brings_the_users_own_modules_along() -> None:
    packed = base64.b64encode(pickle(factorial.call, "factorial")).decode()
    code = (
        "import base64, pickle, sys\n"
        "found = pickle.loads(base64.b64decode(sys.stdin.read()))\n"
        "print(found(4), any(name.startswith('tests') for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], input=packed, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["48", "False"]


def test_what_cannot_be_pickled_is_told() -> None:
    import threading

    lock = threading.Lock()

    @penstock.udf
    def locked(a: int) -> int:
        with lock:
            return a

    with pytest.raises(InvalidFunction, match="locked cannot be pickled"):
        virtual_column(locked, {"a": {"type": "int64"}}, ["a"])
