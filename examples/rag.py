"""Retrieval over documents: chunks, embeddings, a vector index, and edits that cost what changed.

    penstock serve &
    python examples/rag.py http://127.0.0.1:2333

Without an address it starts a server on ./penstock-data, or finds the one that runs. The embedding
is a hash of words, so that nothing has to be downloaded; put your model into `Embed.__init__`.
"""

import hashlib
import re
import sys
from collections.abc import Iterator
from typing import TypedDict

import penstock

DIMENSION = 64
TEXTS = {
    "gates": "A gate closes the pipe. It is lifted with a chain. Grease it twice a year.",
    "wheels": "The wheel turns in the stream. Its buckets are oak. Iron ones last longer.",
    "floods": "When the river rises, open the sluice. Warn the village first. Then wait.",
}


class Chunk(TypedDict):
    chunk: str


@penstock.chunker
def split(text: str) -> Iterator[Chunk]:
    """One chunk a sentence."""
    for sentence in re.split(r"(?<=\.)\s+", text):
        yield {"chunk": sentence}


@penstock.udf(data_type=penstock.vector(DIMENSION), on_error="retry", retries=3)
class Embed:
    """Made once in each worker: the place to load a model."""

    def __init__(self) -> None:
        self.dimension = DIMENSION

    def __call__(self, chunk: str) -> list[float]:
        vector = [0.0] * self.dimension
        for word in re.findall(r"[a-z]+", chunk.lower()):
            digest = hashlib.blake2b(word[:5].encode(), digest_size=8).digest()
            vector[digest[0] % self.dimension] += 1.0
        return vector


def main(url: str | None) -> None:
    lake = penstock.connect(url)
    lake.create_namespace("rag")
    rows = [{"name": name, "text": text} for name, text in TEXTS.items()]
    documents = lake.create_table("rag.documents", rows)
    chunks = lake.create_view("rag.chunks", documents.select("name", "text"), chunker=split)
    print(f"chunked: {chunks.refresh().function_calls} calls")
    chunks.add_column("vector", Embed)
    print(f"embedded: {chunks.backfill('vector').function_calls} calls")
    chunks.create_index("vector", "IVF_FLAT", num_partitions=1)

    def ask(question: str) -> str:
        (best,) = chunks.search(Embed.call()(question)).select("chunk").limit(1).to_list()
        return str(best["chunk"])

    print(ask("how is it lifted?"))
    assert ask("how is it lifted?") == "It is lifted with a chain."
    documents.update(
        {"text": "A gate closes the pipe. It is lifted with a motor. Grease it twice a year."},
        where="name = 'gates'",
    )
    print(chunks.explain())
    assert chunks.refresh().function_calls == 1
    # The other two chunks of the text are as they were, and keep their vectors.
    assert chunks.backfill("vector").function_calls == 1
    print(ask("how is it lifted?"))
    assert ask("how is it lifted?") == "It is lifted with a motor."


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
