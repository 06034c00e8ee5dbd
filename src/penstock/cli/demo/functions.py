"""The functions of the demo, as a user would write them: chunker, embedding, slow function."""

import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import penstock

DIMENSION = 64
SENTENCES = 2


class Chunk(TypedDict):
    chunk: str
    place: int


@penstock.chunker
def split(text: str) -> Iterator[Chunk]:
    """Two sentences per chunk."""
    sentences = re.split(r"(?<=[.!?])\s+", text.strip())
    for place, start in enumerate(range(0, len(sentences), SENTENCES)):
        yield {"chunk": " ".join(sentences[start : start + SENTENCES]), "place": place}


def embed_text(text: str) -> list[float]:
    """A vector made from the words of a text: no model to download, and similar texts are close."""
    vector = [0.0] * DIMENSION
    for word in re.findall(r"[a-z]+", text.lower()):
        # The beginning of a word stands for all of its forms.
        digest = hashlib.blake2b(word[:5].encode(), digest_size=8).digest()
        vector[digest[0] % DIMENSION] += 1.0 if digest[1] % 2 else -1.0
    length = sum(value * value for value in vector) ** 0.5 or 1.0
    return [value / length for value in vector]


@penstock.udf(data_type=penstock.vector(DIMENSION))
def embed(chunk: str) -> list[float]:
    return embed_text(chunk)


def slow_length(log: Path, seconds: float) -> Any:
    """A slow function that records each call, so that calls can be counted."""
    path = str(log)

    @penstock.udf(data_type=int)
    def length(chunk: str) -> int:
        with open(path, "a") as calls:
            calls.write(f"{hash(chunk)}\n")
        time.sleep(seconds)
        return len(chunk)

    return length
