"""Embeddings that follow their documents: declare a function, fill, edit, fill again, search.

Start a server first (`penstock serve`), then run this file. It needs nothing from the network: the
model is a hashing embedding, built once in each worker as a real one would be.
"""

import argparse
import base64
import hashlib
import itertools
import json
import re
import time
from typing import Any

import cloudpickle
import httpx
import lance
import pyarrow as pa
from lance.namespace import RestNamespace

DIMENSIONS = 256
NAMESPACE, TABLE = "examples", "embeddings"
DOCUMENTS = [
    "A penstock leads water from a lake to the turbines of a power plant.",
    "The gate of a sluice is lifted with a hand wheel.",
    "Turbines turn falling water into electricity.",
    "Bread rises because yeast makes gas in the dough.",
    "Sourdough needs flour, water, salt and a night of patience.",
    "A catalog remembers which tables exist and where they lie.",
    "Embeddings put texts of similar meaning near each other.",
    "An index finds the nearest vectors without looking at all of them.",
]


class Embed:
    """Words and pairs of words, hashed into a vector of length one."""

    def __init__(self) -> None:
        # A real model would be loaded here, once for each worker.
        self.words = re.compile(r"\w+")

    def __call__(self, text: str) -> list[float]:
        words = self.words.findall(text.lower())
        vector = [0.0] * DIMENSIONS
        for part in [*words, *(f"{a} {b}" for a, b in itertools.pairwise(words))]:
            digest = hashlib.blake2b(part.encode(), digest_size=8).digest()
            place = int.from_bytes(digest[:4], "big") % DIMENSIONS
            vector[place] += 1.0 if digest[4] & 1 else -1.0
        length = sum(value * value for value in vector) ** 0.5 or 1.0
        return [value / length for value in vector]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:2333", help="where the server is")
    url = parser.parse_args().url
    with httpx.Client(base_url=url, timeout=60) as http:
        create(http, url)
        declare(http)
        print(f"filled: {fill(http)} calls for {len(DOCUMENTS)} documents")
        print(f"again:  {fill(http)} calls")
        change = {
            "predicate": "id = 3",
            "updates": [["text", "'Rye bread is dark, and keeps for a week.'"]],
        }
        post(http, f"/v1/table/{NAMESPACE}${TABLE}/update", change)
        print(f"edited: {fill(http)} call for one changed document")
        for text in nearest(http, "water and turbines", 3):
            print(f"  {text}")


def create(http: httpx.Client, url: str) -> None:
    """A new table of documents."""
    post(http, f"/v1/namespace/{NAMESPACE}/create", {"mode": "exist_ok"})
    http.post(f"/v1/table/{NAMESPACE}${TABLE}/drop")
    connect: Any = RestNamespace
    lance.write_dataset(
        pa.table({"id": range(len(DOCUMENTS)), "text": DOCUMENTS}),
        namespace_client=connect(uri=url),
        table_id=[NAMESPACE, TABLE],
        mode="create",
        enable_stable_row_ids=True,
    )


def declare(http: httpx.Client) -> None:
    """Bind the class to a column; the server stores its code and never runs it."""
    payload = cloudpickle.dumps(Embed)
    envelope = {
        "format": "penstock/1",
        "kind": "scalar",
        "payload": base64.b64encode(payload).decode(),
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    element = {"name": "item", "type": {"type": "float"}, "nullable": True}
    vector = {"type": "fixed_size_list", "fields": [element], "length": DIMENSIONS}
    column = {
        "input_columns": ["text"],
        "outputs": [
            {"column": "vector", "struct_field": "", "data_type": vector, "nullable": True}
        ],
        "image": "",
        "udf": base64.b64encode(json.dumps(envelope).encode()).decode(),
        "udf_name": "embed",
        "udf_version": "1",
        "udf_backend": "penstock/1",
    }
    body = {"new_columns": [{"name": "vector", "virtual_column": column}]}
    post(http, f"/v1/table/{NAMESPACE}${TABLE}/add_columns", body)


def fill(http: httpx.Client) -> int:
    """Fill what needs it; returns how often the function was called."""
    path = f"/v1/table/{NAMESPACE}${TABLE}/backfill_column"
    job = post(http, path, {"column": "vector"})["job_id"]
    while True:
        found = post(http, f"/v1/transaction/{job}/describe")
        if found["status"] == "SUCCEEDED":
            return int(found["properties"]["function_calls"])
        if found["status"] in ("FAILED", "CANCELED"):
            raise SystemExit(f"the job is {found['status']}: {found['properties'].get('error')}")
        time.sleep(0.1)


def nearest(http: httpx.Client, text: str, count: int) -> list[str]:
    """The documents whose vectors are nearest."""
    query = {
        "vector": {"single_vector": Embed()(text)},
        "k": count,
        "columns": {"column_names": ["text"]},
    }
    answer = http.post(f"/v1/table/{NAMESPACE}${TABLE}/query", json=query)
    answer.raise_for_status()
    found: list[str] = pa.ipc.open_file(answer.content).read_all()["text"].to_pylist()
    return found


def post(http: httpx.Client, path: str, body: Any = None) -> Any:
    answer = http.post(path, json=body)
    if answer.is_error:
        raise SystemExit(f"{path}: {answer.text}")
    return answer.json()


if __name__ == "__main__":
    main()
