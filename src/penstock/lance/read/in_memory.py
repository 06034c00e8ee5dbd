"""Queries of rows that no table holds, by the rules of those that one does. Blocks."""

from typing import Any

from penstock.lance.doors import lance, pa
from penstock.lance.errors import translated
from penstock.lance.read import query, results
from penstock.lance.read.query import Query


def write_found(rows: "pa.Table", wanted: Query, sink: Any) -> None:
    """Write the rows that a checked query finds as an Arrow file."""
    with translated():
        # Each such dataset is by itself, and gone with its last reference.
        dataset = lance.write_dataset(rows, "memory://rows")
        results.write_file(query.search(dataset, wanted), sink)
