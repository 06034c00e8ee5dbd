"""The functions of histories; each call leaves a line, and some print.

They are sent by value and need nothing of the tests: a worker of Spark has none. In a process that
has `hooks`, a call also does what is planned for it there.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

# All calls of a job together print more than a report takes.
MANY_LINES = 60


def called(log: str, shown: str) -> None:
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{shown}\n".encode())
    os.close(handle)
    if (hooks := sys.modules.get("tests.soak.hooks")) is not None:
        hooks.called(log)


def filling(log: str, prints: int = 0) -> Callable[..., Any]:
    """`value`, of a row's id and text."""

    def call(id: int, text: str) -> str:
        called(log, f"{id},{text}")
        for n in range(prints):
            print(f"{id}: {n}")
        return f"{id}={text}"

    return call


def chunking(log: str, prints: int = 0) -> Callable[..., Any]:
    """The words of a row's text."""

    def call(id: int, text: str) -> list[dict[str, Any]]:
        called(log, f"{id},{text}")
        for n in range(prints):
            print(f"{id}: {n}")
        return [] if text == "-" else [{"word": word} for word in text.split(" ")]

    return call


def summing(log: str, prints: int = 0) -> Callable[..., Any]:
    """Ids, rows and letters of a partition."""

    def call(table: Any) -> list[dict[str, Any]]:
        ids, texts = table["id"].to_pylist(), table["text"].to_pylist()
        kind = table["kind"][0].as_py()
        rows = sorted(zip(ids, texts, strict=True))
        called(log, f"{kind}|" + ";".join(f"{id},{text}" for id, text in rows))
        for n in range(prints):
            print(f"{kind}: {n}")
        letters = sum(map(len, texts))
        return [{"kind": kind, "total": sum(ids), "rows": len(ids), "letters": letters}]

    return call
